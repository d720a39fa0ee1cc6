"use strict";

// How divided the backends are on every pair.
(async () => {
  const { make } = castigate;
  const found = await castigate.index();
  const names = Object.keys(found.dtypes);
  const given = Object.keys(found.pairs).map((name) => name.split("/"));
  const sources = names.filter((name) => given.some(([source]) => source === name));
  const targets = names.filter((name) => given.some(([, target]) => target === name));

  function cell(source, target) {
    const camps = found.pairs[`${source}/${target}`];
    if (camps === undefined) return make("td");
    const words = `${source} to ${target}: ${camps ? castigate.several(camps, "camp") : "no answers"}`;
    return make("td", {}, make("a", {
      href: `pair.html#${source}/${target}`, class: `camps-${Math.min(camps, 5)}`, "aria-label": words, title: words,
    }, camps || "–"));
  }

  document.getElementById("pairs").replaceChildren(make("table", { class: "matrix wide" },
    make("thead", {}, make("tr", {}, make("td"), ...targets.map((name) => make("th", { scope: "col" }, make("span", {}, name))))),
    make("tbody", {}, ...sources.map((source) => make("tr", {}, make("th", { scope: "row" }, source),
      ...targets.map((target) => cell(source, target)))))));
})();
