// The soft confusion at any threshold, spread and damping, computed from a joint histogram, with its error bounds.
// The formulas are those of formulas/soft_sweep.py, in float64. This script does not use the page.
"use strict";
const softConfusion = (() => {
  const ROOT = Math.sqrt(2 / Math.PI);
  const ROUNDING = 2 ** -42; // error per pixel from fixed point and from sums over rows
  const METRICS = ["accuracy", "precision", "recall", "false_positive_rate", "f1", "specificity",
    "negative_predictive_value", "balanced_accuracy", "iou", "matthews", "kappa"];
  const SIGNED = ["matthews", "kappa"];

  // A(z) = erf(z / sqrt 2), z >= 0. All terms of sqrt(2/pi) exp(-z^2/2) sum z^(2n+1) / (2n+1)!! are positive.
  function certainty(z) {
    if (!(z < 8.5)) return 1; // in float64
    let term = z, sum = z;
    for (let n = 3; term > sum * 1e-17; n += 2) sum += term *= z * z / n;
    return Math.min(1, ROOT * Math.exp(-z * z / 2) * sum);
  }

  const total = (values) => values.reduce((sum, value) => sum + value, 0);
  const slope = (z) => ROOT * Math.exp(-z * z / 2);
  const clamp = (x, low, high) => Math.min(Math.max(x, low), high);

  // Error bound of a tangent to A(z) within `reach` of its point, for z from nearest to furthest.
  function tangentError(nearest, furthest, reach) {
    const z = clamp(1, nearest, furthest);
    return 0.5 * z * slope(z) * reach * reach;
  }

  // exp(-x) I_k(x), k = 0 .. most - 1. I_(k-1) = I_(k+1) + 2k/x I_k is stable downwards; I_0 + 2 sum I_k = exp(x).
  function bessel(most, x) {
    const values = new Float64Array(most);
    if (x < 1e-280) {
      values[0] = 1;
      return values;
    }
    let above = 0, here = 1e-280, sum = 0;
    for (let k = most + 32 + Math.ceil(9 * Math.sqrt(x)); k >= 0; k--) {
      if (k < most) values[k] = here;
      sum += (k ? 2 : 1) * here;
      [above, here] = [here, above + 2 * k / x * here];
      if (here > 1e250) {
        above /= here;
        sum /= here;
        for (let j = k; j < most; j++) values[j] /= here;
        here = 1;
      }
    }
    return values.map((value) => value / sum);
  }

  // Chebyshev series of exp(-d u) on [low, high], and its error bound.
  function dampingSeries(d, low, high, terms) {
    const coefficients = new Float64Array(terms);
    if (d === 0) {
      coefficients[0] = 1;
      return { coefficients, error: 0 };
    }
    const scale = Math.exp(-d * low);
    if (high === null) { // u is only known to be above low
      coefficients[0] = scale / 2;
      return { coefficients, error: scale / 2 };
    }
    const shares = bessel(terms + 64, d * (high - low) / 2);
    let error = 0;
    for (let k = shares.length - 1; k >= 0; k--) {
      if (k >= terms) error += 2 * shares[k];
      else coefficients[k] = scale * (k ? 2 : 1) * (k % 2 ? -1 : 1) * shares[k];
    }
    const kept = shares.subarray(0, terms).reduce((sum, share, k) => sum + (k ? 2 : 1) * share, 0);
    return { coefficients, error: scale * (1 - kept < 1e-6 ? error : 1 - kept) };
  }

  // Sum of the damping factor of every group (the pixels of a level in a row), its sum times y, and their error bounds.
  function dampedSums(joint, d) {
    const groups = joint.row.length;
    const [weight, error, first, firstError] = [0, 1, 2, 3].map(() => new Float64Array(groups));
    const [columns, firstColumns] = ["zeroth", "first"].map((key) => total(joint.intervals.map((interval) => interval[key])));
    let at = 0, atFirst = 0;
    for (const interval of joint.intervals) {
      const most = Math.exp(-d * interval.low);
      const least = interval.high !== null ? Math.exp(-d * interval.high) : d === 0 ? 1 : 0;
      const series = dampingSeries(d, interval.low, interval.high, interval.zeroth);
      const tilted = interval.first ? dampingSeries(d, interval.low, interval.high, interval.first) : null;
      for (let g = 0; g < groups; g++) {
        const number = joint.zeroth[g * columns + at]; // T_0 is 1
        if (number === 0) continue;
        let value = 0;
        for (let k = 0; k < interval.zeroth; k++) value += series.coefficients[k] * joint.zeroth[g * columns + at + k];
        const low = Math.max(value - series.error * number, least * number);
        const high = Math.min(value + series.error * number, most * number);
        value = clamp(value, low, high);
        weight[g] += value;
        error[g] += Math.max(value - low, high - value);
        if (tilted) {
          let moment = 0;
          for (let k = 0; k < interval.first; k++) moment += tilted.coefficients[k] * joint.first[g * firstColumns + atFirst + k];
          first[g] += moment;
          firstError[g] += tilted.error * number;
        }
      }
      at += interval.zeroth;
      atFirst += interval.first;
    }
    return { weight, error, first, firstError };
  }

  // Factors of the weights of every row at a threshold and spread, which do not depend on d.
  function rowFactors(joint, t, sigma) {
    const n = joint.low.length, hard = sigma === 0;
    const names = ["value", "least", "most", "slope", "off", "share", "middle", "end", "shareLeft", "middleLeft", "endLeft"];
    const factors = Object.fromEntries(names.map((name) => [name, new Float64Array(n)]));
    factors.side = new Int8Array(n); // 1 right of the threshold, -1 left of it, 0 on both sides, 2 equal to it
    const certaintyAt = (distance) => hard ? 1 : certainty(distance / sigma);
    for (let r = 0; r < n; r++) {
      const low = joint.low[r], high = joint.high[r];
      const right = low >= t, left = high <= t;
      factors.side[r] = right && left ? 2 : right ? 1 : left ? -1 : 0;
      if (!right && !left) {
        factors.share[r] = (high - t) / (high - low);
        factors.middle[r] = certaintyAt((high - t) / 2);
        factors.end[r] = certaintyAt(high - t);
        factors.shareLeft[r] = (t - low) / (high - low);
        factors.middleLeft[r] = certaintyAt((t - low) / 2);
        factors.endLeft[r] = certaintyAt(t - low);
        continue;
      }
      const middle = (low + high) / 2, half = (high - low) / 2;
      const nearest = Math.max(low - t, t - high, 0), furthest = Math.max(high - t, t - low);
      factors.value[r] = certaintyAt(Math.abs(middle - t));
      if (low === high) {
        factors.least[r] = factors.most[r] = factors.value[r];
        continue;
      }
      factors.least[r] = certaintyAt(nearest);
      factors.most[r] = certaintyAt(furthest);
      if (hard) continue;
      factors.slope[r] = slope(Math.abs(middle - t) / sigma) * (half / sigma) * (middle >= t ? 1 : -1);
      factors.off[r] = tangentError(nearest / sigma, furthest / sigma, half / sigma);
    }
    return factors;
  }

  // Certainty of the reference as a factor with its error bound, and whether the reference is positive.
  function referenceParts(low, high, t, sigma) {
    const ends = [low, high].map((c) => sigma === 0 ? 1 : certainty(Math.abs(c - t) / sigma));
    if (low < t && t < high) {
      return [{ positive: false, factor: ends[0] / 2, loose: ends[0] / 2 },
        { positive: true, factor: ends[1] / 2, loose: ends[1] / 2 }];
    }
    const positive = low > t || (low >= t && high > low);
    return [{ positive, factor: (ends[0] + ends[1]) / 2, loose: Math.abs(ends[1] - ends[0]) / 2 }];
  }

  // TP, TN, FP, FN and their error bounds, from `dampedSums` and `rowFactors`; `level` is the threshold of the reference.
  function cells(joint, sums, factors, level, sigma) {
    const values = [0, 0, 0, 0], errors = [0, 0, 0, 0];
    for (let l = 0; l < joint.level_low.length; l++) {
      const [right, left, on] = levelSums(joint, sums, factors, joint.starts[l], joint.starts[l + 1]);
      const parts = referenceParts(joint.level_low[l], joint.level_high[l], level, sigma);
      for (const { positive, factor, loose } of parts) {
        // A row that equals the threshold always agrees with the reference.
        const sides = positive ? [[right, 0], [on, 0], [left, 3]] : [[right, 2], [on, 1], [left, 1]];
        for (const [[value, error], cell] of sides) {
          values[cell] += factor * value;
          errors[cell] += factor * error + loose * (value + error);
        }
      }
    }
    return { values, errors: errors.map((error) => error + ROUNDING * joint.counted) };
  }

  // Weight and error right of, left of and on the threshold, for the groups from `start` to `end`.
  function levelSums(joint, sums, factors, start, end) {
    const right = [0, 0], left = [0, 0], on = [0, 0];
    for (let g = start; g < end; g++) {
      const r = joint.row[g], side = factors.side[r];
      const weight = sums.weight[g], error = sums.error[g], all = weight + error;
      if (side === 0) { // assumes that the pixels of the row are evenly distributed
        const above = factors.share[r] * factors.middle[r] * weight;
        const below = factors.shareLeft[r] * factors.middleLeft[r] * weight;
        right[0] += above;
        right[1] += Math.max(above, factors.end[r] * all - above);
        left[0] += below;
        left[1] += Math.max(below, factors.endLeft[r] * all - below);
        continue;
      }
      const tangent = factors.value[r] * weight + factors.slope[r] * sums.first[g];
      const off = factors.value[r] * error + Math.abs(factors.slope[r]) * sums.firstError[g] + factors.off[r] * all;
      const bottom = Math.max(tangent - off, factors.least[r] * Math.max(weight - error, 0));
      const top = Math.min(tangent + off, factors.most[r] * all);
      const value = clamp(tangent, bottom, Math.max(bottom, top));
      const sum = side === 1 ? right : side === -1 ? left : on;
      sum[0] += value;
      sum[1] += Math.max(value - bottom, top - value, 0);
    }
    return [right, left, on];
  }

  const ratio = (a, b) => b === 0 ? NaN : a / b;

  // Every binary metric from the four cells; 0/0 is NaN. [S22] (13)-(17) and more.
  function cellMetrics([tp, tn, fp, fn]) {
    const recall = ratio(tp, tp + fn), specificity = ratio(tn, tn + fp), excess = tp * tn - fp * fn;
    return {
      accuracy: ratio(tp + tn, tp + tn + fp + fn),
      precision: ratio(tp, tp + fp),
      recall,
      false_positive_rate: ratio(fp, fp + tn),
      f1: ratio(2 * tp, 2 * tp + fp + fn),
      specificity,
      negative_predictive_value: ratio(tn, tn + fn),
      balanced_accuracy: (recall + specificity) / 2,
      iou: ratio(tp, tp + fp + fn),
      matthews: clamp(ratio(excess, Math.sqrt((tp + fp) * (tp + fn)) * Math.sqrt((tn + fp) * (tn + fn))), -1, 1),
      kappa: ratio(2 * excess, (tp + fp) * (tn + fp) + (tp + fn) * (tn + fn)),
    };
  }

  // Error bound of every metric, from those of the cells.
  function metricBounds(values, errors) {
    const low = values.map((v, i) => Math.max(v - errors[i], 0)), high = values.map((v, i) => v + errors[i]);
    const middle = cellMetrics(values), emptied = cellMetrics(low);
    const worst = cellMetrics([low[0], low[1], high[2], high[3]]);
    const best = cellMetrics([high[0], high[1], low[2], low[3]]);
    worst.kappa = leastKappa(low, high, worst.kappa);
    const inexact = errors.some((error) => error > 0), bounds = {};
    for (const name of METRICS) {
      const off = Math.max(Math.abs(worst[name] - middle[name]), Math.abs(best[name] - middle[name]));
      const loose = Number.isNaN(off) || (Number.isNaN(emptied[name]) && inexact);
      const least = SIGNED.includes(name) ? -1 : 0;
      bounds[name] = Number.isNaN(middle[name]) ? NaN : loose ? Math.max(1 - middle[name], middle[name] - least) : off;
    }
    return bounds;
  }

  function leastKappa(low, high, atCorner) {
    const excess = 2 * (low[0] * low[1] - high[2] * high[3]);
    if (excess >= 0) return atCorner;
    const [tp, tn, fp, fn] = low;
    const wide = excess / ((tp + fp) * (tn + fp) + (tp + fn) * (tn + fn));
    return Number.isNaN(wide) ? -1 : Math.max(wide, -1);
  }

  // The threshold, rounded to the dtype of the stored probabilities.
  function asStored(t, dtype) {
    if (dtype === "float32") return Math.fround(t);
    if (dtype !== "float16" || t === 0) return t;
    const step = 2 ** (Math.max(Math.floor(Math.log2(Math.abs(t))), -14) - 10), scaled = t / step;
    const down = Math.floor(scaled), rest = scaled - down;
    return step * (rest > 0.5 || (rest === 0.5 && down % 2) ? down + 1 : down);
  }

  return { METRICS, certainty, bessel, dampedSums, rowFactors, cells, cellMetrics, metricBounds, asStored, total };
})();
