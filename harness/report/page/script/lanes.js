// Two lanes, a row a call, a box a turn: what was accepted on the left, what happened on the right.

const OPS = ["equal", "changed", "moved", "added", "removed", "regrouped", "differs"];
const SIGNS = { equal: "=", changed: "~", moved: "⇄", added: "+", removed: "−", regrouped: "⇄", differs: "≠" };
const WORDS = {
  equal: "the same", changed: "arguments changed", moved: "moved", added: "added", removed: "gone",
  regrouped: "in another turn", differs: "another outcome",
};
const AROUND = 1; // equal turns shown before and after one that differs
const LEAST_FOLDED = 3; // folding one or two turns hides more than it saves
const AT_ONCE = 150; // turns drawn before a button asks whether to go on
const MOST_LINKS = 80; // more lines than this are a tangle

function readRow(row) {
  const [op, a, callA, b, callB, notes, changes, allowed, partner] = row;
  const pair = !partner ? "" : a >= 0 ? `${a}-${partner - 1}` : `${partner - 1}-${b}`;
  return { op: OPS[op], a, callA, b, callB, notes: notes ?? [], changes: changes ?? [], allowed: Boolean(allowed), pair };
}

function differs(block, lone) {
  if (lone) return false;
  const { a, b } = block;
  if (!a || !b || a[1] !== b[1] || String(a[2] ?? "") !== String(b[2] ?? "")) return true;
  return block.rows.some((row) => row[0] !== 0);
}

function drawLanes(change, details, title) {
  const blocks = change.blocks;
  const lone = !blocks.some((block) => block.a) ? "b" : !blocks.some((block) => block.b) ? "a" : "";
  const table = el("table", { class: `lanes${lone ? " lone" : ""}` },
    el("caption", { class: "unseen" }, `${title}: ${change.names[0]} beside ${change.names[1]}, one row a call`),
    el("thead", {}, el("tr", {},
      lone !== "b" && el("th", { scope: "col", class: "side" }, change.names[0]),
      !lone && el("th", { scope: "col", class: "between" }, el("span", { class: "unseen" }, "what became of it")),
      lone !== "a" && el("th", { scope: "col", class: "side" }, change.names[1]),
    )));
  const context = { details, lone, names: change.names };
  const parts = folded(blocks, lone);
  const draw = (from) => {
    for (const part of parts.slice(from, from + AT_ONCE)) {
      table.append(Array.isArray(part) ? foldedBody(part, context) : blockBody(part, context));
    }
    if (parts.length > from + AT_ONCE) {
      const more = el("tbody", {}, el("tr", {}, el("td", { colspan: 3, class: "fold" }, el("button", {
        type: "button", class: "quiet", onclick: () => { more.remove(); draw(from + AT_ONCE); },
      }, `Show more: ${(parts.length - from - AT_ONCE).toLocaleString("en")} rows of turns are left`))));
      table.append(more);
    }
  };
  draw(0);
  return lone ? table : linked(table);
}

// Single blocks, and arrays of equal blocks that are shown as one line.
function folded(blocks, lone) {
  const near = blocks.map(() => Boolean(lone) && blocks.length <= 40);
  let any = false;
  blocks.forEach((block, place) => {
    if (!differs(block, lone)) return;
    any = true;
    for (let other = place - AROUND; other <= place + AROUND; other += 1) if (other in near) near[other] = true;
  });
  if (!any && blocks.length <= 12) return blocks;
  const parts = [];
  let run = [];
  const flush = () => {
    parts.push(...(run.length >= LEAST_FOLDED ? [run] : run));
    run = [];
  };
  blocks.forEach((block, place) => {
    if (!near[place]) return run.push(block);
    flush();
    parts.push(block);
  });
  flush();
  return parts;
}

function foldedBody(blocks, context) {
  const calls = blocks.reduce((sum, block) => sum + block.rows.length, 0);
  const words = `${counted(calls, context.lone ? "call" : "equal call")} in ${counted(blocks.length, "turn")}`;
  const body = el("tbody", {}, el("tr", {}, el("td", { colspan: 3, class: "fold" },
    el("button", { type: "button", class: "quiet", "aria-expanded": "false", onclick: () => {
      const opened = blocks.map((block) => blockBody(block, context));
      body.replaceWith(...opened);
      opened[0].tabIndex = -1;
      opened[0].focus();
    } }, `⋯ ${words}`))));
  return body;
}

function blockBody(block, { details, lone, names }) {
  const body = el("tbody", { class: "turn" });
  const other = block.a && block.b && block.a[1] !== block.b[1];
  // What the loop did by itself was not asked for in parallel.
  const calls = (side) => block.rows.map((row) => row.slice(side === "a" ? 1 : 3)).filter(([index, call]) => index >= 0 && !details.calls[call][3]).length;
  body.append(el("tr", { class: "head" }, lanesOf(lone, (side) => turnCell(block[side], calls(side), other && side === "b", names[side === "a" ? 0 : 1]),
    () => el("td", { class: "between" }, other && sign("differs", "another stop_reason")))));
  for (const written of block.rows) {
    const row = readRow(written);
    body.append(el("tr", { class: `call op-${lone ? "equal" : row.op}${row.allowed ? " allowed" : ""}`, "data-pair": row.pair || null },
      lanesOf(lone, (side) => callCell(row, side, details, block[side]), () => el("td", { class: "between" }, sign(row.op, wordOf(row))))));
  }
  const said = ["a", "b"].map((side) => block[side]?.[2] ?? []);
  if (said.flat().length) {
    body.append(el("tr", { class: "said" }, lanesOf(lone, (side) => el("td", { class: `side ${block[side] ? "in" : ""}` },
      (block[side]?.[2] ?? []).map((text) => el("span", { class: "intervention" }, "⚑ ", text))),
    () => el("td", { class: "between" }, String(said[0]) !== String(said[1]) && sign("differs", "other interventions")))));
  }
  return body;
}

