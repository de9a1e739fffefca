// Sorts tables and enlarges maps. Everything works with the keyboard.
"use strict";
(() => {
  // ---- sorting; data-sort of a cell is its number with all digits

  function sortKey(cell) {
    const number = cell.dataset.sort;
    if (number === undefined) return cell.textContent.trim();
    return number === "" ? null : Number(number);
  }

  function compare(a, b, direction) {
    if (a === null || b === null) return (a === null) - (b === null); // undefined values are last in both directions
    const order = typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b;
    return direction * order;
  }

  for (const table of document.querySelectorAll("table[data-sortable]")) {
    const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
    const original = [...body.rows];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const before = head.getAttribute("aria-sort"), number = original[0].cells[column].dataset.sort !== undefined;
        const next = number // the first click sorts numbers from the largest, the third restores the original order
          ? { null: "descending", descending: "ascending", ascending: null }[before]
          : { null: "ascending", ascending: "descending", descending: null }[before];
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        if (next) head.setAttribute("aria-sort", next);
        const rows = next
          ? [...original].sort((a, b) => compare(sortKey(a.cells[column]), sortKey(b.cells[column]), next === "ascending" ? 1 : -1))
          : original;
        body.append(...rows);
      });
    });
  }

  // ---- enlarging

  const dialog = document.getElementById("enlarged");
  const thumbs = [...document.querySelectorAll("button.thumb")];
  if (dialog && thumbs.length) {
    const picture = dialog.querySelector("img"), caption = dialog.querySelector("figcaption");
    let shown = 0;
    const open = (index) => {
      shown = (index + thumbs.length) % thumbs.length;
      const image = thumbs[shown].querySelector("img");
      picture.src = image.src;
      picture.alt = image.alt;
      caption.textContent = thumbs[shown].parentElement.querySelector("figcaption").textContent;
      if (!dialog.open) dialog.showModal();
    };
    thumbs.forEach((thumb, index) => thumb.addEventListener("click", () => open(index)));
    dialog.querySelector("[data-step='-1']").addEventListener("click", () => open(shown - 1));
    dialog.querySelector("[data-step='1']").addEventListener("click", () => open(shown + 1));
    dialog.addEventListener("keydown", (event) => {
      if (event.key === "ArrowLeft") open(shown - 1);
      if (event.key === "ArrowRight") open(shown + 1);
    });
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
    dialog.addEventListener("close", () => thumbs[shown].focus());
  }
})();
