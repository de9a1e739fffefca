// What is counted in this page, and every number that is read off it. See explorer.py for the payload.
"use strict";
const readings = (() => {
  const M = mathematics;
  const given = decodePayload(JSON.parse(document.getElementById("explorer-data").textContent));
  const cache = { record: null, t: null, sums: new Map(), factors: new Map() };

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

  const recordsOf = (index) => given.records.filter((one) => one.class_index === index);

  // ---- soft confusion; what depends on the record alone, or on the threshold too, is worked out once

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

  // Soft confusions of a record over sigmas, as columns: metrics and share, and the ends of what they may be.
  function curve(record, t, damping, sigmas, names) {
    const points = sigmas.map((sigma) => soft(record, t, sigma, damping)), columns = { sigma: sigmas };
    for (const key of ["share", ...names]) {
      const middle = points.map((one) => key === "share" ? one.share : one.metrics[key]);
      const off = points.map((one) => key === "share" ? one.shareBound : one.bounds[key]);
      columns[key] = middle;
      columns[`${key}_low`] = middle.map((value, i) => Math.max(0, value - off[i]));
      columns[`${key}_high`] = middle.map((value, i) => Math.min(1, value + off[i]));
    }
    return columns;
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

  // The bin whose upper edge is nearest to tau: counts are exact at edges alone.
  function nearestBin(edges, tau) {
    let best = 0;
    for (let b = 1; b < edges.length - 1; b++) if (Math.abs(edges[b + 1] - tau) < Math.abs(edges[best + 1] - tau)) best = b;
    return best;
  }

  // ---- calibration of the winning class (-1) or of one class against the rest

  function reliability(chosen) {
    const bins = given.calibration[chosen + 1], n = Array.from(bins.n);
    const mean = (sums) => n.map((one, i) => one ? sums[i] / one : NaN);
    const stated = mean(bins.stated), observed = mean(bins.hits), total = n.reduce((sum, one) => sum + one, 0);
    const gaps = n.reduce((sum, _, i) => sum + Math.abs(bins.hits[i] - bins.stated[i]), 0);
    const largest = Math.max(...n.map((one, i) => one ? Math.abs(stated[i] - observed[i]) : -1));
    return {
      n, stated, observed, ece: total ? gaps / total : NaN, mce: largest < 0 ? NaN : largest,
      low: n.map((_, i) => i / n.length), high: n.map((_, i) => (i + 1) / n.length),
    };
  }

  return { given, recordsOf, soft, curve, cumulative, uncertaintyConfusion, nearestBin, reliability };
})();