function lanesOf(lone, side, between) {
  return [lone !== "b" && side("a"), !lone && between(), lone !== "a" && side("b")];
}

function wordOf(row) {
  return row.op === "moved" && row.a >= 0 && row.b < 0 ? "moved away" : WORDS[row.op];
}

function sign(op, word) {
  return el("span", { class: `sign op-${op}`, title: word }, el("span", { "aria-hidden": "true" }, SIGNS[op]), el("span", { class: "unseen" }, word));
}

function turnCell(turn, calls, reasonChanged, lane) {
  if (!turn) return el("td", { class: "side" });
  const name = turn[0] ? `turn ${turn[0]}` : "outside of any turn";
  return el("td", { class: "side in" }, el("span", { class: "lane" }, lane, " "), el("span", { class: "turn-name" }, name),
    calls > 1 && turn[0] ? el("span", { class: "parallel" }, `${calls} in parallel`) : null,
    turn[1] && el("span", { class: `reason${reasonChanged ? " changed" : ""}` }, turn[1]));
}

function callCell(row, side, details, turn) {
  const index = side === "a" ? row.a : row.b;
  if (index < 0) return el("td", { class: `side${turn ? " in empty" : ""}` });
  const [tool, ok, args] = details.calls[side === "a" ? row.callA : row.callB];
  // Notes tell of what is now; where a call stands on one side only, they stand with it.
  const notes = side === "b" || row.b < 0 ? row.notes : [];
  const changed = new Map(row.changes.map(([name, before, now]) => [name, side === "a" ? before : now]));
  return el("td", { class: "side in" },
    el("div", { class: `one${ok ? "" : " failed"}` },
      el("span", { class: "place" }, String(index + 1)),
      el("span", { class: "what" }, el("b", {}, details.tools[tool]), argumentList(args, changed),
        details.writes.includes(tool) && [" ", el("span", { class: "badge write" }, "write")],
        notes.map((note) => [" ", noteOf(note, row)]),
        !ok && !notes.some((note) => /fail/.test(note)) && el("span", { class: "note bad" }, "failed"),
        row.allowed && notes === row.notes && el("span", { class: "note" }, "allowed by compare")),
      side === "b" && row.changes.length > 0 && el("ul", { class: "changes" }, row.changes.map(([name, before, now]) =>
        el("li", {}, el("code", {}, name), " ", el("del", {}, before), " → ", el("ins", {}, now))))));
}

function argumentList(args, changed) {
  if (typeof args === "string") return el("span", { class: "args" }, ` ${args}`);
  return el("span", { class: "args" }, "(", args.map(([name, value], place) => [
    place ? ", " : "", el("span", { class: changed.has(name) ? "changed" : null }, `${name}=${value}`)]), ")");
}

function noteOf(note, row) {
  if (row.pair && /^(was|now) call/.test(note)) {
    return el("button", { type: "button", class: "note go", onclick: goToPartner }, note);
  }
  return el("span", { class: `note${/fail/.test(note) ? " bad" : ""}` }, note);
}

function partnerOf(row) {
  const { pair } = row.dataset;
  if (!pair) return null;
  return [...row.closest("table").querySelectorAll("tr[data-pair]")].find((other) => other !== row && other.dataset.pair === pair);
}

function goToPartner(event) {
  const other = partnerOf(event.currentTarget.closest("tr"));
  const button = other?.querySelector("button.go");
  if (!button) return;
  button.focus();
  other.scrollIntoView({ block: "center" });
}

// A line from where a call stood to where it stands now.  The lanes change their size when a fold opens or a window
// does, and then the lines are drawn again.
function linked(table) {
  const lines = drawn("svg", { class: "links", "aria-hidden": "true" });
  const box = el("div", { class: "linked" }, table, lines);
  const draw = () => {
    const rows = [...table.querySelectorAll("tr[data-pair]")].slice(0, MOST_LINKS);
    const frame = box.getBoundingClientRect();
    const seen = new Map();
    lines.replaceChildren();
    for (const row of rows) {
      const first = seen.get(row.dataset.pair);
      if (!first) seen.set(row.dataset.pair, row);
      else lines.append(link(first, row, frame));
    }
  };
  new ResizeObserver(draw).observe(table);
  const light = (event) => {
    for (const lit of table.querySelectorAll(".lit")) lit.classList.remove("lit");
    const row = event.target?.closest?.("tr[data-pair]") ?? table.querySelector("tr[data-pair]:focus-within");
    for (const one of row ? [row, partnerOf(row)] : []) one?.classList.add("lit");
  };
  for (const name of ["pointerover", "focusin"]) table.addEventListener(name, light);
  for (const name of ["pointerleave", "focusout"]) table.addEventListener(name, () => light({}));
  return box;
}

function link(one, other, frame) {
  const [golden, now] = one.children[0].childElementCount ? [one, other] : [other, one];
  const from = golden.children[0].getBoundingClientRect();
  const to = now.children[2].getBoundingClientRect();
  const [x1, y1, x2, y2] = [from.right - frame.left, from.top + from.height / 2 - frame.top, to.left - frame.left, to.top + to.height / 2 - frame.top];
  const middle = (x1 + x2) / 2;
  return drawn("path", { d: `M${x1},${y1} C${middle},${y1} ${middle},${y2} ${x2},${y2}` });
}
