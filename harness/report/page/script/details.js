// All that is known of one case, drawn when it is opened.

function drawDetails(row, details, base) {
  const { change, branch } = details;
  const path = changePart(row, details);
  // What is the news comes first: of a case that passes, what its branch did to the golden; of one that only broke when it
  // was killed, where.
  const branched = row.tone === "warn";
  const broken = !change.facets && row.word.startsWith("crash sweep");
  const crashes = details.crash && part("Killed and resumed", drawCrashes(details.crash, broken));
  return el("div", { class: "details" },
    row.headline && !change.facets && !(branched && branch?.facets) && el("p", { class: "said-of-it" }, phrased(row.headline)),
    details.problems && el("ul", { class: "problems" }, details.problems.map((text) => el("li", {}, phrased(text)))),
    broken && crashes,
    branched ? [branchPart(branch, details), path] : [path, branchPart(branch, details)],
    part("What it costs", costTable(details.costs, change.names)),
    details.advice.length > 0 && part("How to accept it", details.advice.map(([sentence, command]) => [
      el("p", {}, sentence), command && el("div", { class: "command" }, el("code", {}, command), copyButton())])),
    !broken && crashes,
    details.stuck && stuckPart(details.stuck),
    details.history && part("The golden over time", historyPart(details.history)),
    el("p", { class: "files small faint" }, details.files.map((file) => el("code", {}, file)),
      el("a", { href: `#${addressOf({ ...EMPTY, case: row.id })}` }, "link to this case")));
}

function part(title, ...content) {
  return content.flat(Infinity).some(Boolean) && el("section", {}, el("h4", {}, title), content);
}

function changePart(row, details) {
  const { change, shown } = details;
  return part(change.facets ? "What changed" : "The path",
    row.tone === "warn" && change.facets === undefined && !shown && change.blocks && el("p", { class: "faint" }, "What ran matches the golden as it is now."),
    change.problem && el("p", {}, phrased(change.problem)),
    facetList(change), shown && el("p", { class: "faint" }, shown),
    change.blocks && drawLanes(change, details, row.id));
}

function facetList({ facets, causes }) {
  return [
    causes && el("ul", { class: "causes" }, causes.map((text) => el("li", {}, el("b", {}, "Sent: "), phrased(text)))),
    facets && el("table", { class: "facets" }, el("caption", { class: "unseen" }, "One verdict a facet, writes first"),
      facets.map(([facet, text, writes]) => el("tr", { class: writes ? "writes" : null },
        el("th", { scope: "row" }, facet.replaceAll("_", " ")), el("td", {}, phrased(text), writes && facet !== "writes" && [" ", el("span", { class: "badge write" }, "writes")])))),
  ];
}

function branchPart(branch, details) {
  if (!branch) return false;
  return el("section", { class: "branch" }, el("h4", {}, "◆ The golden: ", branch.word),
    branch.problem && el("p", {}, phrased(branch.problem)),
    facetList(branch),
    branch.blocks && !branch.facets && el("p", { class: "faint" }, branch.names.length && branch.costs.every(([, before, now]) => before !== null && now !== null) ? "The path in it is the same." : "Its path, all of it:"),
    branch.facets && costTable(branch.costs, branch.names),
    branch.points?.length > 0 && pointTable(branch.points, true),
    branch.blocks && drawLanes(branch, details, branch.word));
}

function costTable(costs, names) {
  if (!costs.length) return false;
  const text = (value) => (value === null ? "–" : value.toLocaleString("en"));
  return el("table", { class: "figures costs" },
    el("thead", {}, el("tr", {}, el("td", {}), names.map((name) => el("th", { scope: "col" }, name)), el("td", {}))),
    el("tbody", {}, costs.map(([what, before, now]) => el("tr", { class: what.startsWith("writes") && before !== now ? "writes" : null },
      el("th", { scope: "row" }, what), el("td", {}, text(before)), el("td", {}, text(now)),
      el("td", { class: before === now ? "faint" : "strong" }, difference(before, now))))));
}

function difference(before, now) {
  if (before === null || now === null) return "";
  if (before === now) return "same";
  const more = `${Math.abs(now - before)} ${now > before ? "more" : "fewer"}`;
  return before ? `${more}, ${percent(before, now)}` : more;
}

function stuckPart(stuck) {
  const unjudged = stuck.unjudged.length > 0 && el("details", {},
    el("summary", {}, stuck.findings.length ? "What this trace cannot show" : "The stuck-loop detectors found nothing. What this trace cannot show"),
    el("ul", { class: "faint" }, stuck.unjudged.map((text) => el("li", {}, text))));
  if (!stuck.findings.length) return unjudged;
  return part("Stuck-loop detectors",
    el("ul", { class: "stuck" }, stuck.findings.map((one) => el("li", {},
      el("p", {}, el("span", { class: `badge ${one.verdict === "force_stop" ? "bad" : "warn"}` }, one.verdict), " ",
        el("b", {}, one.detector), ` at call ${one.call}${one.turn ? ` in turn ${one.turn}` : ""}: `, one.sentence, "."),
      el("p", { class: "faint" }, one.explanation)))),
    unjudged);
}

function historyPart(versions) {
  return [
    versions.some((one) => one.counts) && historyPlot(versions),
    el("div", { class: "wide" }, el("table", { class: "plain" },
      el("thead", {}, el("tr", {}, ["when", "who", "commit", "calls", "turns", "writes", "what changed"].map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, versions.map((one) => el("tr", {},
        el("td", { class: "when" }, one.commit ? new Date(one.time * 1000).toISOString().slice(0, 10) : "now"),
        el("td", {}, one.author || "not committed"),
        el("td", {}, one.commit && el("code", {}, one.commit), " ", one.subject),
        one.counts ? one.counts.map((count) => el("td", { class: "number" }, String(count))) : el("td", { colspan: 3 }, "none"),
        el("td", {}, phrased(one.headline))))))),
  ];
}
