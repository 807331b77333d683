// What is shown of the pairs: by text, label and kind. The grid and the list both listen.
const filter = { text: "", label: "", kinds: new Set(), order: "plan" };
const listeners = [];

const isFiltered = () => filter.text !== "" || filter.label !== "" || filter.kinds.size > 0;

// What a pair is searched in; made when somebody searches.
function haystack(pair) {
  pair.haystack ??= [
    title(pair),
    ...pair.labels.map((at) => data.labels[at].join("=")),
    ...pair.attempts.flatMap((attempt) => [
      ...(attempt.failed ?? []).flat().map((text) => data.texts[text]),
      attempt.error ? `${attempt.error.class} ${data.texts[attempt.error.message]}` : "",
    ]),
  ]
    .join("\n")
    .toLowerCase();
  return pair.haystack;
}

function matches(pair) {
  if (filter.kinds.size && !filter.kinds.has(pair.state)) return false;
  if (filter.label !== "" && !pair.labels.includes(Number(filter.label))) return false;
  return filter.text.split(/\s+/).every((word) => haystack(pair).includes(word));
}

function changed() {
  for (const listener of listeners) listener();
}

for (const [state, [, words]] of Object.entries(states)) {
  const number = data.pairs.filter((pair) => pair.state === state).length;
  if (!number) continue;
  const button = el("button", { type: "button", "aria-pressed": "false" }, badge(state), el("b", {}, String(number)), words);
  button.addEventListener("click", () => {
    const pressed = !filter.kinds.delete(state);
    if (pressed) filter.kinds.add(state);
    button.setAttribute("aria-pressed", String(pressed));
    changed();
  });
  byId("kinds").append(button);
}

const labelNames = [...new Set(data.labels.map(([label]) => label))].sort();
for (const label of labelNames) {
  const options = data.labels
    .map(([each, value], at) => [each, value, at])
    .filter(([each]) => each === label)
    .sort((one, other) => one[1].localeCompare(other[1]))
    .map(([, value, at]) => el("option", { value: String(at) }, value));
  byId("label").append(el("optgroup", { label }, ...options));
}
byId("label-field").hidden = labelNames.length === 0;

byId("text").addEventListener("input", (event) => {
  filter.text = event.target.value.trim().toLowerCase();
  changed();
});
byId("label").addEventListener("change", (event) => {
  filter.label = event.target.value;
  changed();
});
byId("order").addEventListener("change", (event) => {
  filter.order = event.target.value;
  drawGrid();
  changed();
});
byId("filter").addEventListener("submit", (event) => event.preventDefault());

function clearFilter() {
  filter.text = "";
  filter.label = "";
  filter.kinds.clear();
  byId("text").value = "";
  byId("label").value = "";
  for (const button of byId("kinds").children) button.setAttribute("aria-pressed", "false");
  changed();
}
byId("filter").hidden = data.pairs.length === 0;
