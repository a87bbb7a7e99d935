// What became of the case at each point at which it was killed: a square a point, a line a turn.

const OUTCOME_SIGNS = { same: "·", unknown: "?", "not reached": "○", "no such point": "○" };

function outcomeKind(outcome) {
  return outcome === "same" ? "good" : outcome in OUTCOME_SIGNS ? "warn" : "bad";
}

function drawCrashes(crash, first) {
  const groups = Map.groupBy(crash.points, (one) => one.point.split(".")[0]);
  const counts = Map.groupBy(crash.points, (one) => one.outcome);
  const changed = crash.points.filter((one) => one.was);
  const telling = crash.points.filter((one) => one.was || one.outcome !== "same");
  return [
    el("p", {},
      crash.word && el("b", {}, `${crash.word}. `), !first && crash.headline && [...phrased(crash.headline), ". "],
      `${counted(crash.points.length, "crash point")}: `,
      [...counts].map(([outcome, some], place) => [place ? ", " : "", el("span", { class: `outcome ${outcomeKind(outcome)}` }, `${some.length} ${outcome}`)]),
      crash.swept ? (changed.length ? `; ${changed.length} not as in the golden.` : "; all as in the golden.") : "; as in the golden, not swept in this run."),
    el("div", { class: "matrix" }, [...groups].map(([group, some]) => [
      el("span", { class: "group", id: null }, group),
      el("ol", { "aria-label": `crash points of ${group}` }, some.map(pointSquare)),
    ])),
    el("p", { class: "legend small faint" },
      el("span", {}, "· as without the crash"), el("span", {}, "? an explicit “status unknown”"), el("span", {}, "✗ a broken rule"), el("span", {}, "ringed: not as in the golden")),
    telling.length > 0 && pointTable(telling, changed.length > 0),
    el("details", {}, el("summary", {}, `All ${crash.points.length} points with what ran`), pointTable(crash.points, changed.length > 0)),
  ];
}

function pointSquare(one) {
  const words = `${one.point}: ${one.outcome}${one.ran ? `; ${one.ran}` : ""}${one.was ? `; golden: ${one.was.outcome}${one.was.ran ? `; ${one.was.ran}` : ""}` : ""}`;
  return el("li", { class: `point ${outcomeKind(one.outcome)}${one.was ? " ringed" : ""}`, title: words },
    el("span", { "aria-hidden": "true" }, OUTCOME_SIGNS[one.outcome] ?? "✗"), el("span", { class: "unseen" }, words));
}

function pointTable(points, withGolden) {
  return el("div", { class: "wide" }, el("table", { class: "plain points" },
    el("thead", {}, el("tr", {}, ["killed at", ...(withGolden ? ["golden"] : []), "now", "what ran"].map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, points.map((one) => el("tr", {},
      el("th", { scope: "row" }, el("code", {}, one.point)),
      withGolden && el("td", {}, one.was ? [one.was.outcome, one.was.ran && el("span", { class: "faint" }, ` ${one.was.ran}`)] : one.outcome),
      el("td", {}, el("span", { class: `outcome ${outcomeKind(one.outcome)}` }, one.outcome)),
      el("td", { class: "faint" }, one.ran ?? ""))))));
}
