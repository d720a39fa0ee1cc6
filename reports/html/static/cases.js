"use strict";

// The list of cases that the filters leave.
(async () => {
  const { make } = castigate;
  const AT_FIRST = 200;
  const found = await castigate.index();
  const list = document.getElementById("list");
  const more = document.getElementById("more");
  let rows = [];

  function row([one, cells]) {
    const signs = found.backends.map((backend, place) => {
      const told = castigate.verdict(found, one, place);
      if (!told) return make("td");
      const marks = castigate.changes(found, one, place).map(castigate.changed);
      const faded = cells.includes(place) ? "" : " faded";
      return make("td", { class: faded.trim() || false }, castigate.badge(told), ...marks);
    });
    return make("tr", {}, make("th", { scope: "row" }, castigate.caseLink(one.id)), ...signs);
  }

  function show(count) {
    list.tBodies[0].append(...rows.slice(list.tBodies[0].rows.length, count).map(row));
    more.hidden = count >= rows.length;
    more.textContent = `Show all ${castigate.number(rows.length)}`;
  }

  function draw(state) {
    const wanted = castigate.wanted(found, state);
    rows = found.cases.map((one) => [one, wanted.cells(one)]).filter(([, cells]) => cells.length);
    const cells = rows.reduce((sum, each) => sum + each[1].length, 0);
    document.getElementById("found").value = rows.length
      ? `${castigate.several(rows.length, "case")}, ${castigate.several(cells, "verdict")}`
      : "no case";
    list.tBodies[0].replaceChildren();
    show(AT_FIRST);
  }

  list.tHead.append(make("tr", {}, make("th", { scope: "col" }, "case"),
    ...found.backends.map((each) => make("th", { scope: "col" }, each.name))));
  more.addEventListener("click", () => show(rows.length));
  castigate.filters(found, draw);
})();
