// Elements are made here and nowhere else.  Text becomes text nodes, never markup: names come from models and tools.

const MARKS = { bad: "✗", warn: "◆", off: "○", good: "✓" };

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== undefined && child !== null && child !== false) node.append(child);
  }
  return node;
}

function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function drawn(tag, attributes, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function mark(tone) {
  return el("span", { class: "mark", "aria-hidden": "true" }, MARKS[tone]);
}

function counted(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

function percent(before, now) {
  if (!before || before === now) return "";
  const change = Math.round(((now - before) * 100) / before);
  return `${change > 0 ? "+" : change < 0 ? "−" : ""}${Math.abs(change)}%`;
}

// A verdict names tools in backticks, as Markdown does.
function phrased(text) {
  return text.split("`").map((part, place) => (place % 2 ? el("code", {}, part) : part));
}

function copyButton() {
  return el("button", { type: "button", class: "copy", "aria-label": "Copy the command" }, "Copy");
}

function copied(button) {
  const text = button.parentElement.querySelector("code").textContent;
  const say = (word) => {
    button.textContent = word;
    setTimeout(() => (button.textContent = "Copy"), 1500);
  };
  navigator.clipboard.writeText(text).then(
    () => say("Copied"),
    () => {
      // A browser may forbid it; then the command is selected, and the usual key copies it.
      getSelection().selectAllChildren(button.parentElement.querySelector("code"));
      say("Selected");
    },
  );
}
