// Numbers as text, and where they go: [data-out] shows a value, [data-bound-of] what it is off by at most, [data-say]
// words. All digits stay in data-value and data-bound.
"use strict";
const writing = (() => {
  const WIDE = 0.05; // a bound above it says so, as in summaries/sweeps.py
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

  function above(bound) { // a bound is never rounded down
    if (bound >= 1e-3) return plain(Math.ceil(bound * 1e3) / 1e3, 3);
    if (bound === 0) return "0";
    const exponent = Math.floor(Math.log10(bound));
    return power(Math.ceil(bound / 10 ** exponent * (1 - 1e-12)) * 10 ** exponent, 1);
  }

  function show(name, value, digits, bound) {
    for (const out of document.querySelectorAll(`[data-out="${name}"]`)) {
      out.textContent = written(value, digits);
      out.dataset.value = String(value);
    }
    const off = document.querySelector(`[data-bound-of="${name}"]`);
    if (!off || bound === undefined) return;
    const wide = bound > WIDE && digits === 4;
    off.textContent = Number.isNaN(bound) ? "" : `± ${above(bound)}${wide ? ", wide" : ""}`;
    off.classList.toggle("wide", wide);
    off.dataset.bound = String(bound);
  }

  const say = (name, text) => {
    for (const out of document.querySelectorAll(`[data-say="${name}"]`)) out.textContent = text;
  };
  const percent = (share) => Number.isNaN(share) ? "–" : `${plain(100 * share, 1)} %`;
  const short = (value) => String(Number(value.toPrecision(12)));
  const quoted = (name) => /^[\w@%+=:,./-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\"'\"'")}'`;

  return { plain, written, show, say, percent, short, quoted };
})();
