"use strict";

// The list of the cases that match the filters.
(async () => {
  const { make } = castigate;
  const AT_FIRST = 200;
  const found = await castigate.index();
  const list = document.getElementById("list");
  const more = document.getElementById("more");
  let rows = [];
  let columns = [];

  // Folded roads have no column unless they are chosen; a wide list has only chosen backends.
  function columnsFor(state) {
    const chosen = castigate.chosenBackends(found, state.backend);
    if (found.isWide && state.backend) return chosen;
    return found.order.filter((backend) => !found.backends[backend].isFolded || (state.backend && chosen.includes(backend)));
  }

  function head(backend) {
    const { backends } = found.frameworks.find((each) => each.backends.includes(backend));
    const folded = backends[0] === backend ? backends.filter((each) => found.backends[each].isFolded && !columns.includes(each)) : [];
    return make("th", { scope: "col" }, castigate.nameWithRoads(found, [backend, ...folded]));
  }

  function row([one, cells]) {
    const signs = columns.map((backend) => {
      const verdict = castigate.verdict(found, one, backend);
      if (!verdict) return make("td");
      const changes = castigate.changes(found, one, backend).map(castigate.changeBadge);
      const faded = cells.includes(backend) ? false : "faded";
      return make("td", { class: faded }, castigate.badge(verdict, found.isWide), ...changes);
    });
    return make("tr", {}, make("th", { scope: "row" }, castigate.caseLink(one.id)), ...signs);
  }

  function show(count) {
    list.tBodies[0].append(...rows.slice(list.tBodies[0].rows.length, count).map(row));
    more.hidden = count >= rows.length;
    more.textContent = `Show all ${castigate.number(rows.length)}`;
  }

  function draw(state) {
    const matching = castigate.matcher(found, state);
    rows = found.cases.map((one) => [one, matching(one)]).filter(([, cells]) => cells.length);
    const cells = rows.reduce((sum, each) => sum + each[1].length, 0);
    document.getElementById("found").value = rows.length
      ? `${castigate.several(rows.length, "case")}, ${castigate.several(cells, "verdict")}`
      : "no cases";
    columns = columnsFor(state);
    list.tHead.replaceChildren(make("tr", {}, make("th", { scope: "col" }, "case"), columns.map(head)));
    list.tBodies[0].replaceChildren();
    show(AT_FIRST);
  }

  more.addEventListener("click", () => show(rows.length));
  castigate.filters(found, draw);
})();
