// What a page does wrong towards people who do not see it, or see little: one line a fault.
() => {
  const found = [];
  const nameOf = (node) =>
    node.getAttribute("aria-label") || node.textContent.trim() || node.labels?.[0]?.textContent.trim();
  const named = "button, a, input, select, summary, [role=img], [role=group]";
  for (const node of document.querySelectorAll(named)) {
    if (!nameOf(node)) found.push(`no name: ${node.outerHTML.slice(0, 99)}`);
  }
  for (const table of document.querySelectorAll("table")) {
    if (!table.caption && !table.tHead) found.push(`neither caption nor head: ${table.outerHTML.slice(0, 99)}`);
  }

  let level = 0;
  for (const node of document.querySelectorAll("h1, h2, h3, h4")) {
    const now = Number(node.tagName[1]);
    if (now > level + 1) found.push(`h${now} after h${level}: ${node.textContent.slice(0, 40)}`);
    level = now;
  }

  const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
  if (new Set(ids).size !== ids.length) found.push("an id stands twice");
  for (const attribute of ["aria-controls", "aria-labelledby"]) {
    for (const node of document.querySelectorAll(`[${attribute}]`)) {
      if (!document.getElementById(node.getAttribute(attribute))) found.push(`${attribute} leads nowhere`);
    }
  }
  for (const landmark of ["main", "header", "h1", "[role=search]", "[aria-live]"]) {
    if (document.querySelectorAll(landmark).length !== 1) found.push(`not one ${landmark}`);
  }

  // Contrast as WCAG 2.2 has it (1.4.3 AA): relative luminance, 4.5 to 1.
  const parts = (text) => text.match(/[\d.]+/g).map(Number);
  const linear = (value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const luminance = (color) => {
    const [red, green, blue] = parts(color).map((value) => linear(value / 255));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const weak = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !node.checkVisibility()) continue;
    if (node.closest("script, svg, [aria-hidden=true]")) continue;
    let ground = node;
    while (ground.parentElement && parts(getComputedStyle(ground).backgroundColor)[3] === 0) ground = ground.parentElement;
    const one = luminance(getComputedStyle(node).color);
    const other = luminance(getComputedStyle(ground).backgroundColor);
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (ratio < 4.5) weak.add(`${node.tagName}.${node.className}: contrast ${ratio.toFixed(2)}`);
  }
  return [...found, ...weak];
}
