"use strict";

// Drawings: the bits of a pattern by field, and runs of inputs on the line of all bit patterns.
castigate.drawing = (() => {
  const { make } = castigate;
  const FIELDS = { 3: ["sign", "exponent", "mantissa"], 2: ["sign", "rest"], 1: ["rest"] };

  function bits(fields) {
    if (!/^[01 |]+$/.test(fields)) return make("span", {}, fields);
    const parts = fields.split(" | ");
    const names = FIELDS[parts.length];
    return make("span", { class: "bits" }, ...parts.map((part, field) => make(
      "span", { class: `field f-${names[field]}`, title: names[field] }, part)));
  }

  // A table of the smallest failing input, the allowed results, and the answer.
  function example(broken) {
    const rows = [["input", broken.smallest]];
    broken.allowed.forEach((each) => rows.push(["expected", each]));
    rows.push(["answer", broken.answer]);
    return make("table", { class: "example" }, make("tbody", {}, ...rows.map(([name, drawn]) => make(
      "tr", { class: `x-${name}` },
      make("th", { scope: "row" }, name),
      make("td", {}, make("code", {}, drawn[0])),
      make("td", {}, bits(drawn[1])),
      make("td", { class: "value" }, drawn[2])))));
  }

  // The side of a mark on which its name stands, so that names of close marks do not overlap.
  function side(marks, which) {
    const [step] = marks[which];
    if (step < 24 || (marks[which - 1] && step - marks[which - 1][0] < 60)) return "right";
    if (step > 960 || (marks[which + 1] && marks[which + 1][0] - step < 60)) return "left";
    return "middle";
  }

  // The line of all bit patterns with runs of inputs on it; segments are pairs of start and end.
  function line(segments, dtype, label) {
    const rects = [];
    for (let at = 0; at < segments.length; at += 2) {
      const width = Math.max(segments[at + 1] - segments[at], 2);
      rects.push(make("rect", { class: "run", x: segments[at], width, y: 0, height: 10 }));
    }
    const nans = dtype.nans.map(([start, end]) => make("rect", { class: "nans", x: start, width: end - start, y: 0, height: 10 }));
    const picture = make("svg", {
      viewBox: "0 0 1024 10", preserveAspectRatio: "none", role: "img", "aria-label": label,
    }, ...nans, ...rects);
    const marks = dtype.marks.map(([step, name], which) => {
      const mark = make("span", { class: `mark ${side(dtype.marks, which)}` }, name);
      mark.style.left = `${step / 10.24}%`;
      return mark;
    });
    return make("div", { class: "line" }, picture, make("div", { class: "marks", "aria-hidden": "true" }, ...marks));
  }

  function answers(stretch) {
    const [, , count, answer, last, slope, straight] = stretch;
    if (count === 1 || (straight && slope === 0)) return answer;
    return `${answer} … ${last}${straight ? `, rising by ${slope}` : ""}`;
  }

  function stretches(broken) {
    const rows = broken.stretches.map((each) => make("tr", {},
      make("td", {}, make("code", {}, each[2] === 1 ? each[0] : `${each[0]} … ${each[1]}`)),
      make("td", { class: "number" }, castigate.number(each[2])),
      make("td", {}, make("code", {}, answers(each)))));
    const left = broken.runs - broken.stretches.length;
    if (left > 0) {
      rows.splice(-1, 0, make("tr", {}, make("td", { colspan: 3, class: "quiet" }, castigate.several(left, "more run"))));
    }
    const table = make("table", { class: "stretches" },
      make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "failing inputs"),
        make("th", { scope: "col", class: "number" }, "count"), make("th", { scope: "col" }, "answers"))),
      make("tbody", {}, ...rows));
    return make("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Failing inputs and answers" }, table);
  }

  return { bits, example, line, stretches };
})();
