"use strict";

// One pair in all documents: which backends are of one camp, and by what they differ.
castigate.follow(document.getElementById("pair"), async (name, place) => {
  const { make, drawing } = castigate;
  const found = await castigate.index();
  const [source, target] = name.split("/");
  const cases = found.cases.filter((one) => one.source === source && one.target === target);
  const title = document.getElementById("title");
  title.textContent = cases.length ? `${source} → ${target}` : "Pair";
  if (!cases.length) throw new Error(name ? `There is no pair ${name} in this run.` : "No pair is named in the address.");
  document.title = `${source} → ${target} · Castigate`;
  const documents = [...new Set(cases.map((one) => one.version.document))];
  const loaded = await Promise.all(documents.map((each) => castigate.load(`${each}.${source}`)));
  const data = new Map(documents.map((each, at) => [each, loaded[at]]));

  // Cells that do the same, whoever claims the document.
  function camps(one) {
    const { cases: all } = data.get(one.version.document);
    const grouped = new Map();
    for (const cell of all[one.id]) {
      const told = castigate.verdict(found, one, cell.backend);
      const key = cell.answered || cell.findings.length ? `answers ${cell.findings.join()}` : told.name;
      grouped.set(key, [...(grouped.get(key) || []), cell]);
    }
    return grouped;
  }

  // With whom of its camp a cell's answers are the same in every bit: the first such.
  function same(cells, cell) {
    return cell.answers === null ? null : cells.findIndex((each) => each.answers === cell.answers);
  }

  // Cases in which the camps are the same, differing in the same way, are told once.
  const alike = new Map();
  for (const one of cases) {
    const grouped = camps(one);
    const key = JSON.stringify([one.version.document, [...grouped].map(([does, cells]) => [
      does, cells.map((cell) => [cell.backend, castigate.verdict(found, one, cell.backend).name, same(cells, cell)])])]);
    if (!alike.has(key)) alike.set(key, { one, grouped, cases: [] });
    alike.get(key).cases.push(one);
  }

  // Of two backends: the cases that both answered, in which they break the same, and in which
  // their answers are the same in every bit, also where a document leaves them open.
  function agreement() {
    const both = found.backends.map(() => found.backends.map(() => ({ asked: 0, alike: 0, kept: 0, same: 0 })));
    for (const { grouped, cases: some } of alike.values()) {
      const answered = [...grouped].filter(([does]) => does.startsWith("answers"))
        .flatMap(([does, cells]) => cells.map((cell) => ({ ...cell, does })));
      for (const one of answered) {
        for (const other of answered) {
          const count = both[one.backend][other.backend];
          count.asked += some.length;
          if (one.does === other.does) count.alike += some.length;
          if (one.answers !== null && other.answers !== null) count.kept += some.length;
          if (one.answers !== null && one.answers === other.answers) count.same += some.length;
        }
      }
    }
    return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Who agrees with whom" },
      make("table", { class: "agreement" },
        make("thead", {}, make("tr", {}, make("td"), found.backends.map((each) => make("th", { scope: "col" }, each.name)))),
        make("tbody", {}, found.backends.map((each, row) => make("tr", {}, make("th", { scope: "row" }, each.name),
          found.backends.map((other, column) => {
            const { asked, alike: agree, kept, same } = both[row][column];
            if (row === column || !asked) return make("td", { class: "quiet" }, row === column ? "" : "–");
            return make("td", { class: agree === asked ? "agree" : false }, `${agree} of ${asked}`,
              kept ? make("small", {}, `, ${same} of ${kept} in every bit`) : "");
          }))))));
  }

  // Those of a camp that give other bits than its first, where several are allowed or any.
  function otherwise(cells) {
    const [first, ...rest] = cells.filter((cell) => cell.answers !== null);
    const others = rest.filter((cell) => cell.answers !== first.answers);
    if (!others.length) return "";
    const names = others.map((cell) => found.backends[cell.backend].name).join(", ");
    return make("p", { class: "quiet" }, `${names}: other bits than ${found.backends[first.backend].name}, where the document allows it`);
  }

  // What those of a camp do on open inputs, those that do the same together.
  function behaviours(cells, texts) {
    const grouped = new Map();
    for (const cell of cells.filter((each) => each.behaviours.length)) {
      const key = cell.behaviours.join();
      grouped.set(key, [...(grouped.get(key) || []), cell]);
    }
    return [...grouped.values()].map((some) => make("div", { class: "behaviours" },
      make("p", { class: "quiet" }, `${some.map((cell) => found.backends[cell.backend].name).join(", ")}, on open inputs:`),
      make("ul", {}, some[0].behaviours.map((each) => make("li", {}, texts[each])))));
  }

  function camp(one, [does, cells]) {
    const { findings, texts } = data.get(one.version.document);
    const shown = cells[0].findings.map((each) => findings[each]);
    const message = texts[cells[0].message];
    return make("div", { class: "camp" },
      make("h4", {}, cells.map((cell) => [castigate.badge(castigate.verdict(found, one, cell.backend)), ` ${found.backends[cell.backend].name} `])),
      shown.length || !does.startsWith("answers") ? "" : make("p", { class: "quiet" }, "breaks no rule"),
      otherwise(cells),
      behaviours(cells, texts),
      message && !shown.length ? make("p", { class: "message" }, message) : "",
      shown.map((each) => [
        make("p", {}, make("code", {}, each.rule), ` ${each.level}, ${each.clause}${each.wrong ? `: ${castigate.several(each.wrong, "input")}, such as` : ""}`),
        each.smallest ? drawing.example(each) : "",
        each.segments.length ? drawing.line(each.segments, found.dtypes[source], castigate.several(each.wrong, "input")) : ""]));
  }

  function group({ one, grouped, cases: some }) {
    const label = (each) => `${each.version.version}${each.mode ? ` ${each.mode.replaceAll("/", " · ")}` : ""}`;
    return make("section", { class: "group" },
      make("h3", {}, `${one.version.document} `, make("small", {}, castigate.several(some.length, "case"))),
      make("p", { class: "chips" }, some.map((each) => [castigate.caseLink(each.id, label(each)), " "])),
      make("div", { class: "camps" }, [...grouped].map((each) => camp(one, each))));
  }

  place.replaceChildren(
    make("p", { class: "lead" }, "In how many cases two backends, both of which answered, break the same rules on the same inputs with the same answers, or none; and in how many all their answers are the same in every bit, also where a document allows several or any."),
    agreement(), ...[...alike.values()].map(group));
});
