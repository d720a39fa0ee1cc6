"use strict";

// The page of one pair: what each backend answers, by which documents it is wrong, and how to see it.
castigate.follow(document.getElementById("pair"), async (name, element) => {
  const { make, drawing } = castigate;
  const found = await castigate.load("board");
  const [source, target, ...rest] = name.split("/");
  const pair = `${source}/${target}`;
  const title = document.getElementById("title");
  if (!found.dtypes.includes(source) || !found.dtypes.includes(target)) {
    title.textContent = "Pair";
    throw new Error(name ? `There is no pair ${name}.` : "The address names no pair; open one from the list.");
  }
  title.textContent = `${source} → ${target}`;
  document.title = `${source} → ${target} · Castigate`;
  const [input, asks] = found.asked[pair] || [];
  const place = Object.keys(found.asked).indexOf(pair);
  const sources = found.sources.includes(source) ? await castigate.load(source) : { pairs: {} };
  const cells = new Map(sources.pairs[target] || []);

  function answer(row) {
    const told = place < 0 ? null : row.answers[place];
    if (!told) return "";
    const [word, id, verdict] = told;
    const earlier = row.earlier.filter(([, , words]) => words[place]).map(([version, date, words]) => `${version} (${date}): ${words[place]}`);
    return [
      make("p", {}, `${input}: `, word ? make("span", { class: "answer" }, word) : "the run holds no answer", " ", castigate.badge(found.verdicts[verdict]), " ", make("code", {}, id)),
      earlier.length ? make("p", { class: "quiet" }, `Earlier versions: ${earlier.join(", ")}`) : "",
    ];
  }

  function cases(list) {
    const byDocument = new Map();
    for (const [edition, mode] of list) byDocument.set(edition, [...(byDocument.get(edition) || []), mode.replaceAll("/", " · ")]);
    return [...byDocument].map(([edition, modes]) => {
      const named = modes.filter(Boolean);
      const shown = named.slice(0, 6).join(", ") + (named.length > 6 ? ` and ${castigate.number(named.length - 6)} more` : "");
      return make("p", { class: "cases" }, make("b", {}, edition), shown ? ` ${shown}` : "");
    });
  }

  function since(finding) {
    if (!finding.since) return "";
    return finding.without ? `Since ${finding.since}; ${finding.without} did not have it.` : `Known in ${finding.since}; no earlier version was asked.`;
  }

  function shown(row, [at, index]) {
    const one = sources.examples[index];
    const finding = row.findings[at];
    return [
      finding ? make("p", {}, `${finding.kind}: ${finding.says}. `, make("span", { class: "quiet" }, since(finding))) : "",
      finding && finding.thread ? make("p", {}, "Reported as ", make("a", { href: finding.thread }, finding.thread)) : "",
      finding && finding.intended ? make("p", {}, `Intended by its owner, and not what the document says: ${finding.intended}`) : "",
      one.rule ? make("p", {}, make("code", {}, one.rule), ` ${one.level}, ${one.clause}${one.wrong ? `: ${one.exact ? "" : "at least "}${castigate.several(one.wrong, "input")}` : ""}${one.smallest ? ", such as" : ""}`) : "",
      one.smallest ? drawing.example(one) : "",
      one.told ? make("p", { class: "message" }, one.told) : "",
      one.script ? make("details", {}, make("summary", {}, "Script that shows it"), make("pre", { tabindex: 0 }, one.script)) : "",
    ];
  }

  // Verdicts that say nothing about a document that the backend claims; their groups are folded.
  const QUIET = ["differs", "unsupported", "not-run"];

  function groupBox(row, [verdict, list, wrong]) {
    return make("div", {},
      make("h3", {}, castigate.badge(found.verdicts[verdict]), ` ${castigate.several(list.length, "case")}`),
      cases(list), wrong.map((each) => shown(row, each)));
  }

  function section(row, at) {
    const groups = cells.get(at);
    if (!groups) return "";
    const told = place < 0 ? null : row.answers[place];
    const isAsked = ([, list]) => told && list.some(([edition, mode]) => told[1] === [edition, pair, mode].filter(Boolean).join("/"));
    const open = groups.filter((each) => !QUIET.includes(each[0]) || isAsked(each));
    const folded = groups.filter((each) => !open.includes(each));
    const count = folded.reduce((sum, [, list]) => sum + list.length, 0);
    return make("section", { class: `row${rest.join("/") === row.key ? " chosen" : ""}`, "data-key": row.key },
      make("h2", {}, `${row.name} `, make("small", {}, `${row.version}, run of ${row.date}, tier ${row.tier}`)),
      row.notes.map((note) => make("p", { class: "note" }, note)),
      answer(row),
      open.map((each) => groupBox(row, each)),
      count ? make("details", { class: "folded" }, make("summary", {}, `${castigate.several(count, "more case")}: ${[...new Set(folded.map(([verdict]) => verdict))].join(", ")}`),
        folded.map((each) => groupBox(row, each))) : "");
  }

  const threads = found.threads[pair] || [];
  const sections = found.rows.map(section).filter(Boolean);
  element.replaceChildren(
    input ? make("p", { class: "lead" }, `Telling input: ${input}. ${asks[0].toUpperCase()}${asks.slice(1)}.`) : "",
    sections.length ? "" : make("p", {}, "No run on this board asked this pair."),
    ...sections,
    threads.length ? make("section", { "aria-labelledby": "threads" }, make("h2", { id: "threads" }, "Public threads"),
      make("ul", {}, threads.map(([link, report]) => make("li", {}, make("a", { href: link }, link.replace("https://github.com/", "")), `: ${report}`)))) : "");
  const chosen = element.querySelector(".chosen");
  if (chosen) {
    const script = chosen.querySelector("details:not(.folded)");
    if (script) script.open = true;
    chosen.scrollIntoView();
  }
});
