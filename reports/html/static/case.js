"use strict";

// The page of one case: each backend's verdict, its broken rules, and a script that reproduces them.
castigate.follow(document.getElementById("case"), async (id, element) => {
  const { make, drawing } = castigate;
  const found = await castigate.index();
  const one = found.cases.find((each) => each.id === id);
  const title = document.getElementById("title");
  if (!one) {
    title.textContent = "Case";
    throw new Error(id ? `There is no case ${id} in this run.` : "The address names no case; open one from the list of cases.");
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
        button.textContent = "Copying is blocked";
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
      make("div", { class: "long" }, make("dt", {}, "case"), make("dd", {}, make("code", {}, id), " ", copyButton(id, "Copy the case id"))),
      make("div", {}, make("dt", {}, "document"), make("dd", {}, make("a", { href: `${data.page}#version=${encodeURIComponent(one.version.version)}` }, `${one.version.document} ${one.version.version}`))),
      make("div", {}, make("dt", {}, "all documents"), make("dd", {}, make("a", { href: `pair.html#${one.source}/${one.target}` }, `${one.source} → ${one.target}`))),
      modes.length ? make("div", { class: "long" }, make("dt", {}, "other modes"), make("dd", { class: "chips" }, modes.map((each) => [link(each, each.mode || "none"), " "]))) : "",
      versions.length ? make("div", { class: "long" }, make("dt", {}, "other versions"), make("dd", { class: "chips" }, versions.map((each) => [link(each, each.version.version), " "]))) : "");
  }

  // A rule's name, linked to its row on the page of rules if there is one.
  function ruleLink(rule) {
    const name = make("code", {}, rule);
    return data.lines[rule] ? make("a", { href: `${data.page}#${rule}` }, name) : name;
  }

  // A clause, with the lines that it cites.
  function clauseText(rule, clause) {
    const lines = (data.lines[rule] || {})[clause];
    return [clause, lines ? [" ", make("span", { class: "lines" }, lines)] : ""];
  }

  // The rules that apply to the case, whether or not a backend breaks them.
  function rules() {
    const rows = data.rules[data.rules_of[id]].map(([rule, level, clause, inputs]) => make("tr", {},
      make("th", { scope: "row" }, ruleLink(rule)), make("td", {}, level),
      make("td", { class: "text" }, clauseText(rule, clause)), make("td", { class: "text" }, inputs)));
    return rows.length ? make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Rules of this case" },
      make("table", {}, make("thead", {}, make("tr", {}, ["rule", "level", "clause", "inputs"].map((each) => make("th", { scope: "col" }, each)))),
        make("tbody", {}, rows))) : "";
  }

  function history(cell) {
    const shown = [...cell.history].map((digit, run) => {
      const verdict = found.verdicts[digit];
      const label = `${found.runs[run]}: ${verdict ? verdict.name : "not in this run"}`;
      return make("li", { class: verdict ? `v-${verdict.name}` : "v-absent", title: label },
        make("span", { "aria-hidden": "true" }, verdict ? verdict.sign : " "), make("span", { class: "hidden" }, label));
    });
    return make("div", { class: "past" }, make("h4", {}, "Past runs"), make("ol", {}, ...shown),
      make("span", { class: "quiet" }, `${found.runs[0]} to ${found.runs.at(-1)} UTC`));
  }

  function brokenRule(each) {
    const section = make("div", { class: "broken" }, make("h4", {}, ruleLink(each.rule), " ",
      make("span", { class: "level" }, each.level), " ", make("span", { class: "clause" }, clauseText(each.rule, each.clause))));
    if (each.smallest) {
      const counts = `${castigate.several(each.wrong, "input")} in ${castigate.several(each.runs, "run")}`;
      section.append(drawing.example(each));
      const dtype = found.dtypes[one.source];
      if (each.segments.length) section.append(drawing.line(each.segments, dtype, `${counts}, from all zeros to all ones`));
      section.append(make("details", { open: each.stretches.length < 4 }, make("summary", {}, counts,
        each.listed < each.runs ? `; the line shows the first ${castigate.several(each.listed, "run")}` : ""), drawing.stretches(each)));
    }
    return section;
  }

  // A road that does as the plain backend of its framework is shown with it.
  function groupCells() {
    const grouped = new Map();
    const inOrder = [...cells].sort((cell, other) => found.order.indexOf(cell.backend) - found.order.indexOf(other.backend));
    for (const cell of inOrder) {
      const { plain } = found.backends[cell.backend];
      const shown = castigate.differs(one, cell.backend) ? cell.backend : plain;
      const key = JSON.stringify([shown, cell.history, cell.changes]);
      grouped.set(key, [...(grouped.get(key) || []), cell]);
    }
    return [...grouped.values()];
  }

  function backend([cell, ...same], row) {
    const { name, version } = found.backends[cell.backend];
    const verdict = castigate.verdict(found, one, cell.backend);
    const alike = cells.filter((each) => each !== cell && !same.includes(each) && cell.broken.length
      && each.broken.join() === cell.broken.join());
    const names = castigate.together(found, alike.map((each) => each.backend));
    const rules = cell.broken.map((each) => brokenRule(data.broken[each]));
    const numbers = [];
    if (cell.inputs) {
      numbers.push(castigate.several(cell.inputs, "input"));
      const wrong = cell.broken.reduce((sum, each) => sum + data.broken[each].wrong, 0);
      if (wrong) numbers.push(castigate.several(wrong, "wrong answer"));
      if (cell.open) numbers.push(`${castigate.number(cell.open)} open`);
    }
    const script = data.texts[cell.script];
    return make("section", { class: `backend${cell.broken.length || script ? "" : " brief"}`, "aria-labelledby": `backend-${row}` },
      make("h3", { id: `backend-${row}` }, castigate.badge(verdict), " ", name, " ", make("small", {}, version), castigate.nameWithRoads(found, [cell.backend, ...same.map((each) => each.backend)])[1]),
      make("p", { class: "numbers" }, numbers.join(", "), alike.some((each) => each.backend > cell.backend) ? `; fails in the same way as ${names}` : ""),
      data.texts[cell.message] ? make("p", { class: "message" }, data.texts[cell.message]) : "",
      cell.behaviors.length ? make("div", { class: "behaviors" }, make("h4", {}, "On open inputs"),
        make("ul", {}, cell.behaviors.map((each) => make("li", {}, data.texts[each])))) : "",
      cell.changes.length ? make("ul", { class: "changes" }, cell.changes.map(([kind, rule]) => make("li", {},
        castigate.changeBadge(found.changes.find((each) => each.name === kind)), " since the previous run: ", make("code", {}, rule)))) : "",
      // Divergences that are shown above for another backend are folded.
      alike.some((each) => each.backend < cell.backend)
        ? make("details", {}, make("summary", {}, `Same divergences as ${names}`), rules) : rules,
      script ? make("details", { class: "script" }, make("summary", {}, "Script that reproduces it"), copyButton(script, `Copy the script for ${name}`),
        make("pre", { tabindex: 0 }, make("code", {}, script))) : "",
      found.runs.length > 1 ? history(cell) : "");
  }

  element.replaceChildren(...[siblings(), rules()].filter(Boolean), ...groupCells().map(backend));
});
