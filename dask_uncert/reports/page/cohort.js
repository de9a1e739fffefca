// Strips of a cohort: which case a dot is, shown in every strip at once; the number that groups are shown by.
// Works with a pointer and with the keyboard alone.
"use strict";
(() => {
  const held = document.getElementById("cohort-names");
  if (!held) return;
  const names = JSON.parse(held.textContent), svg = "http://www.w3.org/2000/svg";
  const plots = [];

  function number(text) { // what the title of a dot says after its name
    return text.slice(text.lastIndexOf(": ") + 2);
  }

  for (const element of document.querySelectorAll(".plot")) {
    const circles = [...element.querySelectorAll(".dots circle")];
    if (!circles.length) continue;
    const lit = document.createElementNS(svg, "circle");
    lit.setAttribute("class", "lit");
    lit.setAttribute("r", 5.5);
    lit.style.display = "none";
    element.querySelector("svg").append(lit);
    const at = new Map(circles.map((one, place) => [Number(one.dataset.i), place]));
    for (const one of circles) { // the browser's own hint would cover ours
      const title = one.querySelector("title");
      if (!title) continue;
      one.dataset.value = number(title.textContent);
      title.remove();
    }
    const plot = { element, circles, lit, at, who: element.dataset.who, place: 0 };
    plots.push(plot);
    element.tabIndex = 0;
    element.setAttribute("role", "slider");
    element.setAttribute("aria-label", element.dataset.label);
    element.setAttribute("aria-valuemin", 1);
    element.setAttribute("aria-valuemax", circles.length);
    said(plot);
    element.addEventListener("pointermove", (event) => { const place = nearest(plot, event); if (place !== null) show(plot, place); });
    element.addEventListener("pointerleave", () => { if (document.activeElement !== element) hide(); });
    element.addEventListener("focus", () => { if (element.matches(":focus-visible")) show(plot, plot.place); });
    element.addEventListener("blur", hide);
    element.addEventListener("click", (event) => { const place = nearest(plot, event); if (place !== null) { show(plot, place); find(plot); } });
    element.addEventListener("keydown", (event) => key(plot, event));
  }
  for (const one of document.querySelectorAll("[data-strip-help]")) one.hidden = !plots.length;

  function said(plot) {
    const circle = plot.circles[plot.place];
    const name = names[plot.who][Number(circle.dataset.i)], value = circle.dataset.value;
    plot.element.setAttribute("aria-valuenow", plot.place + 1);
    plot.element.setAttribute("aria-valuetext", `${name}${value === undefined ? "" : `: ${value}`}, ${plot.place + 1} of ${plot.circles.length}`);
    return [name, value];
  }

  function nearest(plot, event) {
    const box = plot.element.querySelector("svg").getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    let best = null, least = 18 * 18; // pixels
    plot.circles.forEach((one, place) => {
      const dx = x - box.width * parseFloat(one.getAttribute("cx")) / 100, dy = y - Number(one.getAttribute("cy"));
      if (dx * dx + dy * dy < least) { least = dx * dx + dy * dy; best = place; }
    });
    return best;
  }

  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;

  function show(plot, place) {
    plot.place = place;
    const [name, value] = said(plot), number = Number(plot.circles[place].dataset.i);
    light(plot.who, number);
    const x = parseFloat(plot.circles[place].getAttribute("cx"));
    tip.replaceChildren(Object.assign(document.createElement("b"), { textContent: name }), value === undefined ? "" : `  ${value}`);
    tip.style.left = `calc(12px + (100% - 24px) * ${x / 100})`;
    tip.style.transform = `translateX(${-x}%)`;
    tip.style.top = `${Number(plot.circles[place].getAttribute("cy")) + 12}px`;
    tip.hidden = false;
    plot.element.append(tip);
  }

  function light(who, number) {
    for (const one of plots) {
      const place = one.who === who ? one.at.get(number) : undefined;
      one.lit.style.display = place === undefined ? "none" : "";
      if (place === undefined) continue;
      one.lit.setAttribute("cx", one.circles[place].getAttribute("cx"));
      one.lit.setAttribute("cy", one.circles[place].getAttribute("cy"));
    }
  }

  function hide() {
    tip.hidden = true;
    for (const one of plots) one.lit.style.display = "none";
  }

  function key(plot, event) {
    const last = plot.circles.length - 1, by = Math.max(1, Math.round(last / 10));
    const next = { ArrowRight: plot.place + 1, ArrowUp: plot.place + 1, ArrowLeft: plot.place - 1, ArrowDown: plot.place - 1,
      PageUp: plot.place + by, PageDown: plot.place - by, Home: 0, End: last }[event.key];
    if (next !== undefined) show(plot, Math.min(Math.max(next, 0), last));
    else if (event.key === "Enter") find(plot);
    else if (event.key === "Escape") hide();
    else return;
    event.preventDefault();
  }

  // ---- the row and the card of a case

  const rows = new Map();
  for (const one of document.querySelectorAll("tr[data-i], .case[data-i]")) {
    const number = Number(one.dataset.i);
    rows.set(number, [...(rows.get(number) ?? []), one]);
    one.addEventListener("pointerenter", () => light("cohort-cases", number));
    one.addEventListener("pointerleave", hide);
  }

  function find(plot) {
    for (const one of document.querySelectorAll(".picked")) one.classList.remove("picked");
    const found = plot.who === "cohort-cases" ? rows.get(Number(plot.circles[plot.place].dataset.i)) : undefined;
    if (!found) return;
    for (const one of found) one.classList.add("picked");
    found.at(-1).scrollIntoView({ block: "center" });
  }

  // ---- the number that groups are shown by

  const choice = document.getElementById("group-metric");
  if (choice) {
    choice.closest("[data-group-choice]").hidden = false;
    const choose = () => {
      for (const one of document.querySelectorAll("[data-group-metric]")) one.hidden = one.dataset.groupMetric !== choice.value;
    };
    choice.addEventListener("change", choose);
    choose();
  }
})();
