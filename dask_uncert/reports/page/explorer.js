// The explorer: controls move numbers and charts, all from the counts in this page. See explorer.py for the payload.
"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  const M = mathematics;
  const CURVE_SIGMAS = Array.from({ length: 26 }, (_, i) => i / 50);
  const WIDE = 0.05; // as formulas/sweep.py: is_wide
  const SOFT = { f1: "F1", accuracy: "Accuracy", precision: "Precision", recall: "Recall", false_positive_rate: "FPR" };
  const given = decodePayload(JSON.parse(at("explorer-data").textContent));
  const dampings = JSON.parse(at("explorer").dataset.dampings);
  const state = { class: -1, record: null, measure: 0, t: 0.5, sigma: given.start.sigma, damping: given.start.damping, bin: 0 };
  const cache = { record: null, t: null, sums: new Map(), factors: new Map() };
  let models = null; // Bokeh's document, once it is there

  // ---- the payload

  function decoded({ dtype, data }) {
    const bytes = Uint8Array.from(atob(data), (one) => one.charCodeAt(0));
    const kind = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f8: Float64Array }[dtype];
    return new kind(bytes.buffer);
  }

  function decodePayload(payload) {
    const arrays = (one) => Object.fromEntries(
      Object.entries(one).map(([key, value]) => [key, value && value.data !== undefined ? decoded(value) : value]));
    return {
      ...payload,
      records: payload.records.map(arrays),
      measures: payload.measures.map(arrays),
      calibration: payload.calibration.map(arrays),
    };
  }

  // ---- numbers as text; all digits stay in data-value and data-bound

  const plain = (value, digits) => value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });

  function written(value, digits) {
    if (Number.isNaN(value)) return "–";
    if (digits > 0 && value !== 0 && Math.abs(value) < 10 ** -digits) return power(value, 2);
    return plain(value, digits).replace("-", "−");
  }

  function power(value, digits) {
    const [front, exponent] = value.toExponential(digits - 1).replace(/^-/, "−").split("e");
    const raised = exponent.replace("+", "").replace(/./g, (one) => one === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(one)]);
    return `${front}·10${raised}`;
  }

  function show(name, value, digits, bound) {
    for (const out of document.querySelectorAll(`[data-out="${name}"]`)) {
      out.textContent = written(value, digits);
      out.dataset.value = String(value);
    }
    const off = document.querySelector(`[data-bound-of="${name}"]`);
    if (!off || bound === undefined) return;
    const wide = bound > WIDE && digits === 4;
    off.textContent = Number.isNaN(bound) ? "" : `± ${bound < 1e-3 ? power(bound, 1) : plain(bound, 3)}${wide ? ", wide" : ""}`;
    off.classList.toggle("wide", wide);
    off.dataset.bound = String(bound);
  }

  const say = (name, text) => {
    for (const out of document.querySelectorAll(`[data-say="${name}"]`)) out.textContent = text;
  };
  const percent = (share) => Number.isNaN(share) ? "–" : `${plain(100 * share, 1)} %`;

  // ---- soft confusion

  function cachedFor(record, t) {
    if (cache.record !== record) {
      cache.record = record;
      cache.sums.clear();
      cache.factors.clear();
    }
    if (cache.t !== t) {
      cache.t = t;
      cache.factors.clear();
    }
    return cache;
  }

  function remembered(map, key, make) {
    if (map.size > 200) map.clear();
    if (!map.has(key)) map.set(key, make());
    return map.get(key);
  }

  // Everything of one setting: cells, metrics, the share of the weight left, each with its bound.
  function soft(record, typed, sigma, damping) {
    const t = M.asStored(typed, record.dtype), { sums, factors } = cachedFor(record, t);
    const { values, errors } = M.softCells(
      record,
      remembered(sums, damping, () => M.damped(record, damping)),
      remembered(factors, sigma, () => M.rowFactors(record, t, sigma)), referenceLevel(record, typed), sigma);
    const total = (list) => list.reduce((sum, one) => sum + one, 0);
    return {
      cells: values, errors, metrics: M.cellMetrics(values), bounds: M.metricBounds(values, errors),
      share: total(values) / record.counted, shareBound: total(errors) / record.counted,
    };
  }

  // The threshold of the reference: that of p, unless the pass fixed another; a fuzzy one has its own dtype.
  const referenceLevel = (record, typed) => record.reference_dtype === null
    ? M.asStored(typed, record.dtype)
    : M.asStored(record.reference_threshold ?? typed, record.reference_dtype);

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
    const d = dampingNow(), now = soft(record, state.t, state.sigma, d), hard = soft(record, state.t, 0, 0);
    ["TP", "TN", "FP", "FN"].forEach((cell, i) => {
      show(`soft.${cell}`, now.cells[i], 2, now.errors[i]);
      show(`hard.${cell}`, hard.cells[i], 0);
    });
    for (const name of M.METRICS) {
      show(`soft.${name}`, now.metrics[name], 4, now.bounds[name]);
      show(`hard.${name}`, hard.metrics[name], 4);
    }
    show("soft.share", now.share, 4, now.shareBound);
    at("share-bar").style.setProperty("--part", `${Math.min(100, 100 * now.share)}%`);
    say("share", percent(now.share));
    say("soft-class", `${record.class} against the rest`);
    say("soft-damped", record.uncertainty === null ? "nothing damps" : `damped by ${record.label}`);
    say("own-damping", `d = ${short(d)}, chosen`);
    const damps = record.uncertainty !== null && recordsOf(record.class_index).length > 1 ? ` --uncertainty ${quoted(record.uncertainty)}` : "";
    say("command", `dask-uncert sweep . --class ${quoted(record.class)}${damps} --threshold ${short(state.t)} --sigma ${short(state.sigma)} --damping ${short(d)}`);
    for (const [name, label] of Object.entries(SOFT)) {
      say(`beside-${name}`, `${label} ${written(now.metrics[name], 4)} at ${percent(now.share)} of the weight`);
    }
    say("beside-share", `${percent(now.share)} of ${plain(record.counted, 0)} pixels’ weight`);
    later("soft", () => drawSoft(record, now));
  }

  const short = (value) => String(Number(value.toPrecision(12)));
  const quoted = (name) => /^[\w@%+=:,./-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\"'\"'")}'`;

  function curve(record, damping) {
    const columns = { sigma: sigmasShown() };
    const points = columns.sigma.map((sigma) => soft(record, state.t, sigma, damping));
    for (const key of ["share", ...Object.keys(SOFT)]) {
      const middle = points.map((one) => key === "share" ? one.share : one.metrics[key]);
      const off = points.map((one) => key === "share" ? one.shareBound : one.bounds[key]);
      columns[key] = middle;
      columns[`${key}_low`] = middle.map((value, i) => Math.max(0, value - off[i]));
      columns[`${key}_high`] = middle.map((value, i) => Math.min(1, value + off[i]));
    }
    return columns;
  }

  const sigmasShown = () => CURVE_SIGMAS.map((one) => one * Math.max(1, state.sigma / 0.5));

  const drawnFor = { fixed: "", own: "" }; // what the curves that are there were drawn for
  function drawSoft(record, now) {
    if (!models) return;
    const damped = record.uncertainty !== null;
    const fixed = [given.records.indexOf(record), state.t, sigmasShown()[25]].join(), own = `${fixed},${dampingNow()}`;
    if (fixed !== drawnFor.fixed) {
      drawnFor.fixed = fixed;
      dampings.forEach((d, i) => fill(`curve-${i}`, curve(record, damped || i === 0 ? d : 0)));
      models.get_model_by_name("sigma-range").end = sigmasShown()[25];
    }
    if (own !== drawnFor.own) {
      drawnFor.own = own;
      fill("curve-own", curve(record, dampingNow()));
      const all = ["own", ...dampings.keys()].map((i) => models.get_model_by_name(`curve-${i}`).data);
      for (const name of Object.keys(SOFT)) stretch(`${name}-range`, all.flatMap((one) => one[name].filter(Number.isFinite)));
    }
    fill("now", {
      sigma: [state.sigma], share: [now.share], ...Object.fromEntries(Object.keys(SOFT).map((name) => [name, [now.metrics[name]]])),
    });
  }

  // A range of tenths that holds the values; of finer steps where they are all small.
  function stretch(name, values) {
    const range = models.get_model_by_name(name), low = Math.min(...values, 1), high = Math.max(...values, 0);
    const step = high < 0.1 ? 10 ** Math.floor(Math.log10(Math.max(high, 1e-6))) : 0.1;
    const start = high < 0.1 ? 0 : Math.max(0, Math.floor((low - 0.005) / step) * step);
    range.start = start;
    range.end = Math.max(start + step, Math.ceil(high / step + 0.05) * step) + 0.02 * step;
  }

  // ---- uncertainty confusion, distributions, risk

  // Counts of wrong and of right decisions, summed up to each bin; of one reference class or of all.
  function cumulative(measure, chosen) {
    const bins = measure.edges.length - 1, from = chosen < 0 || !measure.by_class ? measure.all : measure.by_class;
    const start = from === measure.all ? 0 : 2 * bins * chosen;
    return [0, 1].map((right) => {
      const found = new Float64Array(bins);
      for (let b = 0, sum = 0; b < bins; b++) found[b] = sum += from[start + right * bins + b];
      return found;
    });
  }

  function uncertaintyConfusion(wrong, right, bin) {
    const TC = right[bin], FU = right.at(-1) - TC, FC = wrong[bin], TU = wrong.at(-1) - FC;
    const ratio = (a, b) => b === 0 ? NaN : a / b, all = TC + FU + FC + TU;
    return {
      TC, FU, FC, TU,
      USen: ratio(TU, TU + FC), USpe: ratio(TC, TC + FU), UPre: ratio(TU, TU + FU), UAcc: ratio(TU + TC, all),
      coverage: ratio(TC + FC, all), risk: ratio(FC, TC + FC), all, error: ratio(FC + TU, all),
      correct: ratio(TC, TC + FU), wrong: ratio(FC, FC + TU),
    };
  }

  function showCertain() {
    if (!given.measures.length) return;
    const measure = given.measures[state.measure], [wrong, right] = cumulative(measure, state.class);
    const tau = measure.edges[state.bin + 1], now = uncertaintyConfusion(wrong, right, state.bin);
    for (const key of ["TC", "FU", "FC", "TU"]) show(`certain.${key}`, now[key], 0);
    for (const key of ["USen", "USpe", "UPre", "UAcc", "coverage", "risk"]) show(`certain.${key}`, now[key], 4);
    const whose = state.class >= 0 && measure.by_class ? `reference class ${given.classes[state.class]}` : "all classes";
    say("certain-of", `${measure.label} over ${plain(now.all, 0)} pixels, ${whose}`);
    say("measure", measure.label);
    say("tau", `τ = ${short(tau)}${measure.unit ? ` ${measure.unit}` : ""}`);
    say("beside-ecdf", `At or below τ: ${percent(now.correct)} of the correct, ${percent(now.wrong)} of the wrong`);
    say("beside-uncertainty", `UAcc ${written(now.UAcc, 4)}, USen ${written(now.USen, 4)} at τ`);
    say("beside-risk", `Keeping ${percent(now.coverage)}, ${percent(now.risk)} of it wrong; all kept: ${percent(now.error)}`);
    later("certain", () => drawCertain(measure, wrong, right, tau, now));
  }

  function drawCertain(measure, wrong, right, tau, now) {
    if (!models) return;
    const edges = Array.from(measure.edges.subarray(1)), ends = [0, ...edges];
    for (const [name, counts] of [["correct", right], ["wrong", wrong]]) {
      const all = counts.at(-1), share = [0, ...counts].map((n) => all === 0 ? NaN : n / all);
      fill(`ecdf-${name}`, thinned({ u: ends, share }, "share"));
    }
    const table = edges.map((_, bin) => uncertaintyConfusion(wrong, right, bin));
    const columns = Object.fromEntries(["USen", "USpe", "UPre", "UAcc"].map((key) => [key, table.map((one) => one[key])]));
    fill("tau-curves", { tau: edges, ...columns });
    fill("tau", Object.fromEntries(
      [["tau", [tau]], ...["coverage", "risk", "USen", "USpe", "UPre", "UAcc", "correct", "wrong"].map((key) => [key, [now[key]]])]));
    models.get_model_by_name("u-range").end = measure.reach;
    const risk = thinned({ coverage: table.map((one) => one.coverage), risk: table.map((one) => one.risk) }, "coverage");
    const others = given.measures.filter((one) => one !== measure).map((one) => {
      const [w, r] = cumulative(one, state.class);
      const points = Array.from(w, (_, bin) => uncertaintyConfusion(w, r, bin));
      return thinned({ coverage: points.map((p) => p.coverage), risk: points.map((p) => p.risk) }, "coverage");
    });
    fill("risk", risk);
    fill("risk-others", { coverage: others.map((one) => one.coverage), risk: others.map((one) => one.risk) });
    fill("risk-all", { coverage: [0, 1], risk: [now.error, now.error] });
    const top = Math.max(...[risk, ...others].flatMap((one) => one.risk.filter(Number.isFinite)), 0);
    models.get_model_by_name("risk-range").end = Math.min(1.02, 1.08 * top || 1);
  }

  // A curve without the points at which nothing happens.
  function thinned(columns, key) {
    const values = columns[key], kept = values.map((v, i) => i === 0 || i === values.length - 1 || v !== values[i - 1] || v !== values[i + 1]);
    return Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, column.filter((_, i) => kept[i])]));
  }

  // ---- reliability

  function showReliability() {
    const bins = given.calibration[state.class + 1], n = Array.from(bins.n), m = n.length;
    const observed = n.map((one, i) => one ? bins.hits[i] / one : NaN), stated = n.map((one, i) => one ? bins.stated[i] / one : NaN);
    const total = n.reduce((sum, one) => sum + one, 0);
    const gaps = n.map((_, i) => Math.abs(bins.hits[i] - bins.stated[i])).reduce((sum, one) => sum + one, 0);
    const ece = total ? gaps / total : NaN, mce = Math.max(...stated.map((one, i) => Number.isNaN(one) ? -1 : Math.abs(one - observed[i])));
    show("calibration.ece", ece, 4);
    show("calibration.mce", mce < 0 ? NaN : mce, 4);
    say("calibration-of", state.class < 0 ? "the winning class’s confidence" : `the probability of ${given.classes[state.class]}`);
    at("bins").replaceChildren(...n.map((one, i) => {
      const row = document.createElement("tr"), head = document.createElement("th");
      head.scope = "row";
      head.textContent = `${plain(i / m, 3)} to ${plain((i + 1) / m, 3)}`;
      const cells = [plain(one, 0), ...[stated[i], observed[i], observed[i] - stated[i]].map((value) => written(value, 3))];
      row.append(head, ...cells.map((text) => Object.assign(document.createElement("td"), { textContent: text })));
      return row;
    }));
    later("reliability", () => {
      if (!models) return;
      fill("reliability", { low: n.map((_, i) => i / m), high: n.map((_, i) => (i + 1) / m), stated, observed, n });
      models.get_model_by_name("bin-range").end = 1.1 * Math.max(...n) || 1;
    });
  }

  // ---- charts

  const waiting = new Map();
  let frame = 0;
  function later(name, draw) { // once a frame; the last of each name
    waiting.set(name, draw);
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      const due = [...waiting.values()];
      waiting.clear();
      due.forEach((one) => one());
    });
  }

  function fill(name, data) {
    models.get_model_by_name(name).data = data;
  }

  async function embed() {
    if (!window.Bokeh) return;
    const { doc, roots: all } = JSON.parse(at("explorer-charts").textContent);
    const roots = Object.fromEntries(Object.entries(all).filter(([, id]) => at(id)));
    await Bokeh.embed.embed_items({ explorer: doc }, [{ docid: "explorer", roots, root_ids: Object.keys(roots) }]);
    models = Bokeh.documents.at(-1);
    showAll();
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

  function nearestBin(edges, tau) {
    let best = 0;
    for (let b = 1; b < edges.length - 1; b++) if (Math.abs(edges[b + 1] - tau) < Math.abs(edges[best + 1] - tau)) best = b;
    return best;
  }

  function options(select, pairs) {
    select.replaceChildren(...pairs.map(([value, text]) => new Option(text, value)));
  }

  const recordsOf = (index) => given.records.filter((one) => one.class_index === index);

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

  // ---- paper: a picture of each chart as it stands

  addEventListener("beforeprint", () => {
    if (!models) return;
    for (const root of models.roots()) {
      const place = at(root.name);
      const layer = Bokeh.index.get_by_id(root.id)?.export("svg", false);
      if (!place || !layer) continue;
      const picture = document.createElement("div");
      picture.className = "on-paper";
      picture.innerHTML = layer.ctx.get_serialized_svg(true);
      const svg = picture.firstElementChild;
      svg.setAttribute("viewBox", `0 0 ${svg.getAttribute("width")} ${svg.getAttribute("height")}`);
      svg.removeAttribute("width");
      svg.removeAttribute("height");
      place.after(picture);
    }
  });
  addEventListener("afterprint", () => document.querySelectorAll(".on-paper").forEach((one) => one.remove()));

  // ---- begin

  function begin() {
    at("explorer").hidden = false;
    for (const one of document.querySelectorAll("[data-explorer-link]")) one.hidden = false;
    const kept = new Set(given.records.map((one) => one.class_index));
    options(at("class"), [[-1, "All classes"], ...given.classes.map((name, i) => [i, name])]);
    at("class").addEventListener("change", (event) => pickClass(Number(event.target.value)));
    at("record").addEventListener("change", (event) => {
      state.record = recordsOf(state.class)[Number(event.target.value)];
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
    embed();
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
