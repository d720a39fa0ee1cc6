"use strict";

// The matrices of one version: for each mode one per backend, all of one size.
(async () => {
  const { make } = castigate;
  const main = document.getElementById("main");
  const everything = await castigate.index();
  const version = everything.versions
    .find((each) => each.document === main.dataset.document && each.version === main.dataset.version);
  const cases = everything.cases.slice(version.first, version.first + version.count);
  const found = { ...everything, cases };

  const same = everything.versions.filter((each) => each.document === version.document);
  document.getElementById("versions").append(...(same.length > 1 ? same : []).map((each) => make(
    "a", { href: each.page, "aria-current": each === version ? "page" : false }, each.version)));

  function cell(one, backend) {
    const told = castigate.verdict(found, one, backend);
    if (!told) return make("td");
    const marks = castigate.changes(found, one, backend);
    const words = [`${one.source} to ${one.target}: ${told.name}`, ...marks.map((each) => each.name)].join(", ");
    const link = castigate.caseLink(one.id, told.sign, {
      class: `v-${told.name}${marks.length ? " changed" : ""}`, tabindex: -1, "aria-label": words, title: words,
    });
    const made = make("td", {}, link);
    made.one = one;
    return made;
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

  // One stop for the tabulator per matrix; the arrows go from sign to sign.
  function enter(table) {
    const links = [...table.querySelectorAll("td:not(.off) > a")];
    if (!links.some((link) => link.tabIndex === 0) && links.length) links[0].tabIndex = 0;
  }

  function move(event) {
    const steps = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
    const step = steps[event.key];
    const here = event.target.closest("td");
    if (!step || !here) return;
    event.preventDefault();
    const { rows } = here.closest("table");
    let [row, column] = [here.parentElement.rowIndex + step[0], here.cellIndex + step[1]];
    while (rows[row] && rows[row].cells[column]) {
      const link = rows[row].cells[column].querySelector("a");
      if (link) {
        event.target.tabIndex = -1;
        link.tabIndex = 0;
        link.focus();
        return;
      }
      [row, column] = [row + step[0], column + step[1]];
    }
  }

  const sections = version.modes.map((mode, place) => {
    const some = cases.filter((one) => one.mode === mode);
    const title = make("h2", { id: `mode-${place}` }, mode ? mode.replaceAll("/", " · ") : "without a mode",
      make("small", {}, ` ${castigate.several(some.length, "case")}`));
    const figures = found.backends.map((each, backend) => matrix(some, backend))
      .filter((figure) => figure.querySelector("a"));
    const multiples = make("div", { class: "multiples" }, ...figures);
    const columns = new Set(some.map((one) => one.target)).size;
    multiples.style.setProperty("--width", `${Math.max(110 + 16 * columns, 200)}px`);
    const made = make("section", { "aria-labelledby": `mode-${place}` }, title, multiples);
    Object.assign(made, { figures, some });
    return made;
  });
  const matrices = document.getElementById("matrices");
  matrices.append(...sections);
  matrices.addEventListener("keydown", move);

  function count(figure, wanted) {
    const counts = new Map();
    for (const one of figure.some) {
      if (wanted.cells(one).includes(figure.backend)) {
        const told = castigate.verdict(found, one, figure.backend);
        counts.set(told, (counts.get(told) || 0) + 1);
      }
    }
    const shown = found.verdicts.filter((told) => counts.has(told)).map((told) => make(
      "span", { class: `t-${told.name}`, title: told.name }, make("span", { class: "hidden" }, `${told.name}: `),
      castigate.sign(told), castigate.number(counts.get(told))));
    figure.counts.replaceChildren(...shown.flatMap((each) => [each, " "]));
    return [...counts.values()].reduce((sum, each) => sum + each, 0);
  }

  function draw(state) {
    const wanted = castigate.wanted(found, state);
    let total = 0;
    for (const section of sections) {
      let left = 0;
      for (const figure of section.figures) {
        const here = count(figure, wanted);
        figure.hidden = !here;
        left += here;
        for (const each of figure.querySelectorAll("td")) {
          if (each.one) each.classList.toggle("off", !wanted.cells(each.one).includes(figure.backend));
        }
        enter(figure);
      }
      section.hidden = !left;
      total += left;
    }
    document.getElementById("found").value = castigate.several(total, "verdict");
  }

  castigate.filters(found, draw);
  main.dataset.shown = "matrices";
})();
