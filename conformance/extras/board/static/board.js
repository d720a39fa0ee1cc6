"use strict";

// The first screen of the board: the search for a pair, and the age of each run as of today.
{
  const DAY = 86400000;
  const form = document.getElementById("search");
  const told = document.getElementById("found");
  const rows = [...document.querySelectorAll("tr[data-pair]")];

  function plain(word) {
    return word.toLowerCase().replace(/^.*\./, "").replace(/[_-]/g, "").replace(/\(\)$/, "");
  }

  // The dtypes that a text names, in its order, and the words that name none.
  function read(text, found) {
    const words = text.split(/->|=>|[\s,/>→:]+/).filter((word) => word && !["to", "cast"].includes(word.toLowerCase()));
    const dtypes = words.map((word) => found.spellings[plain(word)]);
    return { dtypes: dtypes.filter(Boolean), unknown: words.filter((_, at) => !dtypes[at]) };
  }

  function show(text, found) {
    const { dtypes, unknown } = read(text, found);
    const [source, target] = dtypes;
    for (const row of rows) {
      const pair = row.dataset.pair.split("/");
      const fits = target ? pair[0] === source && pair[1] === target : !source || pair.includes(source);
      row.classList.toggle("off", !fits);
    }
    if (target) {
      told.replaceChildren(castigate.make("a", { href: `pair.html#${source}/${target}` }, `${source} → ${target}`));
    } else if (source) {
      told.replaceChildren(`from or to ${source}`);
    } else {
      told.replaceChildren(unknown.length ? `no dtype is called ${unknown[0]}` : "");
    }
    return target ? `pair.html#${source}/${target}` : "";
  }

  castigate.load("board").then((found) => {
    form.elements.q.addEventListener("input", () => show(form.elements.q.value, found));
    for (const head of document.querySelectorAll("th[data-date]")) {
      if (Date.now() - Date.parse(head.dataset.date) <= found.old * DAY) continue;
      for (const cell of document.querySelectorAll(`td[data-row="${head.dataset.row}"]`)) cell.classList.add("stale");
      if (!head.querySelector(".age")) head.append(castigate.make("small", { class: "age" }, `as of ${head.dataset.date}`));
    }
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const page = show(form.elements.q.value, await castigate.load("board"));
    if (page) location.href = page;
  });
}
