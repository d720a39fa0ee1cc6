"use strict";

// The form that filters a page by backend, document and verdict: columns and rows of tables, and sections.
(() => {
  const form = document.getElementById("backend-filters");
  if (!form) return;
  for (const label of form.querySelectorAll("label[hidden]")) label.hidden = false;
  const names = (element) => JSON.parse(element.dataset.backends);

  // The cells of a table by column; a cell that spans several is in none.
  function columnsOf(table) {
    const columns = [];
    for (const { cells } of table.rows) {
      let at = 0;
      for (const cell of cells) {
        if (cell.colSpan === 1) (columns[at] ||= []).push(cell);
        at += cell.colSpan;
      }
    }
    return columns;
  }

  const tables = [...document.querySelectorAll("table")].filter((table) => table.querySelector("thead [data-backends]"));
  const columns = tables.flatMap((table) => columnsOf(table).map((cells) => ({ head: cells[0], cells })))
    .filter(({ head }) => head.dataset.backends);
  const others = [...document.querySelectorAll("[data-backends]:not(thead *)")];
  const overview = document.querySelector("table.overview");

  // Within the overview, hide rows and columns in which nothing has the verdict.
  function hideOthers(verdict) {
    const has = (cell) => !cell.hidden && cell.querySelector(`.t-${verdict}`);
    for (const row of overview.tBodies[0].rows) row.hidden ||= ![...row.cells].some(has);
    for (const { head, cells } of columns) {
      if (overview.contains(head) && !cells.some((cell) => has(cell) && !cell.parentElement.hidden)) {
        for (const cell of cells) cell.hidden = true;
      }
    }
  }

  function show() {
    const state = Object.fromEntries(new FormData(form));
    const wanted = state.backend ? JSON.parse(state.backend) : null;
    const isHidden = (element) => Boolean(wanted) && !names(element).some((name) => wanted.includes(name));
    for (const { head, cells } of columns) {
      for (const cell of cells) {
        cell.hidden = isHidden(head);
        cell.classList.toggle("asked", Boolean(wanted) && !cell.hidden);
      }
    }
    for (const each of others) {
      each.hidden = isHidden(each);
      each.classList.toggle("asked", Boolean(wanted) && !each.hidden);
    }
    for (const each of document.querySelectorAll("[data-document]:not(main)")) {
      each.hidden = Boolean(state.document) && each.dataset.document !== state.document;
    }
    if (state.verdict) hideOthers(state.verdict);
  }

  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  show();
})();
