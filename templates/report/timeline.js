// The timeline tells which attempt is under the pointer, and opens its pair.
const lanes = Array.from({ length: data.lanes }, () => []);
for (const pair of data.pairs) {
  for (const attempt of pair.attempts) {
    if (attempt.lane !== undefined) lanes[attempt.lane].push([pair, attempt]);
  }
}

function under(event) {
  const picture = event.target.closest?.(".lanes");
  if (!picture) return undefined;
  const box = picture.getBoundingClientRect();
  const lane = Math.floor(((event.clientY - box.top) / box.height) * Number(picture.dataset.lanes));
  const at = ((event.clientX - box.left) / box.width) * data.wall;
  const found = lanes[Number(picture.dataset.first) + lane]?.findLast(([, attempt]) => attempt.start <= at);
  return found && at <= found[1].start + found[1].seconds + data.wall / 300 ? found : undefined;
}

const timeline = byId("timeline");
timeline?.addEventListener("pointermove", (event) => {
  const found = under(event);
  if (!found || event.pointerType === "touch") {
    hideTip();
    return;
  }
  const [pair, attempt] = found;
  const phases = (attempt.phases ?? []).map((seconds, at) => (seconds ? `${data.phases[at]} ${duration(seconds)}` : ""));
  const lines = [
    title(pair),
    `attempt ${attempt.n} ${outcomes[attempt.outcome][1]}, ${duration(attempt.seconds)} from ${duration(attempt.start)} on`,
    phases.filter(Boolean).join(" · "),
  ];
  showTip(lines, { left: event.clientX, width: 0, top: event.clientY - 6, bottom: event.clientY + 12 });
});
timeline?.addEventListener("pointerleave", hideTip);
timeline?.addEventListener("click", (event) => {
  const found = under(event);
  if (found) openDetail(found[0]);
});
