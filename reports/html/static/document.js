"use strict";

// The page of a document: for each mode of the chosen version a matrix per backend, all of the same size.
(async () => {
  const { make } = castigate;
  const main = document.getElementById("main");
  const everything = await castigate.index();
  const versions = everything.versions.filter((each) => each.document === main.dataset.document);
  const cases = everything.cases.filter((one) => versions.includes(one.version));
  const found = { ...everything, versions, cases };
  const matrices = document.getElementById("matrices");
  let drawn = { version: null, sections: [] };

  function cell(one, backend) {
    const verdict = castigate.verdict(found, one, backend);
    if (!verdict) return make("td");
    const changes = castigate.changes(found, one, backend);
    const label = [`${one.source} to ${one.target}: ${verdict.name}`, ...changes.map((each) => each.name)].join(", ");
    const link = castigate.caseLink(one.id, verdict.sign, {
      class: `v-${verdict.name}${changes.length ? " changed" : ""}`, tabindex: -1, "aria-label": label, title: label,
    });
    const td = make("td", {}, link);
    td.one = one;
    return td;
  }

  function matrix(some, backend) {
    const names = Object.keys(found.dtypes);
    const sources = names.filter((name) => some.some((one) => one.source === name));
    const targets = names.filter((name) => some.some((one) => one.target === name));
    const at = new Map(some.map((one) => [`${one.source}/${one.target}`, one]));
    const head = make("tr", {}, make("td"),
      ...targets.map((name) => make("th", { scope: "col" }, make("span", {}, name))));
    const rows = sources.map((source) => make("tr", {}, make("th", { scope: "row" }, source),
      ...targets.map((target) => {
        const one = at.get(`${source}/${target}`);
        return one ? cell(one, backend) : make("td");
      })));
    const table = make("table", { class: "matrix" }, make("thead", {}, head), make("tbody", {}, ...rows));
    const counts = make("span", { class: "counts" });
    const name = make("figcaption", {}, make("b", {}, found.backends[backend].name), " ", counts);
    const figure = make("figure", {}, name, make("div", { class: "scroll", tabindex: "-1" }, table));
    Object.assign(figure, { backend, counts, some });
    return figure;
  }

  // The Tab key stops once per matrix.
  function makeReachable(figure) {
    const links = [...figure.querySelectorAll("td:not(.off) > a")];
    if (!links.some((link) => link.tabIndex === 0) && links.length) links[0].tabIndex = 0;
  }

  function drawVersion(version) {
    const sections = version.modes.map((mode, row) => {
      const some = cases.filter((one) => one.version === version && one.mode === mode);
      const title = make("h3", { id: `mode-${row}` }, mode ? mode.replaceAll("/", " · ") : "without a mode",
        make("small", {}, ` ${castigate.several(some.length, "case")}`));
      const figures = found.backends.map((each, backend) => matrix(some, backend))
        .filter((figure) => figure.querySelector("a"));
      const multiples = make("div", { class: "multiples" }, ...figures);
      const columns = new Set(some.map((one) => one.target)).size;
      multiples.style.setProperty("--width", `${Math.max(150 + 25 * columns, 240)}px`);
      const section = make("section", { "aria-labelledby": `mode-${row}` }, title, multiples);
      return Object.assign(section, { figures, some });
    });
    document.getElementById("version").textContent = `version ${version.version}`;
    matrices.replaceChildren(...sections);
    drawn = { version, sections };
  }

  // Show and return how many of a matrix's verdicts match the filters.
  function count(figure, matching) {
    const counts = new Map();
    for (const one of figure.some) {
      if (matching(one).includes(figure.backend)) {
        const verdict = castigate.verdict(found, one, figure.backend);
        counts.set(verdict, (counts.get(verdict) || 0) + 1);
      }
    }
    const shown = found.verdicts.filter((verdict) => counts.has(verdict)).map((verdict) => make(
      "span", { class: `t-${verdict.name}`, title: verdict.name }, make("span", { class: "hidden" }, `${verdict.name}: `),
      castigate.sign(verdict), castigate.number(counts.get(verdict))));
    figure.counts.replaceChildren(...shown.flatMap((each) => [each, " "]));
    return [...counts.values()].reduce((sum, each) => sum + each, 0);
  }

  function draw(state) {
    const version = versions.find((each) => (state.version ? each.version === state.version : each.newest));
    if (version !== drawn.version) drawVersion(version);
    const matching = castigate.matcher(found, state);
    let total = 0;
    for (const section of drawn.sections) {
      let left = 0;
      for (const figure of section.figures) {
        const here = count(figure, matching);
        figure.hidden = !here;
        left += here;
        for (const each of figure.querySelectorAll("td")) {
          if (each.one) each.classList.toggle("off", !matching(each.one).includes(figure.backend));
        }
        makeReachable(figure);
      }
      section.hidden = !left;
      total += left;
    }
    document.getElementById("found").value = castigate.several(total, "verdict");
  }

  matrices.addEventListener("keydown", castigate.moveInMatrix);
  castigate.filters(found, draw);
  // The matrices have moved what the address points at.
  const target = castigate.target();
  if (target) target.scrollIntoView();
  main.dataset.shown = "matrices";
})();
