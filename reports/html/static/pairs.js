"use strict";

// A matrix of dtype pairs: how many groups the backends form on each.
(async () => {
  const { make } = castigate;
  const found = await castigate.index();
  const names = Object.keys(found.dtypes);
  const pairs = Object.keys(found.pairs).map((name) => name.split("/"));
  const sources = names.filter((name) => pairs.some(([source]) => source === name));
  const targets = names.filter((name) => pairs.some(([, target]) => target === name));

  function cell(source, target) {
    const groups = found.pairs[`${source}/${target}`];
    if (groups === undefined) return make("td");
    const label = `${source} to ${target}: ${groups ? castigate.several(groups, "group") : "no answers"}`;
    return make("td", {}, make("a", {
      href: `pair.html#${source}/${target}`, class: `camps-${Math.min(groups, 5)}`, "aria-label": label, title: label,
    }, groups || "–"));
  }

  document.getElementById("pairs").replaceChildren(make("table", { class: "matrix wide" },
    make("thead", {}, make("tr", {}, make("td"), ...targets.map((name) => make("th", { scope: "col" }, make("span", {}, name))))),
    make("tbody", {}, ...sources.map((source) => make("tr", {}, make("th", { scope: "row" }, source),
      ...targets.map((target) => cell(source, target)))))));
})();
