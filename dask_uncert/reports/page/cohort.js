// Strips of a cohort: shows the case of a dot and highlights it in every strip. Also selects the metric of groups.
// Everything works with a pointer or with the keyboard.
"use strict";
(() => {
  const data = document.getElementById("cohort-names");
  if (!data) return;
  const names = JSON.parse(data.textContent), svg = "http://www.w3.org/2000/svg";
  const plots = [];

  for (const element of document.querySelectorAll(".plot")) {
    const circles = [...element.querySelectorAll(".dots circle")];
    if (!circles.length) continue;
    const ring = document.createElementNS(svg, "circle");
    ring.setAttribute("class", "ring");
    ring.setAttribute("r", 5.5);
    ring.style.display = "none";
    element.querySelector("svg").append(ring);
    const indexOf = new Map(circles.map((circle, index) => [Number(circle.dataset.i), index]));
    for (const title of element.querySelectorAll("circle title")) { // otherwise the browser shows a second tooltip
      title.parentElement.dataset.value = title.textContent.slice(title.textContent.lastIndexOf(": ") + 2);
      title.remove();
    }
    const plot = { element, circles, ring, indexOf, list: element.dataset.list, index: 0 };
    plots.push(plot);
    element.tabIndex = 0;
    element.setAttribute("role", "slider");
    element.setAttribute("aria-label", element.dataset.label);
    element.setAttribute("aria-valuemin", 1);
    element.setAttribute("aria-valuemax", circles.length);
    describe(plot);
    element.addEventListener("pointermove", (event) => { const index = nearest(plot, event); if (index !== null) show(plot, index); });
    element.addEventListener("pointerleave", () => { if (document.activeElement !== element) hide(); });
    element.addEventListener("focus", () => { if (element.matches(":focus-visible")) show(plot, plot.index); });
    element.addEventListener("blur", hide);
    element.addEventListener("click", (event) => { const index = nearest(plot, event); if (index !== null) { show(plot, index); reveal(plot); } });
    element.addEventListener("keydown", (event) => press(plot, event));
  }
  for (const help of document.querySelectorAll("[data-strip-help]")) help.hidden = !plots.length;

  function describe(plot) {
    const circle = plot.circles[plot.index];
    const name = names[plot.list][Number(circle.dataset.i)], value = circle.dataset.value;
    plot.element.setAttribute("aria-valuenow", plot.index + 1);
    plot.element.setAttribute("aria-valuetext", `${name}${value === undefined ? "" : `: ${value}`}, ${plot.index + 1} of ${plot.circles.length}`);
    return [name, value];
  }

  function nearest(plot, event) {
    const box = plot.element.querySelector("svg").getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    let best = null, least = 18 * 18; // pixels
    plot.circles.forEach((circle, index) => {
      const dx = x - box.width * parseFloat(circle.getAttribute("cx")) / 100, dy = y - Number(circle.getAttribute("cy"));
      if (dx * dx + dy * dy < least) { least = dx * dx + dy * dy; best = index; }
    });
    return best;
  }

  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;

  function show(plot, index) {
    plot.index = index;
    const [name, value] = describe(plot), circle = plot.circles[index];
    highlight(plot.list, Number(circle.dataset.i));
    const x = parseFloat(circle.getAttribute("cx"));
    tip.replaceChildren(Object.assign(document.createElement("b"), { textContent: name }), value === undefined ? "" : `  ${value}`);
    tip.style.left = `calc(12px + (100% - 24px) * ${x / 100})`;
    tip.style.transform = `translateX(${-x}%)`;
    tip.style.top = `${Number(circle.getAttribute("cy")) + 12}px`;
    tip.hidden = false;
    plot.element.append(tip);
  }

  function highlight(list, number) {
    for (const plot of plots) {
      const circle = plot.list === list ? plot.circles[plot.indexOf.get(number)] : undefined;
      plot.ring.style.display = circle ? "" : "none";
      for (const key of circle ? ["cx", "cy"] : []) plot.ring.setAttribute(key, circle.getAttribute(key));
    }
  }

  function hide() {
    tip.hidden = true;
    highlight(null);
  }

  function press(plot, event) {
    const last = plot.circles.length - 1, page = Math.max(1, Math.round(last / 10));
    const next = { ArrowRight: plot.index + 1, ArrowUp: plot.index + 1, ArrowLeft: plot.index - 1, ArrowDown: plot.index - 1,
      PageUp: plot.index + page, PageDown: plot.index - page, Home: 0, End: last }[event.key];
    if (next !== undefined) show(plot, Math.min(Math.max(next, 0), last));
    else if (event.key === "Enter") reveal(plot);
    else if (event.key === "Escape") hide();
    else return;
    event.preventDefault();
  }

  // ---- row and card of a case

  const elements = new Map(); // by the number of the case
  for (const element of document.querySelectorAll("tr[data-i], .case[data-i]")) {
    const number = Number(element.dataset.i);
    elements.set(number, [...(elements.get(number) ?? []), element]);
    element.addEventListener("pointerenter", () => highlight("cohort-cases", number));
    element.addEventListener("pointerleave", hide);
  }

  function reveal(plot) {
    for (const element of document.querySelectorAll(".picked")) element.classList.remove("picked");
    const picked = plot.list === "cohort-cases" ? elements.get(Number(plot.circles[plot.index].dataset.i)) : undefined;
    picked?.forEach((element) => element.classList.add("picked"));
    picked?.at(-1).scrollIntoView({ block: "center" });
  }

  // ---- metric of groups

  const choice = document.getElementById("group-metric");
  if (choice) {
    choice.closest("[data-group-choice]").hidden = false;
    const choose = () => {
      for (const group of document.querySelectorAll("[data-group-metric]")) group.hidden = group.dataset.groupMetric !== choice.value;
    };
    choice.addEventListener("change", choose);
    choose();
  }
})();
