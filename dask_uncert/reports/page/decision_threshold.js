// The decision threshold of a class: its cells and metrics at every edge, from the counts in this page.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id), section = byId("threshold"), classes = metrics.data.thresholds;
  if (!section || !classes.length) return;
  const { setNumber, setText } = formatting, { edges } = metrics.data;
  const short = (edge) => String(Number(edge.toPrecision(4))); // edges are about .001 apart
  const select = byId("threshold-class"), slider = byId("threshold-slider"), box = byId("threshold-box");
  const ratio = (a, b) => b === 0 ? NaN : a / b;
  let table = null;

  const row = (TP, FP, FN, TN) => ({
    TP, FP, FN, precision: ratio(TP, TP + FP), recall: ratio(TP, TP + FN), f1: ratio(2 * TP, 2 * TP + FP + FN),
    youden: ratio(TP, TP + FN) - ratio(FP, FP + TN),
  });

  // Returns the row of every edge: what lies above it is found.
  function rows({ n, hits }) {
    const positives = hits.reduce((a, b) => a + b, 0), others = n.reduce((a, b) => a + b, 0) - positives;
    const found = new Array(edges.length);
    for (let i = edges.length - 1, TP = 0, FP = 0; i >= 0; i--) {
      found[i] = row(TP, FP, positives - TP, others - FP);
      if (i > 0) { TP += hits[i - 1]; FP += n[i - 1] - hits[i - 1]; }
    }
    return found;
  }

  const write = (group, values) => Object.entries(values).forEach(([name, value]) =>
    setNumber(`${group}.${name}`, value, name === name.toUpperCase() ? 0 : 4));

  function show(index, source) {
    const at = short(edges[index]);
    slider.value = index;
    if (source !== box) box.value = at;
    slider.setAttribute("aria-valuetext", at);
    setText("threshold-at", at);
    write("chosen", table[index]);
    section.querySelector("svg .at").setAttribute("d", `M${1000 * edges[index]} 0V1000`);
  }

  function draw(name) {
    let path = "", pen = "M";
    table.forEach((values, i) => {
      if (Number.isNaN(values[name])) { pen = "M"; return; }
      path += `${pen}${(1000 * edges[i]).toFixed(0)} ${(1000 - 1000 * values[name]).toFixed(0)}`;
      pen = "L";
    });
    section.querySelector(`svg .${name}`).setAttribute("d", path);
  }

  // Returns the highest edge at which a metric is largest, or the middle if it is undefined everywhere.
  function best(name) {
    let chosen = -1;
    table.forEach((values, i) => { if (values[name] >= (chosen < 0 ? -Infinity : table[chosen][name])) chosen = i; });
    return chosen < 0 ? nearest(0.5) : chosen;
  }

  const nearest = (value) => edges.reduce((a, edge, i) => Math.abs(edge - value) < Math.abs(edges[a] - value) ? i : a, 0);

  function choose(item) {
    table = rows(item);
    setText("threshold-class", item.class);
    write("decided", row(...item.decided));
    ["precision", "recall", "f1"].forEach(draw);
    show(slider.valueAsNumber);
  }

  slider.max = edges.length - 1;
  slider.value = nearest(0.5);
  select.replaceChildren(...classes.map((item, i) => new Option(item.class, i)));
  select.addEventListener("change", () => choose(classes[Number(select.value)]));
  slider.addEventListener("input", () => show(slider.valueAsNumber));
  box.addEventListener("input", () => { if (box.checkValidity() && !Number.isNaN(box.valueAsNumber)) show(nearest(box.valueAsNumber), box); });
  for (const button of section.querySelectorAll("[data-best]")) button.addEventListener("click", () => show(best(button.dataset.best)));
  section.hidden = false;
  select.value = classes.length === 2 ? 1 : 0; // of two classes, the second is the one of interest
  choose(classes[Number(select.value)]);
})();
