// What makes the page handy: tables that sort, maps that open large. Both work with the keyboard alone.
"use strict";
(() => {
  // ---- sorting; a cell's data-sort is its number with all digits

  function key(cell) {
    const held = cell.dataset.sort;
    if (held === undefined) return cell.textContent.trim();
    return held === "" ? null : Number(held);
  }

  function compare(a, b, direction) {
    if (a === null || b === null) return (a === null) - (b === null); // undefined ones last, either way
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
        const next = number // numbers show the largest first; the third press brings the order of the job back
          ? { null: "descending", descending: "ascending", ascending: null }[before]
          : { null: "ascending", ascending: "descending", descending: null }[before];
        heads.forEach((one) => one.removeAttribute("aria-sort"));
        if (next) head.setAttribute("aria-sort", next);
        const rows = next
          ? [...original].sort((a, b) => compare(key(a.cells[column]), key(b.cells[column]), next === "ascending" ? 1 : -1))
          : original;
        body.append(...rows);
      });
    });
  }

  // ---- maps

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
    thumbs.forEach((one, index) => one.addEventListener("click", () => open(index)));
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
