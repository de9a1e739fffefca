// The charts: Bokeh's sources are filled, its ranges moved. Charts are drawn once a frame, however often asked for.
"use strict";
const drawing = (() => {
  const { given, curve, cumulative, uncertaintyConfusion } = readings;
  const SIGMAS = Array.from({ length: 26 }, (_, i) => i / 50);
  const METRICS = ["f1", "accuracy", "precision", "recall", "false_positive_rate"];
  const UNCERTAIN = ["USen", "USpe", "UPre", "UAcc"];
  const dampings = JSON.parse(document.getElementById("explorer").dataset.dampings);
  let models = null; // Bokeh's document, once it is there

  async function embed() {
    if (!window.Bokeh) return;
    const { doc, roots } = JSON.parse(document.getElementById("explorer-charts").textContent);
    Object.entries(roots).filter(([, id]) => !document.getElementById(id)).forEach(([root, id]) => {
      const spare = document.createElement("div"); // of a chart that this page has not: Bokeh would put it at the end
      Object.assign(spare, { id: roots[root] = `spare-${id}`, hidden: true });
      document.body.append(spare);
    });
    await Bokeh.embed.embed_items({ explorer: doc }, [{ docid: "explorer", roots, root_ids: Object.keys(roots) }]);
    models = Bokeh.documents.at(-1);
  }

  const waiting = new Map();
  let frame = 0;
  function later(name, draw) { // once a frame; the last of each name
    waiting.set(name, draw);
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      const due = [...waiting.values()];
      waiting.clear();
      if (models) due.forEach((one) => one());
    });
  }

  const model = (name) => models.get_model_by_name(name);
  const fill = (name, data) => { model(name).data = data; };
  const picked = (names, from) => Object.fromEntries(names.map((name) => [name, [from[name]]]));

  // ---- soft confusion against sigma: a curve for each of a few dampings, and that of the chosen one

  const drawnFor = { fixed: "", own: "" };

  function soft(record, { t, sigma, damping }, now) {
    const sigmas = SIGMAS.map((one) => one * Math.max(1, sigma / 0.5));
    const curveOf = (d) => curve(record, t, d, sigmas, METRICS);
    const fixed = [given.records.indexOf(record), t, sigmas.at(-1)].join(), own = `${fixed},${damping}`;
    if (fixed !== drawnFor.fixed) {
      drawnFor.fixed = fixed;
      const nothing = Object.fromEntries(Object.keys(model("curve-own").data).map((key) => [key, []]));
      dampings.forEach((d, i) => fill(`curve-${i}`, record.uncertainty === null && d > 0 ? nothing : curveOf(d)));
      model("sigma-range").end = sigmas.at(-1);
    }
    if (own !== drawnFor.own) {
      drawnFor.own = own;
      fill("curve-own", curveOf(damping));
      const all = ["own", ...dampings.keys()].map((i) => model(`curve-${i}`).data);
      for (const name of METRICS) stretch(model(`${name}-range`), all.flatMap((one) => one[name].filter(Number.isFinite)));
    }
    fill("now", { sigma: [sigma], share: [now.share], ...picked(METRICS, now.metrics) });
  }

  // A range of tenths that holds the values; of finer steps where they are all small.
  function stretch(range, values) {
    const low = Math.min(...values, 1), high = Math.max(...values, 0);
    const step = high < 0.1 ? 10 ** Math.floor(Math.log10(Math.max(high, 1e-6))) : 0.1;
    const start = high < 0.1 ? 0 : Math.max(0, Math.floor((low - 0.005) / step) * step);
    range.start = start;
    range.end = Math.max(start + step, Math.ceil(high / step + 0.05) * step) + 0.02 * step;
  }

  // ---- what tau parts

  function certain(measure, chosen, tau, now) {
    const [wrong, right] = cumulative(measure, chosen), edges = Array.from(measure.edges.subarray(1));
    for (const [name, counts] of [["correct", right], ["wrong", wrong]]) {
      const all = counts.at(-1), share = [0, ...counts].map((n) => all === 0 ? NaN : n / all);
      fill(`ecdf-${name}`, thinned({ u: [0, ...edges], share }, "share"));
    }
    const table = edges.map((_, bin) => uncertaintyConfusion(wrong, right, bin));
    fill("tau-curves", { tau: edges, ...Object.fromEntries(UNCERTAIN.map((key) => [key, table.map((one) => one[key])])) });
    fill("tau", { tau: [tau], ...picked(["coverage", "risk", "correct", "wrong", ...UNCERTAIN], now) });
    model("u-range").end = measure.reach;
    const risk = riskCurve(table), others = given.measures.filter((one) => one !== measure).map((one) => {
      const [w, r] = cumulative(one, chosen);
      return riskCurve(Array.from(w, (_, bin) => uncertaintyConfusion(w, r, bin)));
    });
    fill("risk", risk);
    fill("risk-others", { coverage: others.map((one) => one.coverage), risk: others.map((one) => one.risk) });
    fill("risk-all", { coverage: [0, 1], risk: [now.error, now.error] });
    const top = Math.max(...[risk, ...others].flatMap((one) => one.risk.filter(Number.isFinite)), 0);
    model("risk-range").end = Math.min(1.02, 1.08 * top || 1);
  }

  const riskCurve = (table) =>
    thinned({ coverage: table.map((one) => one.coverage), risk: table.map((one) => one.risk) }, "coverage");

  // A curve without the points at which nothing happens.
  function thinned(columns, key) {
    const values = columns[key], kept = values.map((v, i) => i === 0 || i === values.length - 1 || v !== values[i - 1] || v !== values[i + 1]);
    return Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, column.filter((_, i) => kept[i])]));
  }

  function reliability(found) {
    fill("reliability", { low: found.low, high: found.high, stated: found.stated, observed: found.observed, n: found.n });
    model("bin-range").end = 1.1 * Math.max(...found.n) || 1;
  }

  // ---- on paper: a picture of each chart as it stands

  addEventListener("beforeprint", () => {
    if (!models) return;
    for (const root of models.roots()) {
      const place = document.getElementById(root.name);
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

  return { embed, later, soft, certain, reliability };
})();
