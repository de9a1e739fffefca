// The soft confusion at any threshold, spread and damping, computed from a joint histogram, with its error bounds.
// The formulas are those of formulas/soft_sweep.py, in float64. This script does not use the page.
"use strict";
const softConfusion = (() => {
  const ROOT = Math.sqrt(2 / Math.PI);
  const ROUNDING = 2 ** -42, MOMENT_ROUNDING = 2 ** -20; // error per pixel of sums over rows, and of moments
  const NODE = Math.sqrt(0.75); // T_3 is 0 at 0, NODE and -NODE
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
  const clamp = (x, low, high) => Math.min(Math.max(x, low), high);

  // Coefficients of 1, x and 2 x^2 - 1 of the parabola with these values at NODE, 0 and -NODE.
  const parabola = (right, middle, left) => [
    (right + middle + left) / 3, (right - left) / Math.sqrt(3), (right + left - 2 * middle) / 3];

  // Largest size of a function on an interval: at its ends or at one of its turns.
  function largestBetween(f, turns, low, high) {
    const inside = turns.filter((turn) => low < turn && turn < high);
    return Math.max(...[low, high, ...inside].map((z) => Math.abs(f(z))));
  }

  // Error bound of the parabola through A(z) at the nodes of an interval; below 0, A(z) has the sign of z.
  const third = (z) => ROOT * (z * z - 1) * Math.exp(-z * z / 2);
  function parabolaError(nearest, furthest) {
    const low = clamp(nearest, -1e100, 1e100), high = clamp(furthest, -1e100, 1e100);
    const ends = low < 0 ? [0, Math.max(high, -low)] : [low, high];
    return largestBetween(third, [Math.sqrt(3)], ...ends) * ((high - low) / 2) ** 3 / 24;
  }

  // A parabola for exp(-d u) on every bin of u, three coefficients each, with its error bound and the values at the ends.
  function dampingSeries(d, upper, bins) {
    const series = { coefficients: new Float64Array(3 * bins) };
    for (const name of ["error", "least", "most"]) series[name] = new Float64Array(bins);
    const half = 0.5 / bins, finite = upper !== null, reach = finite ? d * upper : d;
    const damping = (v) => d === 0 ? 1 : Math.exp(-d * (finite ? upper * v : v / (1 - v)));
    const rise = (s) => s > d + 800 ? 0 : (s / d) ** 3 * s * (s * s - 6 * s + 6) * Math.exp(d - s);
    for (let b = 0; b < bins; b++) {
      const low = b / bins, high = (b + 1) / bins, middle = (b + 0.5) / bins;
      const most = series.most[b] = damping(low), least = series.least[b] = damping(high);
      const steepest = d === 0 ? 0 : finite ? reach ** 3 * Math.exp(-reach * low)
        : largestBetween(rise, [0.9358222275240878, 3.305407289332279, 7.758770483143634], d / (1 - low), d / (1 - high));
      const error = steepest * half ** 3 / 24, flat = !(error <= (most - least) / 2);
      series.error[b] = flat ? (most - least) / 2 : error;
      series.coefficients.set(flat ? [(most + least) / 2, 0, 0]
        : parabola(damping(middle + half * NODE), damping(middle), damping(middle - half * NODE)), 3 * b);
    }
    return series;
  }

  // Sums of T_i(y) T_j(x) of every cell, nine each; they are kept as sums of powers of y and x in whole units.
  function chebyshevSums(joint) {
    const cells = joint.bin.length, sums = new Float64Array(9 * cells);
    joint.powers.forEach(([i, j], k) => {
      const unit = [1, 2 ** -20, 2 ** -22][Math.min(i + j, 2)];
      for (let c = 0; c < cells; c++) sums[9 * c + 3 * i + j] = joint.moments[k][c] * unit;
    });
    for (let at = 0; at < sums.length; at += 9) {
      for (let i = 0; i < 2; i++) {
        sums[at + 3 * i + 2] = 2 * sums[at + 3 * i + 2] - sums[at + 3 * i];
        sums[at + 6 + i] = 2 * sums[at + 6 + i] - sums[at + i];
      }
    }
    return sums;
  }

  // Sums of T_i(y) times the damping factor of every group (the pixels of a level in a row), and their error bounds.
  function dampedSums(joint, d) {
    joint.sums ??= chebyshevSums(joint);
    const groups = joint.row.length, series = dampingSeries(d, joint.upper, joint.bins);
    const sums = new Float64Array(3 * groups), errors = new Float64Array(3 * groups);
    for (let g = 0; g < groups; g++) {
      for (let c = joint.cells[g]; c < joint.cells[g + 1]; c++) {
        const b = joint.bin[c], number = joint.sums[9 * c];
        const [c0, c1, c2] = series.coefficients.subarray(3 * b, 3 * b + 3);
        for (let i = 0; i < 3; i++) {
          const at = 9 * c + 3 * i, rounded = Math.abs(c1) + Math.abs(c2) + (i ? Math.abs(c0) : 0);
          let value = c0 * joint.sums[at] + c1 * joint.sums[at + 1] + c2 * joint.sums[at + 2];
          let error = number * (series.error[b] + (i === 2 ? Math.abs(c2) : 0) + MOMENT_ROUNDING * rounded);
          if (i === 0) {
            const bottom = Math.max(value - error, series.least[b] * number);
            const top = Math.min(value + error, series.most[b] * number);
            value = clamp(value, bottom, top);
            error = Math.max(value - bottom, top - value);
          }
          sums[3 * g + i] += value;
          errors[3 * g + i] += error;
        }
      }
    }
    return { sums, errors };
  }

  // Certainties of every row at a threshold and spread, which do not depend on d.
  function rowFactors(joint, t, sigma) {
    const n = joint.low.length, hard = sigma === 0;
    const factors = { t, certaintyAt: (distance) => hard ? 1 : certainty(distance / sigma), sigma };
    for (const name of ["least", "most", "off"]) factors[name] = new Float64Array(n);
    factors.parabola = new Float64Array(3 * n);
    factors.side = new Int8Array(n); // 1 right of the threshold, -1 left of it, 0 on both sides, 2 equal to it
    for (let r = 0; r < n; r++) {
      const low = joint.low[r], high = joint.high[r];
      const right = low >= t, left = high <= t, across = !right && !left;
      factors.side[r] = right && left ? 2 : right ? 1 : left ? -1 : 0;
      const middle = (low + high) / 2, half = (high - low) / 2;
      const at = (place) => {
        const distance = middle + half * place - t, size = factors.certaintyAt(Math.abs(distance));
        return across ? Math.sign(distance) * size : size;
      };
      factors.parabola.set(parabola(at(NODE), at(0), at(-NODE)), 3 * r);
      const nearest = Math.max(low - t, t - high, 0), furthest = Math.max(high - t, t - low);
      factors.least[r] = factors.certaintyAt(nearest);
      factors.most[r] = factors.certaintyAt(furthest);
      if (hard || low === high) continue;
      factors.off[r] = across ? parabolaError((low - t) / sigma, (high - t) / sigma)
        : parabolaError(nearest / sigma, furthest / sigma);
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
    const add = (sum, value, bottom, top) => {
      const within = clamp(value, bottom, Math.max(bottom, top));
      sum[0] += within;
      sum[1] += Math.max(within - bottom, top - within, 0);
    };
    for (let g = start; g < end; g++) {
      const r = joint.row[g], side = factors.side[r], damped = sums.sums.subarray(3 * g, 3 * g + 3);
      const loose = sums.errors.subarray(3 * g, 3 * g + 3), all = damped[0] + loose[0];
      let value = 0, off = factors.off[r] * all;
      for (let i = 0; i < 3; i++) {
        value += factors.parabola[3 * r + i] * damped[i];
        off += Math.abs(factors.parabola[3 * r + i]) * loose[i];
      }
      if (side === 0) {
        splitRow(joint.low[r], joint.high[r], factors, damped, loose, value, off, (sum, ...range) => add(sum > 0 ? right : left, ...range));
        continue;
      }
      const bottom = Math.max(value - off, factors.least[r] * Math.max(damped[0] - loose[0], 0));
      const top = Math.min(value + off, factors.most[r] * all);
      add(side === 1 ? right : side === -1 ? left : on, value, bottom, top);
    }
    return [right, left, on];
  }

  // Bounds of the weights of a row right (1) and left (-1) of a threshold inside it. Right minus left is the sum of A with
  // the sign of p - t; right plus left follows within bounds from the sum of (p - t)^2, as A is concave.
  function splitRow(low, high, factors, damped, loose, difference, off, add) {
    const middle = (low + high) / 2, half = (high - low) / 2, t = (factors.t - middle) / half, hard = factors.sigma === 0;
    const square = (damped[2] + damped[0]) / 2 - 2 * t * damped[1] + t * t * damped[0];
    const squareOff = loose[2] / 2 + 2 * Math.abs(t) * loose[1] + (t * t + 0.5) * loose[0];
    const all = damped[0] + loose[0], far = 1 + Math.abs(t), wrong = hard ? Infinity : off;
    const mean = Math.sqrt(clamp((square + squareOff) / (all > 0 ? all : 1), 0, far * far)) * half;
    const least = factors.certaintyAt(far * half) * Math.max(hard ? damped[0] - loose[0] : (square - squareOff) / (far * far), 0);
    const most = factors.certaintyAt(mean) * all;
    for (const [reach, sign] of [[high - factors.t, 1], [factors.t - low, -1]]) {
      const bottom = Math.max((least + sign * difference - wrong) / 2, 0);
      const top = Math.max(Math.min((most + sign * difference + wrong) / 2, most), bottom);
      add(sign, factors.certaintyAt(reach / 2) * reach / (high - low) * damped[0], bottom, top);
    }
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

  return { METRICS, certainty, dampedSums, rowFactors, cells, cellMetrics, metricBounds, asStored, total };
})();
