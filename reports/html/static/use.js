"use strict";

// Can I use this cast, call or bitcast? A matrix of dtype pairs with a sign per backend, and the chosen pair in words.
(async () => {
  const { make } = castigate;
  const main = document.getElementById("main");
  const everything = await castigate.index();
  const versions = everything.versions
    .filter((each) => each.newest && each.operation === main.dataset.operation);
  const cases = everything.cases.filter((one) => versions.includes(one.version));
  const found = { ...everything, versions, cases };
  const names = Object.keys(found.dtypes);
  const backends = found.backends.map((_, backend) => backend);
  const severity = ["crashed", "error", "violates", "deviates", "differs", "open", "conforms", "unsupported", "not-run"];
  const columns = Math.ceil(Math.sqrt(backends.length));
  const place = document.getElementById("uses");
  const shown = document.getElementById("shown");
  document.getElementById("order").append(...found.backends.map((each) => make(
    "li", {}, each.name, " ", make("small", {}, each.version))));

  // The verdict that matters most to somebody who wants to use a pair.
  function worst(some, backend) {
    const verdicts = some.map((one) => castigate.verdict(found, one, backend)).filter(Boolean);
    return verdicts.sort((one, other) => severity.indexOf(one.name) - severity.indexOf(other.name))[0];
  }

  function field(pair, some) {
    const verdicts = backends.map((backend) => worst(some, backend));
    const words = backends.filter((backend) => verdicts[backend])
      .map((backend) => `${found.backends[backend].name} ${verdicts[backend].name}`);
    const signs = verdicts.map((verdict) => make("span", {
      class: `v-${verdict ? verdict.name : "absent"}`, "aria-hidden": "true" }, verdict ? verdict.sign : ""));
    const link = make("a", {
      href: `pair.html#${pair}`, class: "signs", tabindex: -1,
      "aria-label": `${pair.replace("/", " to ")}: ${words.join(", ")}`,
    }, ...signs);
    link.style.gridTemplateColumns = `repeat(${columns}, 11px)`;
    const td = make("td", {}, link);
    Object.assign(td, { pair, verdicts });
    return td;
  }

  async function show(td) {
    const open = main.dataset.operation === "cast" ? await castigate.load("open") : { pairs: {}, texts: [] };
    const [source, target] = td.pair.split("/");
    const rows = backends.filter((backend) => td.verdicts[backend]).map((backend) => {
      const { name } = found.backends[backend];
      const lines = ((open.pairs[td.pair] || {})[name] || []).map((index) => open.texts[index]);
      return make("tr", {}, make("th", { scope: "row" }, name),
        make("td", {}, castigate.badge(td.verdicts[backend])),
        make("td", { class: "text" }, lines.length ? make("ul", {}, ...lines.map((line) => make("li", {}, line))) : ""));
    });
    shown.replaceChildren(
      make("h2", {}, make("a", { href: `pair.html#${td.pair}` }, `${source} → ${target}`)),
      make("div", { class: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "backend"),
        make("th", { scope: "col" }, "verdict"), make("th", { scope: "col" }, "on open inputs"))), make("tbody", {}, ...rows))));
  }

  function draw(state) {
    const wanted = cases.filter((one) => castigate.matchesCase(one, state));
    const byPair = new Map();
    for (const one of wanted) {
      const pair = `${one.source}/${one.target}`;
      byPair.set(pair, [...(byPair.get(pair) || []), one]);
    }
    const sources = names.filter((name) => wanted.some((one) => one.source === name));
    const targets = names.filter((name) => wanted.some((one) => one.target === name));
    const table = make("table", { class: "matrix uses" },
      make("thead", {}, make("tr", {}, make("td"), ...targets.map((name) => make("th", { scope: "col" }, make("span", {}, name))))),
      make("tbody", {}, ...sources.map((source) => make("tr", {}, make("th", { scope: "row" }, source),
        ...targets.map((target) => {
          const some = byPair.get(`${source}/${target}`);
          return some ? field(`${source}/${target}`, some) : make("td");
        })))));
    place.replaceChildren(table);
    const first = table.querySelector("td a");
    if (first) first.tabIndex = 0;
    shown.replaceChildren();
  }

  place.addEventListener("keydown", castigate.moveInMatrix);
  for (const name of ["focusin", "mouseover"]) {
    place.addEventListener(name, (event) => {
      const td = event.target.closest("td");
      if (td && td.pair) show(td);
    });
  }
  castigate.filters(found, draw);
  main.dataset.shown = "uses";
})();
