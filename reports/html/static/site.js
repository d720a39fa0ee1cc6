"use strict";

// What all pages share: data files, the fragment as state, and elements made of text.
// Nothing here or in the other scripts reads text as markup.
const castigate = (() => {
  const slots = new Map();

  function slot(name) {
    if (!slots.has(name)) {
      const made = {};
      made.data = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
      slots.set(name, made);
    }
    return slots.get(name);
  }

  // Called by each data file: deflated JSON in base64.
  async function receive(name, squeezed) {
    try {
      const bytes = Uint8Array.from(atob(squeezed), (letter) => letter.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
      slot(name).resolve(await new Response(stream).json());
    } catch (error) {
      slot(name).reject(error);
    }
  }

  // The content of a data file; a script element works from a disk, where fetch does not.
  function load(name) {
    const wanted = slot(name);
    if (!wanted.asked && name !== "index") {
      const script = document.createElement("script");
      script.src = `data/${encodeURIComponent(name)}.js`;
      script.addEventListener("error", () => wanted.reject(new Error(`data/${name}.js is missing`)));
      document.head.append(script);
    }
    wanted.asked = true;
    return wanted.data;
  }

  // The index, its cases as objects.
  async function index() {
    const found = await load("index");
    if (!found.cases) {
      const names = Object.keys(found.dtypes);
      found.cases = [];
      for (const version of found.versions) {
        version.first = found.cases.length;
        version.count = version.cases.length / 3;
        for (let place = 0; place < version.count; place += 1) {
          const [source, target] = [0, 1].map((part) => names[version.cases[3 * place + part]]);
          const mode = version.modes[version.cases[3 * place + 2]];
          const id = `${version.document}:${version.version}/${source}/${target}${mode && `/${mode}`}`;
          found.cases.push({ id, version, source, target, mode, place });
        }
      }
    }
    return found;
  }

  // A backend's verdict on a case, or nothing if it was not asked; and what has changed.
  function verdict(found, one, backend) {
    return found.verdicts[one.version.verdicts[backend][one.place]];
  }

  function changes(found, one, backend) {
    const kinds = one.version.changes[backend][one.place] || [];
    return kinds.map((kind) => found.changes[kind]);
  }

  // Whether a backend breaks a rule in a case; a rule is named after its document.
  function breaks(one, backend, rule) {
    const places = one.version.broken[backend][rule.slice(one.version.document.length + 1)] || [];
    return rule.startsWith(`${one.version.document} `) && places.includes(one.place);
  }

  // An element with attributes and children; a text is a text, whatever is in it.
  function make(tag, attributes = {}, ...children) {
    const svg = ["svg", "rect", "line"].includes(tag);
    const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value === true) made.setAttribute(name, "");
      else if (value !== false && value !== undefined) made.setAttribute(name, value);
    }
    made.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== ""));
    return made;
  }

  function sign(each) {
    return make("span", { "aria-hidden": "true" }, each.sign);
  }

  function badge(told) {
    return make("span", { class: `badge v-${told.name}`, title: told.meaning }, sign(told), ` ${told.name}`);
  }

  function changed(change) {
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

  // Show what a fragment names, now and whenever it changes; tell what cannot be shown.
  function follow(place, draw) {
    async function show() {
      let name = location.hash.slice(1);
      try {
        name = decodeURIComponent(name);
        await draw(name, place);
      } catch (error) {
        place.replaceChildren(make("p", { class: "note" }, String(error.message || error)));
      }
      place.dataset.shown = name;
    }
    addEventListener("hashchange", show);
    show();
  }

  return { receive, load, index, verdict, changes, breaks, make, sign, badge, changed, caseLink, number, several, follow };
})();
