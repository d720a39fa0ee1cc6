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

  // In the matrix of a road alone, fields in which it does as its framework have no color.
  function cell(one, backend) {
    const verdict = castigate.verdict(found, one, backend);
    if (!verdict) return make("td");
    const changes = castigate.changes(found, one, backend);
    const { plain } = found.backends[backend];
    const isAlike = backend !== plain && !castigate.differs(one, backend);
    const words = [`${one.source} to ${one.target}: ${verdict.name}`, ...changes.map((each) => each.name)];
    const label = [...words, ...(isAlike ? [`as ${found.backends[plain].name}`] : [])].join(", ");
    const link = castigate.caseLink(one.id, verdict.sign, {
      class: `${isAlike ? "alike" : `v-${verdict.name}`}${changes.length ? " changed" : ""}`, tabindex: -1, "aria-label": label, title: label,
    });
    const td = make("td", {}, link);
    td.one = one;
    return td;
  }

  function table(some, backend) {
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
    return make("table", { class: "matrix" }, make("thead", {}, head), make("tbody", {}, ...rows));
  }

  // A figure with the matrix of some backends.
  function matrix(some, backends) {
    const counts = make("span", { class: "counts" });
    const same = found.isWide ? castigate.together(found, backends) : castigate.nameWithRoads(found, backends);
    const place = make("div", { class: "scroll", tabindex: "-1" });
    const figure = make("figure", {}, make("figcaption", {}, make("b", {}, same), " ", counts), place);
    return Object.assign(figure, { backends, counts, some, place });
  }

  // The backends of each figure: roads that do as their framework does; on a wide page, all with the same verdicts.
  function shownTogether(some) {
    const grouped = new Map();
    for (const backend of found.order) {
      const verdicts = some.map((one) => one.version.verdicts[backend][one.index]).join("");
      const isAlike = !some.some((one) => castigate.differs(one, backend));
      const alone = isAlike ? found.backends[backend].plain : backend;
      const key = found.isWide ? verdicts : alone;
      grouped.set(key, [...(grouped.get(key) || []), backend]);
    }
    return [...grouped.values()];
  }

  // Draw the matrices of a section. There may be hundreds, so a wide page draws them as they come into view.
  function fill(section) {
    if (section.isDrawn) return;
    section.isDrawn = true;
    for (const figure of section.figures) {
      figure.place.append(table(figure.some, figure.backends[0]));
      applyFilters(figure);
    }
  }

  const inView = new IntersectionObserver((entries) => entries.filter((each) => each.isIntersecting)
    .forEach(({ target }) => { inView.unobserve(target); fill(target); }), { rootMargin: "1200px" });
  addEventListener("beforeprint", () => drawn.sections.forEach(fill));

  // Fade the fields that do not match the filters.
  function applyFilters(figure) {
    for (const each of figure.querySelectorAll("td")) {
      if (each.one) each.classList.toggle("off", !matches(figure, each.one));
    }
    makeReachable(figure);
  }

  const matches = ({ backends }, one) => drawn.matching.get(one).some((backend) => backends.includes(backend));

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
      const figures = shownTogether(some).map((backends) => matrix(some, backends))
        .filter(({ backends: [backend] }) => some.some((one) => castigate.verdict(found, one, backend)));
      const multiples = make("div", { class: "multiples" }, ...figures);
      const columns = new Set(some.map((one) => one.target)).size;
      multiples.style.setProperty("--width", `${Math.max(150 + 25 * columns, 240)}px`);
      const section = make("section", { "aria-labelledby": `mode-${row}` }, title, multiples);
      return Object.assign(section, { figures, some });
    });
    document.getElementById("version").textContent = `version ${version.version}`;
    matrices.replaceChildren(...sections);
    drawn = { ...drawn, version, sections };
    sections.forEach((section) => (found.isWide ? inView.observe(section) : fill(section)));
  }

  // Show and return how many of a matrix's verdicts match the filters.
  function count(figure) {
    const counts = new Map();
    for (const one of figure.some) {
      if (matches(figure, one)) {
        const verdict = castigate.verdict(found, one, figure.backends[0]);
        counts.set(verdict, (counts.get(verdict) || 0) + 1);
      }
    }
    const shown = found.verdicts.filter((verdict) => counts.has(verdict)).map((verdict) => make(
      "span", { class: `t-${verdict.name}`, title: verdict.name }, make("span", { class: "hidden" }, `${verdict.name}: `),
      castigate.sign(verdict), castigate.number(counts.get(verdict))));
    figure.counts.replaceChildren(...shown.flatMap((each) => [each, " "]));
    return figure.some.flatMap((one) => drawn.matching.get(one)).filter((backend) => figure.backends.includes(backend)).length;
  }

  function draw(state) {
    const version = versions.find((each) => (state.version ? each.version === state.version : each.newest));
    const matching = castigate.matcher(found, state);
    drawn.matching = new Map(cases.filter((one) => one.version === version).map((one) => [one, matching(one)]));
    if (version !== drawn.version) drawVersion(version);
    let total = 0;
    for (const section of drawn.sections) {
      let left = 0;
      for (const figure of section.figures) {
        const here = count(figure);
        figure.hidden = !here;
        left += here;
        applyFilters(figure);
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
