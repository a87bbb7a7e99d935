// The keyboard, and the theme.

function listenToKeys(list, filters) {
  const help = document.getElementById("help");
  document.getElementById("help-button").addEventListener("click", () => help.showModal());
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    const typing = event.target.closest("input, select, textarea");
    const { query } = filters;
    if (event.key === "Escape") {
      const number = list.focused();
      if (event.target === query) {
        if (query.value) filters.set({ q: "" });
        else query.blur();
      } else if (number >= 0 && list.isOpen(number)) {
        list.close(number);
        list.opener(number).focus();
      }
      return;
    }
    if (typing) {
      if (event.target === query && (event.key === "ArrowDown" || event.key === "Enter")) {
        event.preventDefault();
        query.blur();
        list.move(1);
      }
      return;
    }
    const onOpener = event.target.matches(".opener");
    const action = {
      j: () => list.move(1),
      k: () => list.move(-1),
      ArrowDown: onOpener ? () => list.move(1) : null,
      ArrowUp: onOpener ? () => list.move(-1) : null,
      o: () => list.focused() >= 0 && list.toggle(list.focused()),
      "/": () => query.select() ?? query.focus(),
      "?": () => help.showModal(),
    }[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}

const THEMES = ["system", "dark", "light"];

function listenToTheme() {
  const button = document.getElementById("theme");
  const root = document.documentElement;
  const show = (theme) => {
    if (theme === "system") delete root.dataset.theme;
    else root.dataset.theme = theme;
    button.textContent = `Theme: ${theme}`;
  };
  let theme = "system";
  try {
    theme = THEMES.find((one) => one === localStorage.getItem("harness.theme")) ?? "system";
  } catch {
    // A page from a file may have no storage; then the choice lasts as long as the page.
  }
  show(theme);
  button.addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    show(theme);
    try {
      localStorage.setItem("harness.theme", theme);
    } catch {
      // As above.
    }
  });
}
