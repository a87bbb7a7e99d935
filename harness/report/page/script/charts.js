// Plots, drawn as SVG in percent so that they need no measuring.

const SHOWN_AT_FIRST = 10;

function growthRows(cases) {
  const rows = [];
  cases.forEach((one, number) => {
    const now = one.counts[1];
    const before = one.base && one.tone === "warn" ? one.base : one.counts[0];
    if (!before || !now || (before[0] === now[0] && before[1] === now[1])) return;
    const change = Math.max(...[0, 1].map((place) => Math.abs(Math.log((now[place] || 0.5) / (before[place] || 0.5)))));
    rows.push({ number, one, before, now, change });
  });
  return rows.sort((a, b) => b.change - a.change || a.number - b.number);
}

function track(what, before, now, most) {
  const at = (value) => `${(2 + (value / most) * 94).toFixed(2)}%`;
  const words = `${what} ${before} → ${now}`;
  return [
    drawn("svg", { class: "track", height: 16, role: "img", "aria-label": words },
      drawn("line", { class: "ground", x1: at(0), x2: at(most), y1: 8, y2: 8 }),
      drawn("line", { class: "span", x1: at(before), x2: at(now), y1: 8, y2: 8 }),
      drawn("circle", { class: "was", cx: at(before), cy: 8, r: 3.5 }),
      drawn("circle", { class: "is", cx: at(now), cy: 8, r: 4 }),
    ),
    el("span", { class: "amount", "aria-hidden": "true" }, words, " ", el("b", {}, percent(before, now))),
  ];
}

function drawGrowth(cases, open) {
  const rows = growthRows(cases);
  const known = cases.filter((one) => one.counts[0] && one.counts[1]).length;
  if (!rows.length) return;
  const most = Math.max(...rows.flatMap((row) => [row.before[0], row.before[1], row.now[0], row.now[1]]), 1);
  const list = document.getElementById("growth-list");
  const rest = document.getElementById("growth-rest");
  const add = (some) => {
    for (const { number, one, before, now } of some) {
      list.append(
        el("li", {},
          el("a", { href: `#${addressOf({ ...EMPTY, case: one.id })}`, onclick: (event) => { event.preventDefault(); open(number); } }, one.id),
          el("span", { class: "pair" }, track("calls", before[0], now[0], most)),
          el("span", { class: "pair" }, track("turns", before[1], now[1], most)),
          one.tone === "warn" && el("span", { class: "badge warn" }, "since the branch began"),
        ),
      );
    }
  };
  add(rows.slice(0, SHOWN_AT_FIRST));
  const same = known - rows.length;
  rest.textContent = same > 0 ? `${counted(same, "case")} as long as before. ` : "";
  if (rows.length > SHOWN_AT_FIRST) {
    const more = el("button", { type: "button", class: "quiet", onclick: () => { add(rows.slice(SHOWN_AT_FIRST)); more.remove(); } },
      `Show ${rows.length - SHOWN_AT_FIRST} more`);
    rest.append(more);
  }
  document.getElementById("growth").hidden = false;
}

// How long the golden was at each of its versions: one line for calls, turns and writes.
function historyPlot(versions) {
  const known = versions.filter((one) => one.counts).reverse();
  const most = Math.max(...known.flatMap((one) => one.counts), 1);
  const x = (place) => (known.length === 1 ? 50 : 4 + (place * 92) / (known.length - 1));
  const y = (value) => 62 - (value / most) * 54;
  const names = ["calls", "turns", "writes"];
  const described = known.map((one) => `${one.counts[0]} calls, ${one.counts[1]} turns, ${one.counts[2]} writes`).join("; then ");
  const plot = drawn("svg", { class: "history", height: 70, role: "img", "aria-label": `Oldest first: ${described}` });
  plot.append(drawn("line", { class: "ground", x1: "0%", x2: "100%", y1: 62.5, y2: 62.5 }));
  names.forEach((name, series) => {
    known.forEach((one, place) => {
      const value = one.counts[series];
      if (place) {
        plot.append(drawn("line", {
          class: `series ${name}`, x1: `${x(place - 1)}%`, y1: y(known[place - 1].counts[series]), x2: `${x(place)}%`, y2: y(value),
        }));
      }
      plot.append(drawn("circle", { class: `dot ${name}`, cx: `${x(place)}%`, cy: y(value), r: 3.5 }, drawn("title", {}, `${value} ${name}`)));
    });
  });
  const last = known.at(-1).counts;
  const legend = el("p", { class: "legend small" }, names.map((name, series) => el("span", { class: name }, `${name} ${last[series]}`)));
  return el("div", {}, plot, legend);
}
