// What is shown stands in the address, so that a link opens one case with the filters as they were.

const EMPTY = { case: "", q: "", verdict: [], branch: [], writes: false, stuck: false, tool: "" };

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  const list = (name) => (given.get(name) ?? "").split(",").filter(Boolean);
  return {
    case: given.get("case") ?? "",
    q: given.get("q") ?? "",
    verdict: list("verdict"),
    branch: list("branch"),
    writes: given.has("writes"),
    stuck: given.has("stuck"),
    tool: given.get("tool") ?? "",
  };
}

function addressOf(state) {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    if (value === true) given.set(name, "1");
    else if (value.length) given.set(name, Array.isArray(value) ? value.join(",") : value);
  }
  return String(given);
}

function writeAddress(state) {
  const hash = addressOf(state);
  if (hash !== location.hash.slice(1)) history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
}

// An address cannot hold a lone surrogate; the page holds none either, but a link may come from anywhere.
function sameId(one, other) {
  return one.toWellFormed() === other.toWellFormed();
}
