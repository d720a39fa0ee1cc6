"use strict";

// The form of filters. The fragment of the address holds the state, so that it can be bookmarked.
castigate.filters = (found, draw) => {
  const form = document.getElementById("filters");
  const modes = new Set(found.cases.map((one) => one.mode));
  const choices = {
    document: found.versions.map((each) => `${each.document}:${each.version}`),
    version: found.versions.map((each) => each.version),
    from: Object.keys(found.dtypes).filter((name) => found.cases.some((one) => one.source === name)),
    to: Object.keys(found.dtypes).filter((name) => found.cases.some((one) => one.target === name)),
    mode: [...modes].map((mode) => mode || "none"),
    verdict: found.verdicts.map((each) => each.name),
    change: ["any", ...found.changes.map((each) => each.name)],
    rule: [...new Set(found.versions.flatMap((each) => each.broken.flatMap((broken) => Object.keys(broken)
      .map((rule) => `${each.document} ${rule}`))))],
  };
  for (const [name, values] of Object.entries(choices)) {
    if (form.elements[name]) {
      form.elements[name].append(...values.map((value) => castigate.make("option", { value }, value)));
    }
  }

  // Backends by framework; where several count, all of a framework can be chosen at once.
  const option = (value, text = value) => castigate.make("option", { value }, text);
  for (const field of ["backend", "port", "into"].map((name) => form.elements[name]).filter(Boolean)) {
    for (const { name, backends } of found.frameworks) {
      const options = backends.map((backend) => option(found.backends[backend].name));
      if (field.name === "backend" && options.length > 1) options.unshift(option(`${name}:*`, `${name} on all roads`));
      field.append(...(options.length > 1 ? [castigate.make("optgroup", { label: name }, options)] : options));
    }
  }

  function fromFragment() {
    const state = new URLSearchParams(location.hash.slice(1));
    for (const field of form.querySelectorAll("input, select")) {
      field.value = state.get(field.name) || "";
      // An old link may hold a value that is no longer a choice; the select is then empty.
      if (field.selectedIndex === -1) field.value = "";
    }
    draw(chosen());
  }

  function chosen() {
    return Object.fromEntries([...new FormData(form)].filter(([, value]) => value));
  }

  function toFragment() {
    const state = new URLSearchParams(chosen()).toString();
    history.replaceState(null, "", state ? `#${state}` : location.pathname);
    draw(chosen());
  }

  form.addEventListener("input", toFragment);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(toFragment));
  addEventListener("hashchange", () => castigate.target() || fromFragment());
  fromFragment();
};

// The element that the fragment names; a fragment with filters names none.
castigate.target = () => document.getElementById(location.hash.slice(1));

// Whether a case matches the filters that are about cases.
castigate.matchesCase = (one, state) => {
  const words = (state.q || "").toLowerCase().split(/\s+/).filter(Boolean);
  return (!state.document || `${one.version.document}:${one.version.version}` === state.document)
    && (!state.from || one.source === state.from)
    && (!state.to || one.target === state.to)
    && (!state.mode || (one.mode || "none") === state.mode)
    && words.every((word) => one.id.toLowerCase().includes(word));
};

// The backends that a choice names: one, all of a framework, or all that there are.
castigate.chosenBackends = (found, choice) => found.order.filter((backend) => {
  const { name, framework } = found.backends[backend];
  return !choice || name === choice || `${framework}:*` === choice;
});

// Return a function from a case to the backends whose verdict on it matches the filters.
castigate.matcher = (found, state) => {
  const backends = castigate.chosenBackends(found, state.backend);

  function matchesVerdict(one, backend) {
    const verdict = castigate.verdict(found, one, backend);
    return verdict !== undefined
      && (!state.verdict || verdict.name === state.verdict)
      && (!state.change || castigate.changes(found, one, backend)
        .some((change) => state.change === "any" || change.name === state.change))
      && (!state.rule || castigate.breaks(one, backend, state.rule));
  }

  return (one) => (castigate.matchesCase(one, state) ? backends.filter((backend) => matchesVerdict(one, backend)) : []);
};
