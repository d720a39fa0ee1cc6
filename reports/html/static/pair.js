"use strict";

// The page of one dtype pair over all documents: which backends fail alike, and how they differ.
castigate.follow(document.getElementById("pair"), async (name, element) => {
  const { make, drawing } = castigate;
  const found = await castigate.index();
  const [source, target] = name.split("/");
  const cases = found.cases.filter((one) => one.source === source && one.target === target);
  const title = document.getElementById("title");
  title.textContent = cases.length ? `${source} → ${target}` : "Pair";
  if (!cases.length) throw new Error(name ? `There is no pair ${name} in this run.` : "The address names no pair; open one from the list of pairs.");
  document.title = `${source} → ${target} · Castigate`;
  const documents = [...new Set(cases.map((one) => one.version.document))];
  const loaded = await Promise.all(documents.map((each) => castigate.load(`${each}.${source}`)));
  const data = new Map(documents.map((each, at) => [each, loaded[at]]));

  // Groups of cells that fail alike; the verdicts may differ, as not all backends claim the document.
  function groupCells(one) {
    const { cases: all } = data.get(one.version.document);
    const grouped = new Map();
    for (const cell of all[one.id]) {
      const verdict = castigate.verdict(found, one, cell.backend);
      const key = cell.answered || cell.broken.length ? `answers ${cell.broken.join()}` : verdict.name;
      grouped.set(key, [...(grouped.get(key) || []), cell]);
    }
    return grouped;
  }

  // The first cell of a group whose answers are identical, bit for bit, to those of a cell.
  function firstIdentical(cells, cell) {
    return cell.answers === null ? null : cells.findIndex((each) => each.answers === cell.answers);
  }

  // Cases with equal groups, which differ in the same way, share one section.
  const alike = new Map();
  for (const one of cases) {
    const grouped = groupCells(one);
    const key = JSON.stringify([one.version.document, [...grouped].map(([does, cells]) => [
      does, cells.map((cell) => [cell.backend, castigate.verdict(found, one, cell.backend).name, firstIdentical(cells, cell)])])]);
    if (!alike.has(key)) alike.set(key, { one, grouped, cases: [] });
    alike.get(key).cases.push(one);
  }

  // Backends that do the same in every case of the pair, bit for bit; they are one row and one column.
  function identical() {
    const marks = found.backends.map(() => []);
    [...alike.values()].forEach(({ grouped, cases: some }, section) => {
      for (const [does, cells] of grouped) {
        for (const cell of cells) marks[cell.backend].push(section, does, firstIdentical(cells, cell), some.length);
      }
    });
    const groups = new Map();
    for (const backend of found.order) {
      const key = JSON.stringify(marks[backend]);
      groups.set(key, [...(groups.get(key) || []), backend]);
    }
    return [...groups.values()];
  }

  // For every two backends: the cases that both answered, those in which they fail alike, and those
  // in which their answers are identical bit for bit, even where a document allows several.
  function agreement() {
    const both = found.backends.map(() => found.backends.map(() => ({ answered: 0, alike: 0, recorded: 0, identical: 0 })));
    for (const { grouped, cases: some } of alike.values()) {
      const answered = [...grouped].filter(([does]) => does.startsWith("answers"))
        .flatMap(([does, cells]) => cells.map((cell) => ({ ...cell, does })));
      for (const one of answered) {
        for (const other of answered) {
          const count = both[one.backend][other.backend];
          count.answered += some.length;
          if (one.does === other.does) count.alike += some.length;
          if (one.answers !== null && other.answers !== null) count.recorded += some.length;
          if (one.answers !== null && one.answers === other.answers) count.identical += some.length;
        }
      }
    }
    const groups = identical();
    const names = groups.map((backends) => castigate.together(found, backends));
    const short = groups.map(([backend, ...others]) => [found.backends[backend].name, others.length ? make("small", {}, ` +${others.length}`) : ""]);
    return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Agreement between backends" },
      make("table", { class: "agreement" },
        make("thead", {}, make("tr", {}, make("td"), short.map((name, at) => make("th", { scope: "col", title: names[at] }, name)))),
        make("tbody", {}, groups.map(([row], at) => make("tr", {}, make("th", { scope: "row", class: "several" }, names[at]),
          groups.map(([column]) => {
            const { answered, alike: agree, recorded, identical } = both[row][column];
            if (row === column || !answered) return make("td", { class: "quiet" }, row === column ? "" : "–");
            return make("td", { class: agree === answered ? "agree" : false }, `${agree} of ${answered}`,
              recorded ? make("small", {}, `, ${identical} of ${recorded} bit for bit`) : "");
          }))))));
  }

  const namesOf = (cells) => castigate.together(found, cells.map((cell) => cell.backend));

  // The verdicts of a group: not all backends claim the document.
  function byVerdict(one, cells) {
    const grouped = new Map();
    for (const cell of cells) {
      const verdict = castigate.verdict(found, one, cell.backend);
      grouped.set(verdict, [...(grouped.get(verdict) || []), cell]);
    }
    return grouped;
  }

  // The backends of a group whose answers differ from the first, where the document allows several.
  function otherBits(cells) {
    const [first, ...rest] = cells.filter((cell) => cell.answers !== null);
    const others = rest.filter((cell) => cell.answers !== first.answers);
    if (!others.length) return "";
    return make("p", { class: "quiet" }, `${namesOf(others)}: other bits than ${found.backends[first.backend].name}, where the document allows both`);
  }

  // What the backends of a group do on open inputs, listed together where it is the same.
  function behaviors(cells, texts) {
    const grouped = new Map();
    for (const cell of cells.filter((each) => each.behaviors.length)) {
      const key = cell.behaviors.join();
      grouped.set(key, [...(grouped.get(key) || []), cell]);
    }
    return [...grouped.values()].map((some) => make("div", { class: "behaviors" },
      make("p", { class: "quiet" }, `${namesOf(some)}, on open inputs:`),
      make("ul", {}, some[0].behaviors.map((each) => make("li", {}, texts[each])))));
  }

  function groupBox(one, [does, cells]) {
    const { broken, texts } = data.get(one.version.document);
    const shown = cells[0].broken.map((each) => broken[each]);
    const message = texts[cells[0].message];
    return make("div", { class: "camp" },
      make("h4", {}, [...byVerdict(one, cells)].map(([verdict, some]) => [castigate.badge(verdict), ` ${namesOf(some)} `])),
      shown.length || !does.startsWith("answers") ? "" : make("p", { class: "quiet" }, "breaks no rule"),
      otherBits(cells),
      behaviors(cells, texts),
      message && !shown.length ? make("p", { class: "message" }, message) : "",
      shown.map((each) => [
        make("p", {}, make("code", {}, each.rule), ` ${each.level}, ${each.clause}${each.wrong ? `: ${castigate.several(each.wrong, "input")}` : ""}${each.smallest ? ", such as" : ""}`),
        each.smallest ? drawing.example(each) : "",
        each.segments.length ? drawing.line(each.segments, found.dtypes[source], castigate.several(each.wrong, "input")) : ""]));
  }

  function section({ one, grouped, cases: some }) {
    const label = (each) => `${each.version.version}${each.mode ? ` ${each.mode.replaceAll("/", " · ")}` : ""}`;
    return make("section", { class: "group" },
      make("h3", {}, `${one.version.document} `, make("small", {}, castigate.several(some.length, "case"))),
      make("p", { class: "chips" }, some.map((each) => [castigate.caseLink(each.id, label(each)), " "])),
      make("div", { class: "camps" }, [...grouped].map((each) => groupBox(one, each))));
  }

  element.replaceChildren(
    make("p", { class: "lead" }, "Backends that do the same in every case share a row. For every two rows: of the cases that both answered, in how many they break the same rules on the same inputs with the same answers, or break none. Then, where answers were recorded, in how many cases all answers are identical bit for bit, even where a document allows several."),
    agreement(), ...[...alike.values()].map(section));
});
