"use strict";

// Shared by all pages: loading of data files, creation of elements, and the fragment as state.
// No script of the report ever parses text as markup.
const castigate = (() => {
  const slots = new Map();

  function slot(name) {
    if (!slots.has(name)) {
      const fresh = {};
      fresh.data = new Promise((resolve, reject) => Object.assign(fresh, { resolve, reject }));
      slots.set(name, fresh);
    }
    return slots.get(name);
  }

  // Called by each data file with its content: deflated JSON in base64.
  async function receive(name, payload) {
    try {
      const bytes = Uint8Array.from(atob(payload), (letter) => letter.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
      slot(name).resolve(await new Response(stream).json());
    } catch (error) {
      slot(name).reject(error);
    }
  }

  // Load the content of a data file. A script element works from `file://`, where fetch does not.
  function load(name) {
    const pending = slot(name);
    if (!pending.isLoading && name !== "index") {
      const script = document.createElement("script");
      script.src = `data/${encodeURIComponent(name)}.js`;
      script.addEventListener("error", () => pending.reject(new Error(`data/${name}.js is missing; copy the whole folder of the report again`)));
      document.head.append(script);
    }
    pending.isLoading = true;
    return pending.data;
  }

  // Link each backend to the plain one of its framework; a road that never differs from that is folded.
  function groupRoads(found) {
    for (const version of found.versions) version.differing = version.differing.map((cases) => new Set(cases));
    for (const { name, backends: [plain, ...roads] } of found.frameworks) {
      Object.assign(found.backends[plain], { framework: name, plain, isFolded: false });
      for (const road of roads) {
        const isFolded = found.versions.every((version) => !version.differing[road].size);
        Object.assign(found.backends[road], { framework: name, plain, isFolded });
      }
    }
    found.order = found.frameworks.flatMap(({ backends }) => backends);
    found.isWide = document.body.classList.contains("many");
  }

  // Whether a road's result in a case is not that of the plain backend of its framework.
  function differs(one, backend) {
    return one.version.differing[backend].has(one.index);
  }

  // A backend's name, and with it those of roads of its framework that do the same.
  function nameWithRoads(found, [backend, ...roads]) {
    const { name, framework } = found.backends[backend];
    const short = roads.map((road) => found.backends[road].name.replace(framework, ""));
    return [name, roads.length ? make("small", { class: "folds" }, ` same: ${short.join(", ")}`) : ""];
  }

  // Name backends in one line, those of a whole framework once.
  function together(found, some) {
    return found.frameworks.flatMap(({ backends: [plain, ...roads] }) => {
      const present = [plain, ...roads].filter((backend) => some.includes(backend)).map((backend) => found.backends[backend].name);
      const isWhole = roads.length && present.length > roads.length;
      return isWhole ? [`${present[0]} and its ${roads.length === 1 ? "other road" : `${roads.length} other roads`}`] : present;
    }).join(", ");
  }

  // Load the index, with its cases as objects.
  async function index() {
    const found = await load("index");
    if (!found.cases) {
      groupRoads(found);
      const names = Object.keys(found.dtypes);
      found.cases = [];
      for (const version of found.versions) {
        version.first = found.cases.length;
        version.count = version.cases.length / 3;
        for (let index = 0; index < version.count; index += 1) {
          const [source, target] = [0, 1].map((part) => names[version.cases[3 * index + part]]);
          const mode = version.modes[version.cases[3 * index + 2]];
          const id = `${version.document}:${version.version}/${source}/${target}${mode && `/${mode}`}`;
          found.cases.push({ id, version, source, target, mode, index });
        }
      }
    }
    return found;
  }

  // A backend's verdict on a case; undefined if the run does not have it.
  function verdict(found, one, backend) {
    return found.verdicts[one.version.verdicts[backend][one.index]];
  }

  // The kinds of change of a cell since the previous run.
  function changes(found, one, backend) {
    const kinds = one.version.changes[backend][one.index] || [];
    return kinds.map((kind) => found.changes[kind]);
  }

  // Whether a backend breaks a rule in a case; rules are named `DOCUMENT RULE`.
  function breaks(one, backend, rule) {
    const cases = one.version.broken[backend][rule.slice(one.version.document.length + 1)] || [];
    return rule.startsWith(`${one.version.document} `) && cases.includes(one.index);
  }

  // Create an element with attributes and children; strings become text nodes, never markup.
  function make(tag, attributes = {}, ...children) {
    const svg = ["svg", "rect", "line"].includes(tag);
    const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value === true) element.setAttribute(name, "");
      else if (value !== false && value !== undefined) element.setAttribute(name, value);
    }
    element.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== ""));
    return element;
  }

  function sign(each) {
    return make("span", { "aria-hidden": "true" }, each.sign);
  }

  // A verdict's sign and name; a brief one shows its name only to those who do not see it.
  function badge(verdict, isBrief = false) {
    const name = isBrief ? make("span", { class: "hidden" }, verdict.name) : ` ${verdict.name}`;
    return make("span", { class: `badge v-${verdict.name}`, title: `${verdict.name}: ${verdict.meaning}` }, sign(verdict), name);
  }

  function changeBadge(change) {
    return make("span", { class: `change c-${change.name}`, title: change.meaning }, sign(change), ` ${change.name}`);
  }

  function caseLink(id, text = id, attributes = {}) {
    return make("a", { href: `case.html#${id}`, ...attributes }, text);
  }

  const digits = new Intl.NumberFormat("en");

  function number(value) {
    return digits.format(value);
  }

  function several(count, one, many = `${one}s`) {
    return `${number(count)} ${count === 1 ? one : many}`;
  }

  // Handle arrow keys in a matrix: they move the focus from link to link.
  function moveInMatrix(event) {
    const steps = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
    const step = steps[event.key];
    const here = event.target.closest("td");
    if (!step || !here) return;
    event.preventDefault();
    const { rows } = here.closest("table");
    let [row, column] = [here.parentElement.rowIndex + step[0], here.cellIndex + step[1]];
    while (rows[row] && rows[row].cells[column]) {
      const link = rows[row].cells[column].querySelector("a");
      if (link) {
        event.target.tabIndex = -1;
        link.tabIndex = 0;
        link.focus();
        return;
      }
      [row, column] = [row + step[0], column + step[1]];
    }
  }

  // Draw what the fragment names, now and whenever it changes; show a note if that fails.
  function follow(element, draw) {
    async function show() {
      let name = location.hash.slice(1);
      try {
        name = decodeURIComponent(name);
        await draw(name, element);
      } catch (error) {
        element.replaceChildren(make("p", { class: "note" }, String(error.message || error)));
      }
      element.dataset.shown = name;
    }
    addEventListener("hashchange", show);
    show();
  }

  // Mark the regions that scroll sideways, now and whenever they or their content change.
  function markScrolling() {
    const sizes = new ResizeObserver((entries) => {
      for (const region of new Set(entries.map(({ target }) => target.closest(".scroll")))) {
        if (region) region.classList.toggle("scrolls", region.scrollWidth > region.clientWidth);
      }
    });
    function watch(added) {
      for (const each of added.querySelectorAll(".scroll, .scroll > *")) sizes.observe(each);
    }
    const main = document.getElementById("main");
    watch(main);
    const additions = new MutationObserver((records) => records.forEach(({ target }) => watch(target.parentElement || target)));
    additions.observe(main, { childList: true, subtree: true });
  }
  markScrolling();

  return { receive, load, index, differs, nameWithRoads, together, verdict, changes, breaks, make, sign, badge, changeBadge, caseLink, number, several, moveInMatrix, follow };
})();
