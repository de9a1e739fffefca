// The counts in this page (see payload.py), and every metric computed from them.
"use strict";
const metrics = (() => {
  const { asStored, total } = softConfusion;
  const data = decodePayload(JSON.parse(document.getElementById("explorer-data").textContent));
  const cache = { joint: null, t: null, sums: new Map(), factors: new Map() };
  const ratio = (a, b) => b === 0 ? NaN : a / b;

  function decode({ dtype, data }) {
    const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
    const kind = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i4: Int32Array, f8: Float64Array }[dtype];
    return new kind(bytes.buffer);
  }

  function decodePayload(payload) {
    const decoded = (value) => value?.data !== undefined ? decode(value) : Array.isArray(value) ? value.map(decoded) : value;
    const decodeArrays = (item) => Object.fromEntries(Object.entries(item).map(([key, value]) => [key, decoded(value)]));
    return {
      ...payload,
      joint: payload.joint.map(decodeArrays),
      measures: payload.measures.map(decodeArrays),
      calibration: payload.calibration.map(decodeArrays),
      edges: decode(payload.edges),
      thresholds: payload.thresholds.map(decodeArrays),
    };
  }

  const jointOf = (classIndex) => data.joint.filter((joint) => joint.class_index === classIndex);

  // ---- soft confusion; results that depend only on the histogram and the threshold are cached

  function cacheFor(joint, t) {
    if (cache.joint !== joint) cache.sums.clear();
    if (cache.joint !== joint || cache.t !== t) cache.factors.clear();
    return Object.assign(cache, { joint, t });
  }

  function cached(map, key, compute) {
    if (map.size > 200) map.clear();
    if (!map.has(key)) map.set(key, compute());
    return map.get(key);
  }

  // Returns cells, metrics and share of weight left at a setting, with their error bounds.
  function soft(joint, threshold, sigma, damping) {
    const t = asStored(threshold, joint.dtype), { sums, factors } = cacheFor(joint, t);
    const { values, errors } = softConfusion.cells(
      joint,
      cached(sums, damping, () => softConfusion.dampedSums(joint, damping)),
      cached(factors, sigma, () => softConfusion.rowFactors(joint, t, sigma)), referenceThreshold(joint, threshold), sigma);
    return {
      cells: values, errors, metrics: softConfusion.cellMetrics(values), bounds: softConfusion.metricBounds(values, errors),
      share: total(values) / joint.counted, shareBound: total(errors) / joint.counted,
    };
  }

  // The threshold of the reference is that of p unless the job sets another; a fuzzy reference has its own dtype.
  const referenceThreshold = (joint, threshold) => joint.reference_dtype === null
    ? asStored(threshold, joint.dtype)
    : asStored(joint.reference_threshold ?? threshold, joint.reference_dtype);

  // Returns metrics and share against sigma as columns, with the ends of their error bounds.
  function softCurve(joint, t, damping, sigmas, names) {
    const points = sigmas.map((sigma) => soft(joint, t, sigma, damping)), columns = { sigma: sigmas };
    for (const key of ["share", ...names]) {
      const values = points.map((point) => key === "share" ? point.share : point.metrics[key]);
      const bounds = points.map((point) => key === "share" ? point.shareBound : point.bounds[key]);
      columns[key] = values;
      columns[`${key}_low`] = values.map((value, i) => Math.max(0, value - bounds[i]));
      columns[`${key}_high`] = values.map((value, i) => Math.min(1, value + bounds[i]));
    }
    return columns;
  }

  // ---- uncertainty confusion, distributions, risk

  // Returns cumulative counts of wrong and correct predictions of a reference class or of all classes (-1).
  function cumulative(measure, classIndex) {
    const bins = measure.edges.length - 1, all = classIndex < 0 || !measure.by_class;
    const counts = all ? measure.all : measure.by_class, start = all ? 0 : 2 * bins * classIndex;
    return [0, 1].map((correct) => {
      const sums = new Float64Array(bins);
      for (let b = 0, sum = 0; b < bins; b++) sums[b] = sum += counts[start + correct * bins + b];
      return sums;
    });
  }

  function uncertaintyConfusion(wrong, correct, bin) {
    const TC = correct[bin], FU = correct.at(-1) - TC, FC = wrong[bin], TU = wrong.at(-1) - FC;
    const all = TC + FU + FC + TU;
    return {
      TC, FU, FC, TU,
      USen: ratio(TU, TU + FC), USpe: ratio(TC, TC + FU), UPre: ratio(TU, TU + FU), UAcc: ratio(TU + TC, all),
      coverage: ratio(TC + FC, all), risk: ratio(FC, TC + FC), all, error: ratio(FC + TU, all),
      correct: ratio(TC, TC + FU), wrong: ratio(FC, FC + TU),
    };
  }

  // Returns the bin whose upper edge is nearest to tau, because counts are exact only at edges.
  function nearestBin(edges, tau) {
    let best = 0;
    for (let b = 1; b < edges.length - 1; b++) if (Math.abs(edges[b + 1] - tau) < Math.abs(edges[best + 1] - tau)) best = b;
    return best;
  }

  // ---- calibration of the predicted class (-1), or of one class against the rest

  function reliability(classIndex) {
    const bins = data.calibration[classIndex + 1], n = Array.from(bins.n), pixels = total(n);
    const [stated, observed] = [bins.stated, bins.hits].map((sums) => n.map((count, i) => ratio(sums[i], count)));
    const gaps = total(n.map((_, i) => Math.abs(bins.hits[i] - bins.stated[i])));
    const largest = Math.max(...n.map((count, i) => count ? Math.abs(stated[i] - observed[i]) : -1));
    return {
      n, stated, observed, ece: ratio(gaps, pixels), mce: largest < 0 ? NaN : largest,
      low: n.map((_, i) => i / n.length), high: n.map((_, i) => (i + 1) / n.length),
    };
  }

  return { data, jointOf, soft, softCurve, cumulative, uncertaintyConfusion, nearestBin, reliability };
})();
