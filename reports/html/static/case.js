"use strict";

// One case: what every backend makes of it, rule by rule, with a script to see it again.
castigate.follow(document.getElementById("case"), async (id, place) => {
  const { make, drawing } = castigate;
  const found = await castigate.index();
  const one = found.cases.find((each) => each.id === id);
  const title = document.getElementById("title");
  if (!one) {
    title.textContent = "Case";
    throw new Error(id ? `There is no case ${id} in this run.` : "No case is named in the address.");
  }
  const data = await castigate.load(`${one.version.document}.${one.source}`);
  const cells = data.cases[id];
  document.title = `${id} · Castigate`;
  title.replaceChildren(one.source, " → ", one.target,
    one.mode ? make("span", { class: "version" }, ` ${one.mode.replaceAll("/", " · ")}`) : "");

  function copyButton(text, label) {
    const button = make("button", { type: "button", class: "copy", "aria-label": label }, "Copy");
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(text);
        button.textContent = "Copied";
      } catch {
        button.textContent = "Not allowed here";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    return button;
  }

  // Other cases of this pair in this version, and this case in other versions.
  function siblings() {
    const near = found.cases.filter((each) => each !== one && each.source === one.source
      && each.target === one.target && each.version.document === one.version.document
      && (each.version === one.version || each.mode === one.mode));
    const modes = near.filter((each) => each.version === one.version);
    const versions = found.cases.filter((each) => near.includes(each) && each.version !== one.version);
    const link = (each, text) => castigate.caseLink(each.id, text);
    return make("dl", { class: "facts" },
      make("div", { class: "long" }, make("dt", {}, "case"), make("dd", {}, make("code", {}, id), " ", copyButton(id, "Copy the case's id"))),
      make("div", {}, make("dt", {}, "document"), make("dd", {}, make("a", { href: one.version.page }, `${one.version.document} ${one.version.version}`))),
      make("div", {}, make("dt", {}, "all documents"), make("dd", {}, make("a", { href: `pair.html#${one.source}/${one.target}` }, `${one.source} → ${one.target}`))),
      modes.length ? make("div", { class: "long" }, make("dt", {}, "other modes"), make("dd", { class: "chips" }, modes.map((each) => [link(each, each.mode || "none"), " "]))) : "",
      versions.length ? make("div", { class: "long" }, make("dt", {}, "other versions"), make("dd", { class: "chips" }, versions.map((each) => [link(each, each.version.version), " "]))) : "");
  }

  // A rule's name, which leads to its row among the document's rules; its clause, with the page's lines.
  function named(rule) {
    const name = make("code", {}, rule);
    return data.lines[rule] ? make("a", { href: `${data.page}#${rule}` }, name) : name;
  }

  function cited(rule, clause) {
    const lines = (data.lines[rule] || {})[clause];
    return [clause, lines ? [" ", make("span", { class: "lines" }, lines)] : ""];
  }

  // The rules that take the case, whoever keeps or breaks them.
  function rules() {
    const rows = data.rules[data.rules_of[id]].map(([rule, level, clause, inputs]) => make("tr", {},
      make("th", { scope: "row" }, named(rule)), make("td", {}, level),
      make("td", { class: "text" }, cited(rule, clause)), make("td", { class: "text" }, inputs)));
    return rows.length ? make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Rules of this case" },
      make("table", {}, make("thead", {}, make("tr", {}, ["rule", "level", "clause", "inputs"].map((each) => make("th", { scope: "col" }, each)))),
        make("tbody", {}, rows))) : "";
  }

  function past(cell) {
    const shown = [...cell.history].map((letter, place) => {
      const told = found.verdicts[letter];
      const words = `${found.runs[place]}: ${told ? told.name : "not asked"}`;
      return make("li", { class: told ? `v-${told.name}` : "v-absent", title: words },
        make("span", { "aria-hidden": "true" }, told ? told.sign : " "), make("span", { class: "hidden" }, words));
    });
    return make("div", { class: "past" }, make("h4", {}, "Past runs"), make("ol", {}, ...shown),
      make("span", { class: "quiet" }, `${found.runs[0]} to ${found.runs.at(-1)} UTC`));
  }

  function finding(each) {
    const made = make("div", { class: "finding" }, make("h4", {}, named(each.rule), " ",
      make("span", { class: "level" }, each.level), " ", make("span", { class: "clause" }, cited(each.rule, each.clause))));
    if (each.smallest) {
      const words = `${castigate.several(each.wrong, "input")} in ${castigate.several(each.runs, "run")}`;
      made.append(drawing.example(each));
      const dtype = found.dtypes[one.source];
      if (each.segments.length) made.append(drawing.line(each.segments, dtype, `${words}, from all zeros to all ones`));
      made.append(make("details", { open: each.stretches.length < 4 }, make("summary", {}, words,
        each.listed < each.runs ? `, the first ${castigate.number(each.listed)} of which are drawn` : ""), drawing.stretches(each)));
    }
    return made;
  }

  function backend(cell, place) {
    const { name, version } = found.backends[cell.backend];
    const told = castigate.verdict(found, one, cell.backend);
    const alike = cells.filter((each) => each !== cell && cell.findings.length
      && each.findings.join() === cell.findings.join());
    const names = alike.map((each) => found.backends[each.backend].name).join(", ");
    const findings = cell.findings.map((each) => finding(data.findings[each]));
    const numbers = [];
    if (cell.inputs) {
      numbers.push(castigate.several(cell.inputs, "input"));
      const wrong = cell.findings.reduce((sum, each) => sum + data.findings[each].wrong, 0);
      if (wrong) numbers.push(`${castigate.number(wrong)} answered wrong`);
      if (cell.open) numbers.push(`${castigate.number(cell.open)} open`);
    }
    const script = data.texts[cell.script];
    return make("section", { class: `backend${cell.findings.length || script ? "" : " brief"}`, "aria-labelledby": `backend-${place}` },
      make("h3", { id: `backend-${place}` }, castigate.badge(told), " ", name, " ", make("small", {}, version)),
      make("p", { class: "numbers" }, numbers.join(", "), alike.some((each) => each.backend > cell.backend) ? `; the same as ${names}` : ""),
      data.texts[cell.message] ? make("p", { class: "message" }, data.texts[cell.message]) : "",
      cell.behaviours.length ? make("div", { class: "behaviours" }, make("h4", {}, "On open inputs"),
        make("ul", {}, cell.behaviours.map((each) => make("li", {}, data.texts[each])))) : "",
      cell.changes.length ? make("ul", { class: "changes" }, cell.changes.map(([kind, rule]) => make("li", {},
        castigate.changed(found.changes.find((each) => each.name === kind)), " since the previous run: ", make("code", {}, rule)))) : "",
      // What has just been drawn for another backend is drawn again only when asked for.
      alike.some((each) => each.backend < cell.backend)
        ? make("details", {}, make("summary", {}, `The same divergences as ${names}`), findings) : findings,
      script ? make("details", { class: "script" }, make("summary", {}, "Script that shows it"), copyButton(script, `Copy the script for ${name}`),
        make("pre", { tabindex: 0 }, make("code", {}, script))) : "",
      found.runs.length > 1 ? past(cell) : "");
  }

  place.replaceChildren(...[siblings(), rules()].filter(Boolean), ...cells.map(backend));
});
