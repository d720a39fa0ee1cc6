"use strict";

// Numbers drawn: bits by their fields, runs of inputs on the line of all patterns.
castigate.drawing = (() => {
  const { make } = castigate;
  const FIELDS = { 3: ["sign", "exponent", "mantissa"], 2: ["sign", "rest"], 1: ["rest"] };

  function bits(fields) {
    if (!/^[01 |]+$/.test(fields)) return make("span", {}, fields);
    const parts = fields.split(" | ");
    const names = FIELDS[parts.length];
    return make("span", { class: "bits" }, ...parts.map((part, place) => make(
      "span", { class: `field f-${names[place]}`, title: names[place] }, part)));
  }

  // The smallest input, what is allowed, and the answer, under one another.
  function example(finding) {
    const rows = [["input", finding.smallest]];
    finding.allowed.forEach((each) => rows.push(["expected", each]));
    rows.push(["answer", finding.answer]);
    return make("table", { class: "example" }, make("tbody", {}, ...rows.map(([name, drawn]) => make(
      "tr", { class: `x-${name}` },
      make("th", { scope: "row" }, name),
      make("td", {}, make("code", {}, drawn[0])),
      make("td", {}, bits(drawn[1])),
      make("td", { class: "value" }, drawn[2])))));
  }

  // Names of marks that would touch lean away from one another.
  function lean(marks, place) {
    const [here] = marks[place];
    if (here < 24 || (marks[place - 1] && here - marks[place - 1][0] < 60)) return "right";
    if (here > 960 || (marks[place + 1] && marks[place + 1][0] - here < 60)) return "left";
    return "middle";
  }

  function line(segments, dtype, words) {
    const rects = [];
    for (let place = 0; place < segments.length; place += 2) {
      const width = Math.max(segments[place + 1] - segments[place], 2);
      rects.push(make("rect", { class: "run", x: segments[place], width, y: 0, height: 10 }));
    }
    const nans = dtype.nans.map(([start, end]) => make("rect", { class: "nans", x: start, width: end - start, y: 0, height: 10 }));
    const picture = make("svg", {
      viewBox: "0 0 1024 10", preserveAspectRatio: "none", role: "img", "aria-label": words,
    }, ...nans, ...rects);
    const marks = dtype.marks.map(([place, name], which) => {
      const mark = make("span", { class: `mark ${lean(dtype.marks, which)}` }, name);
      mark.style.left = `${place / 10.24}%`;
      return mark;
    });
    return make("div", { class: "line" }, picture, make("div", { class: "marks", "aria-hidden": "true" }, ...marks));
  }

  function answers(stretch) {
    const [, , count, answer, last, slope, straight] = stretch;
    if (count === 1 || (straight && slope === 0)) return answer;
    return `${answer} … ${last}${straight ? `, rising by ${slope}` : ""}`;
  }

  function stretches(finding) {
    const rows = finding.stretches.map((each) => make("tr", {},
      make("td", {}, make("code", {}, each[2] === 1 ? each[0] : `${each[0]} … ${each[1]}`)),
      make("td", { class: "number" }, castigate.number(each[2])),
      make("td", {}, make("code", {}, answers(each)))));
    const left = finding.runs - finding.stretches.length;
    if (left > 0) {
      const words = `${castigate.several(left, "more run")}`;
      rows.splice(-1, 0, make("tr", {}, make("td", { colspan: 3, class: "quiet" }, words)));
    }
    return make("table", { class: "stretches" },
      make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "failing inputs"),
        make("th", { scope: "col", class: "number" }, "count"), make("th", { scope: "col" }, "answers"))),
      make("tbody", {}, ...rows));
  }

  return { bits, example, line, stretches };
})();
