// The timeline tells which bar is under the pointer, and opens its pair.
const timeline = byId("timeline");
// The bars of each lane, as they follow each other: an attempt, or all of a pair that one command made, which share its
// time.
const lanes = Array.from({ length: data.lanes }, () => []);
for (const pair of data.pairs) {
  const bars = [];
  for (const attempt of pair.attempts) {
    const { lane, start, seconds, phases } = attempt;
    if (lane === undefined) continue;
    let bar = bars.find((each) => each.lane === lane && each.start === start);
    if (!bar) {
      bar = { pair, lane, start, seconds: 0, phases: phases ?? [], attempts: [] };
      bars.push(bar);
      lanes[lane].push(bar);
    }
    bar.seconds += seconds;
    bar.attempts.push(attempt);
  }
}
for (const bars of lanes) bars.sort((one, other) => one.start - other.start);

// What is drawn has the size of its bars; the picture that they are in has the timeline's width, and what its attributes say.
function under(event) {
  const picture = event.target.closest?.(".lanes");
  if (!picture) return undefined;
  const box = timeline.getBoundingClientRect();
  const [y, height, number, first] = ["y", "height", "data-lanes", "data-first"].map((name) => Number(picture.getAttribute(name)));
  const lane = first + Math.floor(((event.clientY - box.top - y) / height) * number);
  const at = ((event.clientX - box.left) / box.width) * data.wall;
  const found = lanes[lane]?.findLast((bar) => bar.start <= at);
  return found && at <= found.start + found.seconds + data.wall / 300 ? found : undefined;
}

timeline?.addEventListener("pointermove", (event) => {
  const bar = under(event);
  if (!bar || event.pointerType === "touch") {
    hideTip();
    return;
  }
  const ended = bar.attempts.map(({ n, outcome }) => `attempt ${n} ${outcomes[outcome][1]}`);
  const phases = bar.phases.map((seconds, at) => (seconds ? `${data.phases[at]} ${duration(seconds)}` : ""));
  const lines = [
    title(bar.pair),
    `${ended.join(", ")}, ${duration(bar.seconds)} from ${duration(bar.start)} on`,
    phases.filter(Boolean).join(" · "),
  ];
  showTip(lines, timeline, { left: event.clientX, width: 0, top: event.clientY - 6, bottom: event.clientY + 12 });
});
timeline?.addEventListener("pointerleave", hideTip);
timeline?.addEventListener("click", (event) => {
  const bar = under(event);
  if (bar) openDetail(bar.pair);
});
