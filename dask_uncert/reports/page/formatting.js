// Formats numbers and writes them into the page: [data-number] has a value, [data-bound-of] its error bound, [data-text]
// text. data-value and data-bound keep all digits.
"use strict";
const formatting = (() => {
  const WIDE = 0.05; // wider bounds are marked, as in metrics/sweep.py
  const plain = (value, digits) => value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });

  function number(value, digits) {
    if (Number.isNaN(value)) return "–";
    if (digits > 0 && value !== 0 && Math.abs(value) < 10 ** -digits) return scientific(value, 2);
    return plain(value, digits).replace("-", "−");
  }

  function scientific(value, digits) {
    const [front, exponent] = value.toExponential(digits - 1).replace(/^-/, "−").split("e");
    const raised = exponent.replace("+", "").replace(/./g, (digit) => digit === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(digit)]);
    return `${front}·10${raised}`;
  }

  function roundedUp(bound) { // never rounds a bound down
    if (bound >= 1e-3) return plain(Math.ceil(bound * 1e3) / 1e3, 3);
    if (bound === 0) return "0";
    const exponent = Math.floor(Math.log10(bound));
    return scientific(Math.ceil(bound / 10 ** exponent * (1 - 1e-12)) * 10 ** exponent, 1);
  }

  function setNumber(name, value, digits, bound) {
    for (const element of document.querySelectorAll(`[data-number="${name}"]`)) {
      element.textContent = number(value, digits);
      element.dataset.value = String(value);
    }
    const element = document.querySelector(`[data-bound-of="${name}"]`);
    if (!element || bound === undefined) return;
    const wide = bound > WIDE && digits === 4;
    element.textContent = Number.isNaN(bound) ? "" : `± ${roundedUp(bound)}${wide ? ", wide" : ""}`;
    element.classList.toggle("wide", wide);
    element.dataset.bound = String(bound);
  }

  const setText = (name, text) => {
    for (const element of document.querySelectorAll(`[data-text="${name}"]`)) element.textContent = text;
  };
  const percent = (share) => Number.isNaN(share) ? "–" : `${plain(100 * share, 1)} %`;
  const short = (value) => String(Number(value.toPrecision(12)));
  const shellQuoted = (name) => /^[\w@%+=:,./-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\"'\"'")}'`;

  return { plain, number, setNumber, setText, percent, short, shellQuoted };
})();
