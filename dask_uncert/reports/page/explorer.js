// The explorer: controls move numbers and charts, all from the counts in this page.
"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  const { given, recordsOf, nearestBin } = readings;
  const { plain, written, show, say, percent, short, quoted } = writing;
  const BESIDE = { f1: "F1", accuracy: "Accuracy", precision: "Precision", recall: "Recall", false_positive_rate: "FPR" };
  const state = { class: -1, record: null, measure: 0, t: 0.5, sigma: given.start.sigma, damping: given.start.damping, bin: 0 };

  // ---- numbers

  const dampingNow = () => state.record && state.record.uncertainty !== null ? state.damping : 0;

  function showSoft() {
    const record = state.record;
    if (!at("soft-found")) return; // no joint histogram was asked for
    at("soft-found").hidden = !record;
    at("soft-charts").hidden = !record;
    at("soft-absent").hidden = Boolean(record);
    for (const id of ["t", "sigma", "damping"]) enable(id, Boolean(record) && (id !== "damping" || record.uncertainty !== null));
    if (!record) {
      say("soft-class", state.class < 0 ? "One class against the rest" : given.classes[state.class]);
      say("soft-absent", state.class < 0
        ? "Soft confusion is of one class against the rest. Pick one of the classes whose joint histogram was kept:"
        : "No joint histogram of this class is in this page. Pick one whose joint histogram was kept:");
      return;
    }
    const d = dampingNow(), now = readings.soft(record, state.t, state.sigma, d), hard = readings.soft(record, state.t, 0, 0);
    ["TP", "TN", "FP", "FN"].forEach((cell, i) => {
      show(`soft.${cell}`, now.cells[i], 2, now.errors[i]);
      show(`hard.${cell}`, hard.cells[i], 0);
    });
    for (const name of mathematics.METRICS) {
      show(`soft.${name}`, now.metrics[name], 4, now.bounds[name]);
      show(`hard.${name}`, hard.metrics[name], 4);
    }
    show("soft.share", now.share, 4, now.shareBound);
    at("share-bar").style.setProperty("--part", `${Math.min(100, 100 * now.share)}%`);
    say("share", percent(now.share));
    say("soft-class", `${record.class} against the rest`);
    say("soft-damped", record.uncertainty === null ? "nothing damps" : `damped by ${record.label}`);
    say("own-damping", `d = ${short(d)}, chosen`);
    const damps = recordsOf(record.class_index).length > 1 ? ` --uncertainty ${quoted(record.uncertainty ?? "none")}` : "";
    say("command", `dask-uncert sweep . --class ${quoted(record.class)}${damps} --threshold ${short(state.t)} --sigma ${short(state.sigma)} --damping ${short(d)}`);
    for (const [name, label] of Object.entries(BESIDE)) {
      say(`beside-${name}`, `${label} ${written(now.metrics[name], 4)} at ${percent(now.share)} of the weight`);
    }
    say("beside-share", `${percent(now.share)} of ${plain(record.counted, 0)} pixels’ weight`);
    drawing.later("soft", () => drawing.soft(record, { t: state.t, sigma: state.sigma, damping: d }, now));
  }

  function showCertain() {
    if (!given.measures.length) return;
    const measure = given.measures[state.measure], [wrong, right] = readings.cumulative(measure, state.class);
    const tau = measure.edges[state.bin + 1], now = readings.uncertaintyConfusion(wrong, right, state.bin);
    for (const key of ["TC", "FU", "FC", "TU"]) show(`certain.${key}`, now[key], 0);
    for (const key of ["USen", "USpe", "UPre", "UAcc", "coverage", "risk"]) show(`certain.${key}`, now[key], 4);
    const whose = state.class >= 0 && measure.by_class ? `reference class ${given.classes[state.class]}` : "all classes";
    say("certain-of", `${measure.label} over ${plain(now.all, 0)} pixels, ${whose}`);
    say("measure", measure.label);
    say("tau", `τ = ${short(tau)}${measure.unit ? ` ${measure.unit}` : ""}`);
    say("beside-ecdf", `At or below τ: ${percent(now.correct)} of the correct, ${percent(now.wrong)} of the wrong`);
    say("beside-uncertainty", `UAcc ${written(now.UAcc, 4)}, USen ${written(now.USen, 4)} at τ`);
    say("beside-risk", `Keeping ${percent(now.coverage)}, ${percent(now.risk)} of it wrong; all kept: ${percent(now.error)}`);
    drawing.later("certain", () => drawing.certain(measure, state.class, tau, now));
  }

  function showReliability() {
    const found = readings.reliability(state.class);
    show("calibration.ece", found.ece, 4);
    show("calibration.mce", found.mce, 4);
    say("calibration-of", state.class < 0 ? "the winning class’s confidence" : `the probability of ${given.classes[state.class]}`);
    at("bins").replaceChildren(...found.n.map((n, i) => {
      const row = document.createElement("tr"), head = document.createElement("th");
      head.scope = "row";
      head.textContent = `${plain(found.low[i], 3)} to ${plain(found.high[i], 3)}`;
      const shares = [found.stated[i], found.observed[i], found.observed[i] - found.stated[i]];
      const cells = [plain(n, 0), ...shares.map((value) => written(value, 3))];
      row.append(head, ...cells.map((text) => Object.assign(document.createElement("td"), { textContent: text })));
      return row;
    }));
    drawing.later("reliability", () => drawing.reliability(found));
  }

  // ---- controls: a range and a number box move together

  const controls = {};
  function control(id, { read, write, text }) {
    const range = at(id), box = at(`${id}-box`);
    if (!range) return;
    const sync = (from) => {
      const value = write();
      if (from !== range) range.value = value.range;
      if (from !== box) box.value = value.box;
      range.setAttribute("aria-valuetext", value.box);
    };
    controls[id] = { range, box, sync };
    range.addEventListener("input", () => {
      read(range.valueAsNumber, range);
      sync(range);
      text();
    });
    box.addEventListener("input", () => {
      if (!box.checkValidity() || Number.isNaN(box.valueAsNumber)) return;
      read(box.valueAsNumber, box);
      sync(box);
      text();
    });
    box.addEventListener("change", () => sync(null)); // what cannot be used gives way to what holds
  }

  function enable(id, on) {
    if (controls[id]) controls[id].range.disabled = controls[id].box.disabled = !on;
  }

  for (const id of ["t", "sigma", "damping"]) {
    control(id, {
      read: (value) => { state[id] = value; },
      write: () => ({ range: state[id], box: short(state[id]) }),
      text: () => { showSoft(); settled(); },
    });
  }

  const edgesNow = () => given.measures[state.measure].edges;
  control("tau", {
    read: (value, from) => { state.bin = from.type === "range" ? value - 1 : nearestBin(edgesNow(), value); },
    write: () => ({ range: state.bin + 1, box: short(edgesNow()[state.bin + 1]) }),
    text: () => { showCertain(); settled(); },
  });

  function options(select, pairs) {
    select.replaceChildren(...pairs.map(([value, text]) => new Option(text, value)));
  }

  function pickClass(index) {
    state.class = index;
    const own = recordsOf(index), before = state.record;
    state.record = own.find((one) => before && one.uncertainty === before.uncertainty) ?? own[0] ?? null;
    at("class").value = index;
    options(at("record"), own.map((one, i) => [i, one.label ?? "nothing"]));
    at("record").value = own.indexOf(state.record);
    at("record-field").hidden = own.length < 2;
    ticks("t", state.record ? state.record.thresholds : []);
    showAll();
    settled();
  }

  function pickMeasure(index) {
    state.measure = index;
    const measure = given.measures[index], range = at("tau");
    range.max = measure.edges.length - 1;
    const named = measure.thresholds.length ? measure.thresholds[Math.floor((measure.thresholds.length - 1) / 2)] : measure.reach / 2;
    state.bin = nearestBin(measure.edges, named);
    ticks("tau", measure.thresholds.map((tau) => nearestBin(measure.edges, tau) + 1));
    at("tau-unit").textContent = measure.unit;
    controls.tau.sync(null);
    showCertain();
    settled();
  }

  function ticks(id, values) {
    at(`${id}-named`)?.replaceChildren(...values.map((value) => new Option("", value)));
  }

  function showAll() {
    showSoft();
    showCertain();
    showReliability();
  }

  // What screen readers hear, and what stands on paper and in the folded bar: the settings, once they rest.
  let resting = 0;
  function settled() {
    const measure = given.measures[state.measure];
    const parts = [state.class < 0 ? "all classes" : given.classes[state.class]];
    if (state.record) parts.push(`t ${short(state.t)}`, `σ ${short(state.sigma)}`, `d ${short(dampingNow())}`);
    if (measure) parts.push(`${measure.label}, τ ${short(measure.edges[state.bin + 1])}`);
    say("settings", parts.join(" · "));
    clearTimeout(resting);
    resting = setTimeout(() => {
      const f1 = document.querySelector('[data-out="soft.f1"]'), accuracy = document.querySelector('[data-out="certain.UAcc"]');
      at("said").textContent = [
        parts.join(", "),
        state.record ? `F1 ${f1.textContent}, ${document.querySelector('[data-say="share"]').textContent} of the weight left` : "",
        accuracy ? `uncertainty accuracy ${accuracy.textContent}` : "",
      ].filter(Boolean).join("; ");
    }, 600);
  }

  // ---- begin

  function begin() {
    at("explorer").hidden = false;
    for (const one of document.querySelectorAll("[data-explorer-link]")) one.hidden = false;
    const kept = new Set(given.records.map((one) => one.class_index));
    options(at("class"), [[-1, "All classes"], ...given.classes.map((name, i) => [i, name])]);
    at("class").addEventListener("change", (event) => pickClass(Number(event.target.value)));
    at("record").addEventListener("change", (event) => {
      state.record = recordsOf(state.class)[Number(event.target.value)];
      ticks("t", state.record.thresholds);
      showSoft();
      settled();
    });
    at("soft-kept")?.replaceChildren(...[...kept].map((index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = given.classes[index];
      button.addEventListener("click", () => { pickClass(index); at("class").focus(); });
      return button;
    }));
    if (at("measure")) {
      options(at("measure"), given.measures.map((one, i) => [i, one.label]));
      at("measure").addEventListener("change", (event) => pickMeasure(Number(event.target.value)));
    }
    at("reset").addEventListener("click", reset);
    const narrow = matchMedia("(max-width: 899px)");
    narrow.addEventListener("change", () => { at("dock").open = true; });
    reset();
    drawing.embed().then(showAll);
  }

  function reset() {
    const first = given.records[0];
    state.sigma = given.start.sigma;
    state.damping = given.start.damping;
    state.t = first?.thresholds.length ? first.thresholds[Math.floor((first.thresholds.length - 1) / 2)] : 0.5;
    for (const id of ["t", "sigma", "damping"]) controls[id]?.sync(null);
    pickClass(first ? first.class_index : -1);
    if (given.measures.length) {
      at("measure").value = 0;
      pickMeasure(0);
    }
  }

  begin();
})();
