// Which cases are shown, and beside each filter how many would be.

const BRANCH_WORDS = {
  conflict: "merge conflict", unusable: "unusable golden", changed: "accepted anew", deleted: "deleted", renamed: "renamed", new: "new", same: "as in the base",
};

function tests(state) {
  const query = state.q.trim().toLowerCase();
  return {
    q: (one) => !query || one.id.toLowerCase().includes(query) || one.headline.toLowerCase().includes(query),
    verdict: (one) => !state.verdict.length || state.verdict.includes(one.word),
    branch: (one) => !state.branch.length || state.branch.includes(one.branch),
    writes: (one) => !state.writes || Boolean(one.writes),
    stuck: (one) => !state.stuck || Boolean(one.stuck),
    tool: (one, tools) => !state.tool || one.tools.some((number) => tools[number] === state.tool),
  };
}

class Filters {
  constructor(data, changed) {
    this.data = data;
    this.changed = changed;
    this.state = readAddress();
    this.buttons = [];
    this.build();
  }

  build() {
    const { cases } = this.data;
    const words = [...new Set(cases.map((one) => one.word))];
    const kinds = Object.keys(BRANCH_WORDS).filter((kind) => cases.some((one) => one.branch === kind));
    const facets = document.getElementById("facets");
    const group = (name, title, values, label) => {
      if (values.length < 2) return;
      facets.append(el("div", { class: "facet", role: "group", "aria-label": title }, el("span", { class: "facet-name" }, title),
        values.map((value) => this.button(name, value, label(value)))));
    };
    group("verdict", "Verdict", words, (word) => word);
    group("branch", "Golden", kinds, (kind) => (kind === "same" && this.data.base ? `as in ${this.data.base}` : BRANCH_WORDS[kind]));
    const flags = [];
    if (cases.some((one) => one.writes)) flags.push(this.button("writes", true, "touches writes"));
    if (cases.some((one) => one.stuck)) flags.push(this.button("stuck", true, "stuck-loop verdict"));
    if (flags.length) facets.append(el("div", { class: "facet", role: "group", "aria-label": "Only" }, el("span", { class: "facet-name" }, "Only"), flags));

    this.query = document.getElementById("query");
    this.query.addEventListener("input", () => this.set({ q: this.query.value }));
    this.tool = document.getElementById("tool");
    this.tool.addEventListener("change", () => this.set({ tool: this.tool.value }));
    document.getElementById("clear").addEventListener("click", () => {
      this.set({ ...EMPTY, case: this.state.case });
      this.query.focus();
    });
    document.getElementById("filters").addEventListener("submit", (event) => event.preventDefault());
  }

  button(name, value, label) {
    const count = el("span", { class: "count" });
    const node = el("button", { type: "button", class: "filter", "aria-pressed": "false", onclick: () => this.toggle(name, value) }, label, " ", count);
    this.buttons.push({ name, value, node, count });
    return node;
  }

  toggle(name, value) {
    const now = this.state[name];
    if (value === true) this.set({ [name]: !now });
    else this.set({ [name]: now.includes(value) ? now.filter((one) => one !== value) : [...now, value] });
  }

  set(some) {
    Object.assign(this.state, some);
    writeAddress(this.state);
    this.show();
  }

  // A case was opened, or closed: the address names it, and the filters stay as they are.
  remember(id) {
    this.state.case = id;
    writeAddress(this.state);
  }

  // The numbers of the cases that match; the counts and the controls follow.
  show() {
    const { cases, tools } = this.data;
    const all = tests(this.state);
    const passes = cases.map((one) => Object.fromEntries(Object.entries(all).map(([name, test]) => [name, test(one, tools)])));
    const matches = (place, but) => Object.entries(passes[place]).every(([name, passed]) => passed || name === but);
    for (const { name, value, node, count } of this.buttons) {
      const field = { verdict: "word", branch: "branch" }[name];
      const number = cases.filter((one, place) => matches(place, name) && (field ? one[field] === value : Boolean(one[name]))).length;
      const pressed = value === true ? this.state[name] : this.state[name].includes(value);
      count.textContent = number.toLocaleString("en");
      node.setAttribute("aria-pressed", String(pressed));
      node.classList.toggle("none", number === 0 && !pressed);
    }
    this.tool.replaceChildren(el("option", { value: "" }, "any"), ...tools
      .map((name, number) => [name, cases.filter((one, place) => matches(place, "tool") && one.tools.includes(number)).length])
      .filter(([name, number]) => number || name === this.state.tool)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, number]) => el("option", { value: name }, `${name} (${number})`)));
    this.tool.value = this.state.tool;
    if (this.query.value !== this.state.q) this.query.value = this.state.q;
    const { case: _, ...filters } = this.state;
    document.getElementById("clear").hidden = addressOf(filters) === "";
    this.changed(new Set([...cases.keys()].filter((place) => matches(place))));
  }
}
