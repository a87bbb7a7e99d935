// Everything is here: read the data, build the list, go where the address says.

const data = JSON.parse(document.getElementById("index").textContent);
document.documentElement.classList.add("script");
listenToTheme();

const filters = new Filters(data, (numbers) => list.show(numbers));
const list = new List(data, (id) => filters.remember(id));
filters.show();
drawGrowth(data.cases, (number) => list.goTo(number));
listenToKeys(list, filters);
document.addEventListener("click", (event) => {
  if (event.target.matches(".copy")) copied(event.target);
});

function goToAddress() {
  filters.state = readAddress();
  filters.show();
  const number = data.cases.findIndex((one) => sameId(one.id, filters.state.case));
  if (filters.state.case && number >= 0) list.goTo(number);
}

// The address holds the filters; the link for the keyboard must not write over them.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  document.getElementById("cases").focus();
});
addEventListener("hashchange", goToAddress);
goToAddress();
