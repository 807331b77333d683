// What a page of 5,000 pairs x 2 weighs, and how it opens and scrolls: `EVALWAVE=… EVALWAVE_TEST_CHROMIUM=… node weight.mjs`.
// Times depend on the machine, so an empty page is opened in the same minute, and each time is told as a multiple of it.
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { launch, open } from "./browser.mjs";
import { invent, shapes } from "./suite.mjs";

const scratch = mkdtempSync(join(tmpdir(), "evalwave-weight-"));
const empty = join(scratch, "empty.html");
writeFileSync(empty, "<!doctype html><title>empty</title><p>nothing");
const browser = await launch();
const rounds = 3;

// Milliseconds until the page has loaded and drawn, the best of some.
async function opened(file) {
  let best = Infinity;
  for (let round = 0; round < rounds; round += 1) {
    const started = performance.now();
    const { page, close } = await open(browser, file);
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    best = Math.min(best, performance.now() - started);
    await close();
  }
  return best;
}

// The longest tasks while the page, its grid and its list are scrolled to their ends.
async function scrolled(file) {
  const { page, close } = await open(browser, file);
  await page.evaluate(() => {
    window.tasks = [];
    new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map(({ duration }) => duration))).observe({ type: "longtask" });
  });
  const wheel = async (steps, by) => {
    for (let step = 0; step < steps; step += 1) {
      await page.mouse.wheel(0, by);
      await page.waitForTimeout(16);
    }
  };
  await page.mouse.move(640, 450);
  await wheel(60, 400);
  await page.hover("#grid .matrix");
  await wheel(30, 300);
  await page.click("#all");
  await page.evaluate(() => (window.tasks.length = 0));
  await page.hover("#list");
  await wheel(120, 900);
  const [tasks, rows] = await page.evaluate(() => [window.tasks, document.querySelectorAll("#list tr.pair").length]);
  await close();
  return { longest: Math.max(0, ...tasks), long: tasks.length, rows };
}

try {
  const nothing = await opened(empty);
  console.log("pairs x attempts      size   opens   of an empty page   long tasks while scrolling (longest)   rows made");
  for (const [name, pairs] of [["usual", 237], ["large", 5000]]) {
    const file = invent(process.env.EVALWAVE, join(scratch, name), shapes[name]);
    const [ms, scroll] = [await opened(file), await scrolled(file)];
    console.log(
      `${String(pairs).padStart(5)} x 2  ${(statSync(file).size / 1e6).toFixed(2).padStart(12)} MB ${(ms / 1000).toFixed(2).padStart(6)} s ${(ms / nothing).toFixed(1).padStart(12)} x ${String(scroll.long).padStart(24)} (${scroll.longest.toFixed(0)} ms) ${String(scroll.rows).padStart(16)}`,
    );
  }
} finally {
  await browser.close();
  rmSync(scratch, { recursive: true, force: true });
}
