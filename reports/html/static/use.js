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
  const MOST_SIGNS = 9;
  let backends = [];
  const severity = ["crashed", "error", "violates", "deviates", "differs", "open", "conforms", "unsupported", "not-run"];
  const allowed = new Set(["conforms", "open"]);
  // From the worst to the best; the colors are those of verdicts.
  const steps = {
    broken: { sign: "≠", verdict: "violates", meaning: "other bits, and at least one of the two breaks a rule" },
    missing: { sign: "–", verdict: "unsupported", meaning: "only the first answers" },
    other: { sign: "≈", verdict: "open", meaning: "other bits, where the document allows both" },
    unknown: { sign: "?", verdict: "not-run", meaning: "the run does not keep the answers" },
    same: { sign: "=", verdict: "conforms", meaning: "the same bits" },
  };
  const place = document.getElementById("uses");
  const shown = document.getElementById("shown");
  document.getElementById("steps").append(...Object.values(steps).reverse().map(({ sign, verdict, meaning }) => make(
    "div", {}, make("dt", {}, make("span", { class: `badge v-${verdict}` }, sign)), make("dd", {}, meaning))));

  // The verdict that matters most to somebody who wants to use a pair.
  function worst(some, backend) {
    const verdicts = some.map((one) => castigate.verdict(found, one, backend)).filter(Boolean);
    return verdicts.sort((one, other) => severity.indexOf(one.name) - severity.indexOf(other.name))[0];
  }

  // How the answers of two backends to a case compare, for somebody who moves from one to the other.
  function step(one, port, into) {
    const [from, to] = [port, into].map((backend) => one.version.answers[backend][one.index]);
    if (from === "-") return null;
    if (to === "-") return "missing";
    if (from === " " || to === " ") return "unknown";
    if (from === to) return "same";
    return [port, into].every((backend) => allowed.has(castigate.verdict(found, one, backend).name)) ? "other" : "broken";
  }

  // A field's link, with signs, and what it says to those who do not see them.
  function field(pair, some, [signs, words], kept) {
    const link = make("a", {
      href: `pair.html#${pair}`, class: "signs", tabindex: -1, "aria-label": `${pair.replace("/", " to ")}: ${words}`,
    }, signs.map(([name, sign]) => make("span", { class: name, "aria-hidden": "true" }, sign)));
    link.style.gridTemplateColumns = `repeat(${Math.ceil(Math.sqrt(signs.length))}, minmax(14px, 1fr))`;
    return Object.assign(make("td", {}, link), { pair, some, ...kept });
  }

  function verdictsField(pair, some, verdicts) {
    const words = [...verdicts].filter(([, verdict]) => verdict)
      .map(([backend, verdict]) => `${found.backends[backend].name} ${verdict.name}`);
    const signs = [...verdicts.values()].map((verdict) => [`v-${verdict ? verdict.name : "absent"}`, verdict ? verdict.sign : ""]);
    return field(pair, some, [signs, words.join(", ")], { verdicts });
  }

  // Of many backends, a field has how many have each verdict.
  function countsField(pair, some, verdicts) {
    const counts = severity.map((name) => [name, [...verdicts.values()].filter((each) => each && each.name === name).length])
      .filter(([, count]) => count);
    const signs = counts.map(([name, count]) => [`v-${name}`, `${found.verdicts.find((each) => each.name === name).sign} ${count}`]);
    const words = counts.map(([name, count]) => `${count} ${name}`).join(", ");
    const td = field(pair, some, [signs, words], { verdicts });
    td.firstChild.style.gridTemplateColumns = "minmax(32px, 1fr)";
    return td;
  }

  // The backends of the fields: those chosen, else all but folded roads.
  function showOrder(state) {
    backends = castigate.chosenBackends(found, state.backend)
      .filter((backend) => !found.backends[backend].isFolded || found.backends[backend].name === state.backend);
    const isCounted = backends.length > MOST_SIGNS;
    const folded = castigate.chosenBackends(found, state.backend).length - backends.length;
    const besides = folded ? `; ${castigate.several(folded, "road")} with the same verdicts as the framework ${folded === 1 ? "is" : "are"} left out` : "";
    document.getElementById("order").replaceChildren(isCounted
      ? `A field counts the ${backends.length} backends by verdict${besides}.` : `Signs of a field, row by row${besides}:`,
    isCounted ? "" : make("ol", {}, backends.map((backend) => make("li", {}, found.backends[backend].name, " ", make("small", {}, found.backends[backend].version)))));
    return isCounted ? countsField : verdictsField;
  }

  function stepField(pair, some, [port, into]) {
    const counts = new Map(Object.keys(steps).map((name) => [name, 0]));
    for (const one of some) {
      const name = step(one, port, into);
      counts.set(name, counts.get(name) + 1);
    }
    const present = [...counts].filter(([, count]) => count);
    const { verdict, sign } = steps[present[0][0]];
    const words = present.map(([name, count]) => `${steps[name].meaning} in ${castigate.several(count, "case")}`);
    return field(pair, some, [[[`v-${verdict}`, sign]], words.join("; ")], { ports: [port, into] });
  }

  const table = (heads, rows) => make("div", { class: "scroll" }, make("table", {},
    make("thead", {}, make("tr", {}, heads.map((head) => make("th", { scope: "col" }, head)))), make("tbody", {}, rows)));

  async function openAnswers(pair, backend) {
    const open = main.dataset.operation === "cast" ? await castigate.load("open") : { pairs: {}, texts: [] };
    return ((open.pairs[pair] || {})[found.backends[backend].name] || []).map((index) => open.texts[index]);
  }

  const openList = (lines) => (lines.length ? make("ul", {}, lines.map((line) => make("li", {}, line))) : "");

  async function show(td) {
    const [source, target] = td.pair.split("/");
    const asked = td.ports || [...td.verdicts].filter(([, verdict]) => verdict).map(([backend]) => backend);
    const open = await Promise.all(asked.map((backend) => openAnswers(td.pair, backend)));
    // Backends with the same verdict and behaviors share a row.
    const alike = new Map();
    asked.forEach((backend, at) => {
      const key = `${td.ports ? backend : ""} ${worst(td.some, backend).name} ${open[at]}`;
      alike.set(key, [...(alike.get(key) || []), backend]);
    });
    const rows = [...alike.values()].map((some) => make("tr", {}, make("th", { scope: "row", class: "several" }, castigate.together(found, some)),
      make("td", {}, castigate.badge(worst(td.some, some[0]))), make("td", { class: "text" }, openList(open[asked.indexOf(some[0])]))));
    shown.replaceChildren(
      make("h2", {}, make("a", { href: `pair.html#${td.pair}` }, `${source} → ${target}`)),
      td.ports ? table(["case", ...td.ports.map((backend) => found.backends[backend].name), "answers"], td.some.map((one) => make("tr", {},
        make("th", { scope: "row" }, castigate.caseLink(one.id)),
        td.ports.map((backend) => make("td", {}, verdictBadge(one, backend))),
        make("td", { class: "text" }, steps[step(one, ...td.ports)].meaning)))) : "",
      table(["backend", td.ports ? "worst verdict" : "verdict", "on open inputs"], rows));
  }

  function verdictBadge(one, backend) {
    const verdict = castigate.verdict(found, one, backend);
    return verdict ? castigate.badge(verdict) : "";
  }

  function showMeanings(isPort) {
    document.getElementById("order").hidden = isPort;
    document.getElementById("steps").hidden = !isPort;
    document.querySelector(".legend:not(#steps)").hidden = isPort;
  }

  function draw(state) {
    const ports = ["port", "into"].map((name) => found.backends.findIndex((each) => each.name === state[name]));
    const isPort = !ports.includes(-1);
    const wanted = cases.filter((one) => castigate.matchesCase(one, state) && (!isPort || step(one, ...ports)));
    const byPair = new Map();
    for (const one of wanted) {
      const pair = `${one.source}/${one.target}`;
      byPair.set(pair, [...(byPair.get(pair) || []), one]);
    }
    const sources = names.filter((name) => wanted.some((one) => one.source === name));
    const targets = names.filter((name) => wanted.some((one) => one.target === name));
    const usualField = showOrder(state);
    const verdictsOf = (some) => new Map(backends.map((backend) => [backend, worst(some, backend)]));
    const fieldOf = (pair, some = byPair.get(pair)) => (isPort ? stepField(pair, some, ports) : usualField(pair, some, verdictsOf(some)));
    const matrix = make("table", { class: "matrix uses" },
      make("thead", {}, make("tr", {}, make("td"), targets.map((name) => make("th", { scope: "col" }, make("span", {}, name))))),
      make("tbody", {}, sources.map((source) => make("tr", {}, make("th", { scope: "row" }, source),
        targets.map((target) => (byPair.has(`${source}/${target}`) ? fieldOf(`${source}/${target}`) : make("td")))))));
    showMeanings(isPort);
    place.replaceChildren(matrix);
    const first = matrix.querySelector("td a");
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
