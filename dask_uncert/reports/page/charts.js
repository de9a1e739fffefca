// Fills the sources of the charts and moves their ranges, at most once per frame.
"use strict";
const charts = (() => {
  const { data, softCurve, cumulative, uncertaintyConfusion } = metrics;
  const SIGMAS = Array.from({ length: 26 }, (_, i) => i / 50);
  const SOFT_METRICS = ["f1", "accuracy", "precision", "recall", "false_positive_rate"];
  const UNCERTAINTY_METRICS = ["USen", "USpe", "UPre", "UAcc"];
  const dampings = JSON.parse(document.getElementById("explorer").dataset.dampings);
  let models = null; // Bokeh's document, once it is there

  async function embed() {
    if (!window.Bokeh) return;
    const { doc, roots } = JSON.parse(document.getElementById("explorer-charts").textContent);
    Object.entries(roots).filter(([, id]) => !document.getElementById(id)).forEach(([root, id]) => {
      const hidden = document.createElement("div"); // Bokeh would append a chart without an element to the page
      Object.assign(hidden, { id: roots[root] = `hidden-${id}`, hidden: true });
      document.body.append(hidden);
    });
    await Bokeh.embed.embed_items({ explorer: doc }, [{ docid: "explorer", roots, root_ids: Object.keys(roots) }]);
    models = Bokeh.documents.at(-1);
  }

  const waiting = new Map();
  let frame = 0;
  function schedule(name, draw) { // runs the latest drawing of each name in the next frame
    waiting.set(name, draw);
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      const due = [...waiting.values()];
      waiting.clear();
      if (models) due.forEach((draw) => draw());
    });
  }

  const model = (name) => models.get_model_by_name(name);
  const fill = (name, columns) => { model(name).data = columns; };
  const row = (names, values) => Object.fromEntries(names.map((name) => [name, [values[name]]]));
  const column = (rows, key) => rows.map((values) => values[key]);

  // ---- soft confusion against sigma: a curve for each fixed damping, and one for the chosen damping

  const drawn = { fixed: "", chosen: "" }; // settings of the drawn curves

  function soft(joint, { t, sigma, damping }, now) {
    const sigmas = SIGMAS.map((value) => value * Math.max(1, sigma / 0.5));
    const curve = (d) => softCurve(joint, t, d, sigmas, SOFT_METRICS);
    const fixed = [data.joint.indexOf(joint), t, sigmas.at(-1)].join(), chosen = `${fixed},${damping}`;
    if (fixed !== drawn.fixed) {
      drawn.fixed = fixed;
      const empty = Object.fromEntries(Object.keys(model("curve-chosen").data).map((key) => [key, []]));
      dampings.forEach((d, i) => fill(`curve-${i}`, joint.uncertainty === null && d > 0 ? empty : curve(d)));
      model("sigma-range").end = sigmas.at(-1);
    }
    if (chosen !== drawn.chosen) {
      drawn.chosen = chosen;
      fill("curve-chosen", curve(damping));
      const curves = ["chosen", ...dampings.keys()].map((name) => model(`curve-${name}`).data);
      for (const name of SOFT_METRICS) fitRange(model(`${name}-range`), curves.flatMap((columns) => columns[name].filter(Number.isFinite)));
    }
    fill("now", { sigma: [sigma], share: [now.share], ...row(SOFT_METRICS, now.metrics) });
  }

  // Sets a range that includes the values, in steps of a tenth, or finer if all values are small.
  function fitRange(range, values) {
    const low = Math.min(...values, 1), high = Math.max(...values, 0);
    const step = high < 0.1 ? 10 ** Math.floor(Math.log10(Math.max(high, 1e-6))) : 0.1;
    const start = high < 0.1 ? 0 : Math.max(0, Math.floor((low - 0.005) / step) * step);
    range.start = start;
    range.end = Math.max(start + step, Math.ceil(high / step + 0.05) * step) + 0.02 * step;
  }

  // ---- certain and uncertain predictions

  function uncertainty(measure, classIndex, tau, now) {
    const [wrong, correct] = cumulative(measure, classIndex), edges = Array.from(measure.edges.subarray(1));
    for (const [name, counts] of [["correct", correct], ["wrong", wrong]]) {
      const all = counts.at(-1), share = [0, ...counts].map((n) => all === 0 ? NaN : n / all);
      fill(`ecdf-${name}`, withoutRepeats({ u: [0, ...edges], share }, "share"));
    }
    const rows = edges.map((_, bin) => uncertaintyConfusion(wrong, correct, bin));
    fill("tau-curves", { tau: edges, ...Object.fromEntries(UNCERTAINTY_METRICS.map((key) => [key, column(rows, key)])) });
    fill("tau", { tau: [tau], ...row(["coverage", "risk", "correct", "wrong", ...UNCERTAINTY_METRICS], now) });
    model("u-range").end = measure.reach;
    const risk = riskCurve(rows), others = data.measures.filter((other) => other !== measure).map((other) => {
      const [wrong, correct] = cumulative(other, classIndex);
      return riskCurve(Array.from(wrong, (_, bin) => uncertaintyConfusion(wrong, correct, bin)));
    });
    fill("risk", risk);
    fill("risk-others", { coverage: column(others, "coverage"), risk: column(others, "risk") });
    fill("risk-all", { coverage: [0, 1], risk: [now.error, now.error] });
    const top = Math.max(...[risk, ...others].flatMap((curve) => curve.risk.filter(Number.isFinite)), 0);
    model("risk-range").end = Math.min(1.02, 1.08 * top || 1);
  }

  const riskCurve = (rows) => withoutRepeats({ coverage: column(rows, "coverage"), risk: column(rows, "risk") }, "coverage");

  // Removes points of a curve whose neighbours have the same value.
  function withoutRepeats(columns, key) {
    const values = columns[key], kept = values.map((v, i) => i === 0 || i === values.length - 1 || v !== values[i - 1] || v !== values[i + 1]);
    return Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, column.filter((_, i) => kept[i])]));
  }

  function reliability({ n, low, high, stated, observed }) {
    fill("reliability", { low, high, stated, observed, n });
    model("bin-range").end = 1.1 * Math.max(...n) || 1;
  }

  // ---- printing: a picture of each chart

  addEventListener("beforeprint", () => {
    if (!models) return;
    for (const root of models.roots()) {
      const element = document.getElementById(root.name);
      const layer = Bokeh.index.get_by_id(root.id)?.export("svg", false);
      if (!element || !layer) continue;
      const picture = document.createElement("div");
      picture.className = "on-paper";
      picture.innerHTML = layer.ctx.get_serialized_svg(true);
      const svg = picture.firstElementChild;
      svg.setAttribute("viewBox", `0 0 ${svg.getAttribute("width")} ${svg.getAttribute("height")}`);
      svg.removeAttribute("width");
      svg.removeAttribute("height");
      element.after(picture);
    }
  });
  addEventListener("afterprint", () => document.querySelectorAll(".on-paper").forEach((picture) => picture.remove()));

  return { embed, schedule, soft, uncertainty, reliability };
})();
