// The list of cases.  A case is a heading with a button; what is behind it is drawn when it is opened.

class List {
  constructor(data, opened) {
    this.data = data;
    this.opened = opened;
    this.items = data.cases.map((row, number) => this.item(row, number));
    document.getElementById("list").append(...this.items);
  }

  item(row, number) {
    const [before, now] = row.counts;
    const length = now ?? before;
    const badges = [
      row.writes && el("span", { class: "badge write" }, "writes"),
      row.branch && row.branch !== "same" && el("span", { class: "badge warn" }, row.tone === "warn" ? row.word : row.said),
      row.stuck && el("span", { class: `badge ${row.stuck === "force_stop" ? "bad" : "warn"}` }, row.stuck),
    ];
    const button = el("button", { type: "button", class: "opener", "aria-expanded": "false", "aria-controls": `case-${number}`, onclick: () => this.toggle(number) },
      el("span", { class: "verdict" }, mark(row.tone), " ", row.shown),
      el("span", { class: "id" }, row.id),
      el("span", { class: "headline" }, phrased(row.headline)),
      el("span", { class: "badges" }, badges),
      el("span", { class: "length" }, length && [
        before && now && before[0] !== now[0] ? [`${before[0]} → ${now[0]} calls `, el("b", {}, percent(before[0], now[0]))] : counted(length[0], "call")]));
    return el("li", { class: `case tone-${row.tone}` }, el("h3", {}, button), el("div", { id: `case-${number}`, class: "behind", hidden: true }));
  }

  opener(number) {
    return this.items[number].querySelector(".opener");
  }

  isOpen(number) {
    return this.opener(number).getAttribute("aria-expanded") === "true";
  }

  toggle(number) {
    if (this.isOpen(number)) this.close(number);
    else this.open(number);
  }

  open(number) {
    const behind = document.getElementById(`case-${number}`);
    if (!behind.childElementCount) {
      const details = JSON.parse(document.getElementById(`details-${number}`).textContent);
      behind.append(drawDetails(this.data.cases[number], details, this.data.base));
    }
    behind.hidden = false;
    this.opener(number).setAttribute("aria-expanded", "true");
    this.items[number].classList.add("open");
    this.opened(this.data.cases[number].id);
  }

  close(number) {
    document.getElementById(`case-${number}`).hidden = true;
    this.opener(number).setAttribute("aria-expanded", "false");
    this.items[number].classList.remove("open");
    this.opened("");
  }

  // A case that a link or a chart names: shown whatever the filters say.
  goTo(number) {
    this.items[number].hidden = false;
    this.open(number);
    this.opener(number).focus({ preventScroll: true });
    this.items[number].scrollIntoView({ block: "start" });
  }

  show(numbers) {
    this.items.forEach((item, number) => (item.hidden = !numbers.has(number)));
    const total = this.items.length;
    const words = numbers.size === total ? counted(total, "case") : `${numbers.size.toLocaleString("en")} of ${counted(total, "case")}`;
    document.getElementById("matches").textContent = words;
    document.getElementById("nothing").hidden = numbers.size > 0;
  }

  // The number of the case that has the focus, somewhere in it; -1 where none has.
  focused() {
    return this.items.indexOf(document.activeElement?.closest(".case"));
  }

  move(step) {
    const from = this.focused();
    let place = from < 0 && step < 0 ? this.items.length : from;
    do place += step; while (place in this.items && this.items[place].hidden);
    if (!(place in this.items)) return;
    this.opener(place).focus({ preventScroll: true });
    this.opener(place).scrollIntoView({ block: "nearest" });
  }
}
