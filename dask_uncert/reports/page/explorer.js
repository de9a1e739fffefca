// The explorer: its controls update numbers and charts, which are computed from the counts in this page.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const { data, jointOf, nearestBin } = metrics;
  const { plain, number, setNumber, setText, percent, short, shellQuoted } = formatting;
  const CAPTIONS = { f1: "F1", accuracy: "Accuracy", precision: "Precision", recall: "Recall", false_positive_rate: "FPR" };
  const SOFT_CONTROLS = ["t", "sigma", "damping"];
  const state = { class: -1, joint: null, measure: 0, t: 0.5, sigma: data.start.sigma, damping: data.start.damping, bin: 0 };

  // ---- numbers

  const currentDamping = () => state.joint && state.joint.uncertainty !== null ? state.damping : 0;

  function showSoft() {
    const joint = state.joint;
    if (!byId("soft-numbers")) return; // the job has no joint histogram
    byId("soft-numbers").hidden = byId("soft-charts").hidden = !joint;
    byId("soft-absent").hidden = Boolean(joint);
    for (const id of SOFT_CONTROLS) enable(id, Boolean(joint) && (id !== "damping" || joint.uncertainty !== null));
    if (!joint) {
      setText("soft-class", state.class < 0 ? "One class against the rest" : data.classes[state.class]);
      setText("soft-absent", `${state.class < 0 ? "Soft confusion is for one class against the rest." : "This page has no joint histogram of this class."} Choose a class:`);
      return;
    }
    const d = currentDamping(), now = metrics.soft(joint, state.t, state.sigma, d), hard = metrics.soft(joint, state.t, 0, 0);
    ["TP", "TN", "FP", "FN"].forEach((cell, i) => {
      setNumber(`soft.${cell}`, now.cells[i], 2, now.errors[i]);
      setNumber(`hard.${cell}`, hard.cells[i], 0);
    });
    for (const name of softConfusion.METRICS) {
      setNumber(`soft.${name}`, now.metrics[name], 4, now.bounds[name]);
      setNumber(`hard.${name}`, hard.metrics[name], 4);
    }
    setNumber("soft.share", now.share, 4, now.shareBound);
    byId("share-bar").style.setProperty("--part", `${Math.min(100, 100 * now.share)}%`);
    setText("share", percent(now.share));
    setText("soft-class", `${joint.class} against the rest`);
    setText("soft-damped", joint.uncertainty === null ? "There is no damping." : `Damping uses ${joint.label}.`);
    setText("chosen-damping", `d = ${short(d)} (chosen)`);
    const uncertainty = jointOf(joint.class_index).length > 1 ? ` --uncertainty ${shellQuoted(joint.uncertainty ?? "none")}` : "";
    setText("command", `dask-uncert sweep . --class ${shellQuoted(joint.class)}${uncertainty} --threshold ${short(state.t)} --sigma ${short(state.sigma)} --damping ${short(d)}`);
    for (const [name, label] of Object.entries(CAPTIONS)) {
      setText(`caption-${name}`, `${label} ${number(now.metrics[name], 4)}, ${percent(now.share)} of weight left`);
    }
    setText("caption-share", `${percent(now.share)} of the weight of ${plain(joint.counted, 0)} pixels`);
    charts.schedule("soft", () => charts.soft(joint, { t: state.t, sigma: state.sigma, damping: d }, now));
  }

  function showUncertainty() {
    if (!data.measures.length) return;
    const measure = data.measures[state.measure], [wrong, correct] = metrics.cumulative(measure, state.class);
    const tau = measure.edges[state.bin + 1], now = metrics.uncertaintyConfusion(wrong, correct, state.bin);
    for (const key of ["TC", "FU", "FC", "TU"]) setNumber(`uncertainty.${key}`, now[key], 0);
    for (const key of ["USen", "USpe", "UPre", "UAcc", "coverage", "risk"]) setNumber(`uncertainty.${key}`, now[key], 4);
    const classes = state.class >= 0 && measure.by_class ? `reference class ${data.classes[state.class]}` : "all classes";
    setText("uncertainty-pixels", `${measure.label}, ${plain(now.all, 0)} pixels, ${classes}`);
    setText("measure", measure.label);
    setText("tau", `τ\u00a0=\u00a0${short(tau)}${measure.unit ? ` ${measure.unit}` : ""}`);
    setText("caption-ecdf", `u ≤ τ: ${percent(now.correct)} of correct, ${percent(now.wrong)} of wrong`);
    setText("caption-uncertainty", `At τ: UAcc ${number(now.UAcc, 4)}, USen ${number(now.USen, 4)}`);
    setText("caption-risk", `${percent(now.coverage)} kept: error rate ${percent(now.risk)}; all kept: ${percent(now.error)}`);
    charts.schedule("uncertainty", () => charts.uncertainty(measure, state.class, tau, now));
  }

  function showReliability() {
    if (!data.calibration.length) return; // the prediction was class codes
    const bins = metrics.reliability(state.class);
    setNumber("calibration.ece", bins.ece, 4);
    setNumber("calibration.mce", bins.mce, 4);
    setText("calibration-of", state.class < 0 ? "Confidence of the predicted class." : `Predicted probability of ${data.classes[state.class]}.`);
    byId("bins").replaceChildren(...bins.n.map((n, i) => {
      const row = document.createElement("tr"), head = document.createElement("th");
      head.scope = "row";
      head.textContent = `${plain(bins.low[i], 3)} to ${plain(bins.high[i], 3)}`;
      const shares = [bins.stated[i], bins.observed[i], bins.observed[i] - bins.stated[i]];
      const cells = [plain(n, 0), ...shares.map((value) => number(value, 3))];
      row.append(head, ...cells.map((text) => Object.assign(document.createElement("td"), { textContent: text })));
      return row;
    }));
    charts.schedule("reliability", () => charts.reliability(bins));
  }

  // ---- controls: a slider and a number box for the same value

  const controls = {};
  function addControl(id, { read, write, update }) {
    const slider = byId(id), box = byId(`${id}-box`);
    if (!slider) return;
    const sync = (source) => {
      const value = write();
      if (source !== slider) slider.value = value.slider;
      if (source !== box) box.value = value.box;
      slider.setAttribute("aria-valuetext", value.box);
    };
    controls[id] = { slider, box, sync };
    for (const source of [slider, box]) {
      source.addEventListener("input", () => {
        if (!source.checkValidity() || Number.isNaN(source.valueAsNumber)) return;
        read(source.valueAsNumber, source);
        sync(source);
        update();
        describe();
      });
    }
    box.addEventListener("change", () => sync(null)); // an invalid value is replaced by the current one
  }

  function enable(id, on) {
    if (controls[id]) controls[id].slider.disabled = controls[id].box.disabled = !on;
  }

  for (const id of SOFT_CONTROLS) {
    addControl(id, {
      read: (value) => { state[id] = value; },
      write: () => ({ slider: state[id], box: short(state[id]) }),
      update: showSoft,
    });
  }

  const edges = () => data.measures[state.measure].edges;
  addControl("tau", {
    read: (value, source) => { state.bin = source.type === "range" ? value - 1 : nearestBin(edges(), value); },
    write: () => ({ slider: state.bin + 1, box: short(edges()[state.bin + 1]) }),
    update: showUncertainty,
  });

  function setOptions(select, pairs) {
    select.replaceChildren(...pairs.map(([value, text]) => new Option(text, value)));
  }

  function chooseClass(index) {
    state.class = index;
    const joint = jointOf(index), before = state.joint;
    state.joint = joint.find((other) => before && other.uncertainty === before.uncertainty) ?? joint[0] ?? null;
    byId("class").value = index;
    setOptions(byId("damped-by"), joint.map((other, i) => [i, other.label ?? "nothing"]));
    byId("damped-by").value = joint.indexOf(state.joint);
    byId("damped-by-field").hidden = joint.length < 2;
    setTicks("t", state.joint ? state.joint.thresholds : []);
    showAll();
    describe();
  }

  const middle = (thresholds) => thresholds[Math.floor((thresholds.length - 1) / 2)];

  function chooseMeasure(index) {
    state.measure = index;
    const measure = data.measures[index];
    byId("tau").max = measure.edges.length - 1;
    state.bin = nearestBin(measure.edges, middle(measure.thresholds) ?? measure.reach / 2);
    setTicks("tau", measure.thresholds.map((tau) => nearestBin(measure.edges, tau) + 1));
    byId("tau-unit").textContent = measure.unit;
    controls.tau.sync(null);
    showUncertainty();
    describe();
  }

  function setTicks(id, values) {
    byId(`${id}-ticks`)?.replaceChildren(...values.map((value) => new Option("", value)));
  }

  function showAll() {
    showSoft();
    showUncertainty();
    showReliability();
  }

  // Shows the settings as text: in print, in the folded bar and, after a pause, for screen readers.
  let timer = 0;
  function describe() {
    const measure = data.measures[state.measure];
    const settings = [state.class < 0 ? "all classes" : data.classes[state.class]];
    if (state.joint) settings.push(`t ${short(state.t)}`, `σ ${short(state.sigma)}`, `d ${short(currentDamping())}`);
    if (measure) settings.push(`${measure.label}, τ ${short(measure.edges[state.bin + 1])}`);
    setText("settings", settings.join(" · "));
    clearTimeout(timer);
    timer = setTimeout(() => {
      const text = (selector) => document.querySelector(selector)?.textContent;
      byId("status").textContent = [
        settings.join(", "),
        state.joint ? `F1 ${text('[data-number="soft.f1"]')}, ${text('[data-text="share"]')} of weight left` : "",
        measure ? `uncertainty accuracy ${text('[data-number="uncertainty.UAcc"]')}` : "",
      ].filter(Boolean).join("; ");
    }, 600);
  }

  // ---- start

  function reset() {
    const first = data.joint[0];
    Object.assign(state, data.start, { t: middle(first?.thresholds ?? []) ?? 0.5 });
    for (const id of SOFT_CONTROLS) controls[id]?.sync(null);
    chooseClass(first ? first.class_index : -1);
    if (data.measures.length) {
      byId("measure").value = 0;
      chooseMeasure(0);
    }
  }

  byId("explorer").hidden = false;
  for (const link of document.querySelectorAll("[data-explorer-link]")) link.hidden = false;
  setOptions(byId("class"), [[-1, "All classes"], ...data.classes.map((name, i) => [i, name])]);
  byId("class").addEventListener("change", (event) => chooseClass(Number(event.target.value)));
  byId("damped-by").addEventListener("change", (event) => {
    state.joint = jointOf(state.class)[Number(event.target.value)];
    setTicks("t", state.joint.thresholds);
    showSoft();
    describe();
  });
  byId("soft-choices")?.replaceChildren(...[...new Set(data.joint.map((joint) => joint.class_index))].map((index) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = data.classes[index];
    button.addEventListener("click", () => { chooseClass(index); byId("class").focus(); });
    return button;
  }));
  if (byId("measure")) {
    setOptions(byId("measure"), data.measures.map((measure, i) => [i, measure.label]));
    byId("measure").addEventListener("change", (event) => chooseMeasure(Number(event.target.value)));
  }
  byId("reset").addEventListener("click", reset);
  matchMedia("(max-width: 899px)").addEventListener("change", () => { byId("dock").open = true; });
  reset();
  charts.embed().then(showAll);
})();
