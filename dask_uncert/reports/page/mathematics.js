// The soft confusion at any threshold, spread and damping, from the counts of a joint histogram, with its error.
//
// The same mathematics as formulas/sweep.py, in float64; names are the same too. Nothing here touches the page.
"use strict";
const mathematics = (() => {
  const ROOT = Math.sqrt(2 / Math.PI);
  const ROUNDING = 2 ** -42; // of a pixel's weight: fixed point, and sums over rows
  const METRICS = ["accuracy", "precision", "recall", "false_positive_rate", "f1", "specificity",
    "negative_predictive_value", "balanced_accuracy", "iou", "matthews", "kappa"];
  const SIGNED = ["matthews", "kappa"];

  // A(z) = erf(z / sqrt 2), z >= 0. All terms of sqrt(2/pi) exp(-z^2/2) sum z^(2n+1) / (2n+1)!! are positive.
  function certainty(z) {
    if (!(z < 8.5)) return 1; // nearer to 1 than a float64 can say
    let term = z, sum = z;
    for (let n = 3; term > sum * 1e-17; n += 2) sum += term *= z * z / n;
    return Math.min(1, ROOT * Math.exp(-z * z / 2) * sum);
  }

  const slope = (z) => ROOT * Math.exp(-z * z / 2);
  const clamp = (x, low, high) => Math.min(Math.max(x, low), high);

  // How far a tangent to A(z) misses it within `reach` of where it touches, for z from nearest to furthest.
  function remainder(nearest, furthest, reach) {
    const z = clamp(1, nearest, furthest);
    return 0.5 * z * slope(z) * reach * reach;
  }

  // exp(-x) I_k(x), k = 0 .. most - 1. I_(k-1) = I_(k+1) + 2k/x I_k is stable downwards; I_0 + 2 sum I_k = exp(x).
  function bessel(most, x) {
    const found = new Float64Array(most);
    if (x < 1e-280) {
      found[0] = 1;
      return found;
    }
    let above = 0, here = 1e-280, sum = 0;
    for (let k = most + 32 + Math.ceil(9 * Math.sqrt(x)); k >= 0; k--) {
      if (k < most) found[k] = here;
      sum += (k ? 2 : 1) * here;
      [above, here] = [here, above + 2 * k / x * here];
      if (here > 1e250) {
        above /= here;
        sum /= here;
        for (let j = k; j < most; j++) found[j] /= here;
        here = 1;
      }
    }
    return found.map((one) => one / sum);
  }

  // exp(-d u) on [low, high] as a sum of Chebyshev polynomials, and the most that the sum is off by.
  function dampingSeries(d, low, high, terms) {
    const coefficients = new Float64Array(terms);
    if (d === 0) {
      coefficients[0] = 1;
      return { coefficients, error: 0 };
    }
    const scale = Math.exp(-d * low);
    if (high === null) { // nothing is known of u there but that it is above low
      coefficients[0] = scale / 2;
      return { coefficients, error: scale / 2 };
    }
    const shares = bessel(terms + 64, d * (high - low) / 2);
    let error = 0;
    for (let k = shares.length - 1; k >= 0; k--) {
      if (k >= terms) error += 2 * shares[k];
      else coefficients[k] = scale * (k ? 2 : 1) * (k % 2 ? -1 : 1) * shares[k];
    }
    const kept = shares.subarray(0, terms).reduce((sum, one, k) => sum + (k ? 2 : 1) * one, 0);
    return { coefficients, error: scale * (1 - kept < 1e-6 ? error : 1 - kept) };
  }

  // Of every group (a level's pixels in a row) the summed damping factor, its error, its sum times y, and that one's
  // error.
  function damped(record, d) {
    const groups = record.row.length;
    const [weight, error, first, firstError] = [0, 1, 2, 3].map(() => new Float64Array(groups));
    const [columns, firstColumns] = [sum(record.pieces, "zeroth"), sum(record.pieces, "first")];
    let at = 0, atFirst = 0;
    for (const piece of record.pieces) {
      const most = Math.exp(-d * piece.low);
      const least = piece.high !== null ? Math.exp(-d * piece.high) : d === 0 ? 1 : 0;
      const series = dampingSeries(d, piece.low, piece.high, piece.zeroth);
      const tilted = piece.first ? dampingSeries(d, piece.low, piece.high, piece.first) : null;
      for (let g = 0; g < groups; g++) {
        const number = record.zeroth[g * columns + at]; // T_0 is 1
        if (number === 0) continue;
        let found = 0;
        for (let k = 0; k < piece.zeroth; k++) found += series.coefficients[k] * record.zeroth[g * columns + at + k];
        const low = Math.max(found - series.error * number, least * number);
        const high = Math.min(found + series.error * number, most * number);
        found = clamp(found, low, high);
        weight[g] += found;
        error[g] += Math.max(found - low, high - found);
        if (tilted) {
          let moment = 0;
          for (let k = 0; k < piece.first; k++) moment += tilted.coefficients[k] * record.first[g * firstColumns + atFirst + k];
          first[g] += moment;
          firstError[g] += tilted.error * number;
        }
      }
      at += piece.zeroth;
      atFirst += piece.first;
    }
    return { weight, error, first, firstError };
  }

  // How every row bends the weights of its pixels, at a threshold and spread; what does not depend on d.
  function rowFactors(record, t, sigma) {
    const n = record.low.length, hard = sigma === 0;
    const names = ["value", "least", "most", "slope", "off", "share", "middle", "end", "shareLeft", "middleLeft", "endLeft"];
    const found = Object.fromEntries(names.map((name) => [name, new Float64Array(n)]));
    found.side = new Int8Array(n); // 1 right of the threshold, -1 left, 0 astride, 2 the threshold itself
    const over = (x) => hard ? 1 : certainty(x / sigma);
    for (let r = 0; r < n; r++) {
      const low = record.low[r], high = record.high[r];
      const right = low >= t, left = high <= t;
      found.side[r] = right && left ? 2 : right ? 1 : left ? -1 : 0;
      if (!right && !left) {
        found.share[r] = (high - t) / (high - low);
        found.middle[r] = over((high - t) / 2);
        found.end[r] = over(high - t);
        found.shareLeft[r] = (t - low) / (high - low);
        found.middleLeft[r] = over((t - low) / 2);
        found.endLeft[r] = over(t - low);
        continue;
      }
      const middle = (low + high) / 2, half = (high - low) / 2;
      const nearest = Math.max(low - t, t - high, 0), furthest = Math.max(high - t, t - low);
      found.value[r] = over(Math.abs(middle - t));
      if (low === high) {
        found.least[r] = found.most[r] = found.value[r];
        continue;
      }
      found.least[r] = over(nearest);
      found.most[r] = over(furthest);
      if (hard) continue;
      found.slope[r] = slope(Math.abs(middle - t) / sigma) * (half / sigma) * (middle >= t ? 1 : -1);
      found.off[r] = remainder(nearest / sigma, furthest / sigma, half / sigma);
    }
    return found;
  }

  // The reference's certainty as a factor, by how much it may be off, and whether it is a positive.
  function referenceParts(low, high, t, sigma) {
    const over = (c) => sigma === 0 ? 1 : certainty(Math.abs(c - t) / sigma);
    const ends = [over(low), over(high)];
    if (low < t && t < high) {
      return [{ positive: false, factor: ends[0] / 2, loose: ends[0] / 2 },
        { positive: true, factor: ends[1] / 2, loose: ends[1] / 2 }];
    }
    const positive = low > t || (low >= t && high > low);
    return [{ positive, factor: (ends[0] + ends[1]) / 2, loose: Math.abs(ends[1] - ends[0]) / 2 }];
  }

  // TP, TN, FP, FN and the most that each is off by, from `damped` and `rowFactors` of the same record; `level` is
  // the threshold of the reference.
  function softCells(record, sums, factors, level, sigma) {
    const values = [0, 0, 0, 0], errors = [0, 0, 0, 0];
    for (let l = 0; l < record.level_low.length; l++) {
      const [right, left, on] = levelSums(record, sums, factors, record.starts[l], record.starts[l + 1]);
      const parts = referenceParts(record.level_low[l], record.level_high[l], level, sigma);
      for (const { positive, factor, loose } of parts) {
        // A row that is the threshold itself agrees with the reference either way.
        const sides = positive ? [[right, 0], [on, 0], [left, 3]] : [[right, 2], [on, 1], [left, 1]];
        for (const [[value, error], cell] of sides) {
          values[cell] += factor * value;
          errors[cell] += factor * error + loose * (value + error);
        }
      }
    }
    return { values, errors: errors.map((one) => one + ROUNDING * record.counted) };
  }

  // Weight and error right of the threshold, left of it and on it, of the groups from `start` to `end`.
  function levelSums(record, sums, factors, start, end) {
    const right = [0, 0], left = [0, 0], on = [0, 0];
    for (let g = start; g < end; g++) {
      const r = record.row[g], where = factors.side[r];
      const weight = sums.weight[g], error = sums.error[g], all = weight + error;
      if (where === 0) { // nobody knows how its pixels lie; the value takes them as spread evenly
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
      const found = clamp(tangent, bottom, Math.max(bottom, top));
      const into = where === 1 ? right : where === -1 ? left : on;
      into[0] += found;
      into[1] += Math.max(found - bottom, top - found, 0);
    }
    return [right, left, on];
  }

  const ratio = (a, b) => b === 0 ? NaN : a / b;

  // Every metric of two classes from the four cells; 0/0 is NaN. [S22] (13)-(17) and beyond.
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

  // For every metric the furthest it can be from its value when the cells are only known to within errors.
  function metricBounds(values, errors) {
    const low = values.map((v, i) => Math.max(v - errors[i], 0)), high = values.map((v, i) => v + errors[i]);
    const middle = cellMetrics(values), emptied = cellMetrics(low);
    const worst = cellMetrics([low[0], low[1], high[2], high[3]]);
    const best = cellMetrics([high[0], high[1], low[2], low[3]]);
    worst.kappa = leastKappa(low, high, worst.kappa);
    const inexact = errors.some((e) => e > 0), found = {};
    for (const name of METRICS) {
      const off = Math.max(Math.abs(worst[name] - middle[name]), Math.abs(best[name] - middle[name]));
      const loose = Number.isNaN(off) || (Number.isNaN(emptied[name]) && inexact);
      const least = SIGNED.includes(name) ? -1 : 0;
      found[name] = Number.isNaN(middle[name]) ? NaN : loose ? Math.max(1 - middle[name], middle[name] - least) : off;
    }
    return found;
  }

  function leastKappa(low, high, atCorner) {
    const excess = 2 * (low[0] * low[1] - high[2] * high[3]);
    if (excess >= 0) return atCorner;
    const [tp, tn, fp, fn] = low;
    const wide = excess / ((tp + fp) * (tn + fp) + (tp + fn) * (tn + fn));
    return Number.isNaN(wide) ? -1 : Math.max(wide, -1);
  }

  // The threshold as the stored probabilities would hold it.
  function asStored(t, dtype) {
    if (dtype === "float32") return Math.fround(t);
    if (dtype !== "float16" || t === 0) return t;
    const step = 2 ** (Math.max(Math.floor(Math.log2(Math.abs(t))), -14) - 10), scaled = t / step;
    const down = Math.floor(scaled), rest = scaled - down;
    return step * (rest > 0.5 || (rest === 0.5 && down % 2) ? down + 1 : down);
  }

  function sum(list, key) {
    return list.reduce((total, one) => total + one[key], 0);
  }

  return { METRICS, certainty, bessel, dampingSeries, damped, rowFactors, softCells, cellMetrics, metricBounds, asStored };
})();
