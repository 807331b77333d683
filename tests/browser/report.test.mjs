// The page of a run in a real browser. Run by `cargo test` where EVALWAVE_TEST_CHROMIUM names one.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync, mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { execFileSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launch, open } from "./browser.mjs";
import { invent, shapes } from "./suite.mjs";

const evalwave = process.env.EVALWAVE;
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const scratch = mkdtempSync(join(tmpdir(), "evalwave-browser-"));
let browser;
let usual;
let large;

before(async () => {
  browser = await launch();
  usual = invent(evalwave, join(scratch, "usual"), shapes.usual);
  large = invent(evalwave, join(scratch, "large"), shapes.large);
});
after(async () => {
  await browser?.close();
  rmSync(scratch, { recursive: true, force: true });
});

// The page of a summary that a test has changed.
function changed(name, change) {
  const directory = join(scratch, name);
  const summary = JSON.parse(readFileSync(join(scratch, "usual", "now", "summary.json"), "utf8"));
  change(summary);
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "summary.json"), JSON.stringify(summary));
  const file = join(directory, "report.html");
  writeFileSync(file, execFileSync(evalwave, ["report", directory, "--format", "html"], { maxBuffer: 1 << 28 }));
  return file;
}

const rows = (page) => page.locator("#list tr.pair");
const found = (page) => page.locator("#found").textContent();
const kind = (page, words) => page.locator("#kinds button", { hasText: words });

function shown(name, file, use, options) {
  test(name, async () => {
    const { page, heard, close } = await open(browser, file(), options);
    try {
      await use(page, heard);
      assert.deepEqual(heard, [], "the page says nothing and asks for nothing");
    } finally {
      await close();
    }
  });
}

shown("its policy lets nothing in, and nothing from elsewhere is asked for", () => usual, async (page, heard) => {
  const policy = await page.locator('meta[http-equiv="Content-Security-Policy"]').getAttribute("content");
  assert.match(policy, /^default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+'; img-src data:;/);
  assert.doesNotMatch(policy, /unsafe/);
  assert.equal(await page.locator('[src], link:not([href^="data:"]), [style]:not(#tip)').count(), 0);
  await page.mouse.move(400, 500);
  // Whatever gets in all the same is stopped.
  const stopped = await page.evaluate(
    () =>
      new Promise((resolve) => {
        addEventListener("securitypolicyviolation", (event) => resolve(event.violatedDirective));
        const script = document.createElement("script");
        script.textContent = "document.title = 'taken over'";
        document.body.append(script);
      }),
  );
  assert.match(stopped, /script-src/);
  assert.doesNotMatch(await page.title(), /taken over/);
  // What the browser says of the attempt is not the page's.
  assert.ok(heard.splice(0).every((text) => text.startsWith("console: ") && text.includes("Content Security Policy")));
});

shown("says first what the comment says, and lists the flips", () => usual, async (page) => {
  assert.match(await page.locator("h1").textContent(), /^\d+\/237 passed \([\d.]+\s%\), .* against main · \w/);
  const flips = Number((await page.locator("#kinds").textContent()).match(/(\d+)PASS→FAIL/)[1]);
  const rises = Number((await page.locator("#kinds").textContent()).match(/(\d+)FAIL→PASS/)[1]);
  assert.ok(flips > 0 && rises > 0);
  assert.equal(await rows(page).count(), flips + rises);
  assert.equal(await found(page), `${flips + rises} of 237 pairs`);
  assert.equal(await page.locator("#grid td[role=gridcell]").count(), 237);
});

shown("filters by kind, label and text, alone and together", () => usual, async (page) => {
  const all = await rows(page).count();
  await kind(page, "PASS→FAIL").click();
  const down = await rows(page).count();
  assert.ok(down > 0 && down < all);
  assert.equal(await kind(page, "PASS→FAIL").getAttribute("aria-pressed"), "true");
  assert.equal(await page.locator("#grid td.faint").count(), 237 - down, "the grid shows the same pairs");
  await page.selectOption("#label", { label: "south" });
  const south = await rows(page).count();
  assert.ok(south > 0 && south < down);
  await page.fill("#text", "build-auth");
  for (const text of await rows(page).allTextContents()) assert.match(text, /PASS→FAIL.*build-auth/);
  await page.fill("#text", "no pair is called this");
  assert.equal(await rows(page).count(), 0);
  assert.equal(await found(page), "0 of 237 pairs");
  await page.click("#all");
  assert.equal(await rows(page).count(), all, "cleared");
  assert.equal(await page.locator("#grid td.faint").count(), 0);
  await page.fill("#text", "TYPES CHECK");
  assert.ok((await rows(page).count()) > 0, "what failed is searched too");
});

shown("sorts by what a reader clicks, both ways", () => usual, async (page) => {
  await page.click("#all");
  const column = (number) => page.locator(`#list tr.pair > td:nth-child(${number})`).allTextContents();
  await page.click("#list thead button:has-text('took')");
  const seconds = (text) => {
    const parts = text.match(/^(?:(\d+)h)?(?:(\d+)m)?(?:([\d.]+)s)?$/);
    return parts && text ? Number(parts[1] ?? 0) * 3600 + Number(parts[2] ?? 0) * 60 + Number(parts[3] ?? 0) : -1;
  };
  const up = (await column(6)).map(seconds);
  assert.deepEqual(up, [...up].sort((one, other) => one - other));
  await page.click("#list thead button:has-text('took')");
  const down = (await column(6)).map(seconds);
  assert.deepEqual(down, [...down].sort((one, other) => other - one));
  assert.equal(await page.locator("#list th[aria-sort=descending]").count(), 1);
  await page.click("#list thead button:has-text('eval')");
  const evals = await column(3);
  assert.deepEqual(evals, [...evals].sort((one, other) => one.localeCompare(other, undefined, { numeric: true })));
});

shown("opens a row to its attempts", () => usual, async (page) => {
  const first = rows(page).first();
  await first.locator("button").click();
  const inside = page.locator("#list tr.inside");
  assert.equal(await inside.locator(".attempt").count(), 2);
  const text = await inside.textContent();
  for (const part of ["attempt 1 failed", "of 7 checks passed", "command", "the end of its output", "attempts/"]) {
    assert.ok(text.includes(part), part);
  }
  assert.match(await inside.locator("a").first().getAttribute("href"), /^\.\/attempts\/[^/]+\/1\/output\.log$/);
  await first.locator("button").click();
  assert.equal(await inside.count(), 0);
  await page.fill("#text", "throttled");
  await rows(page).first().locator("button").click();
  const error = await inside.textContent();
  assert.ok(error.includes("throttled in command exit code 75") && error.includes("429 too many requests"), error);
});

shown("is used by keyboard alone", () => usual, async (page) => {
  await page.focus("#order");
  for (let presses = 0; presses < 12; presses += 1) {
    await page.keyboard.press("Tab");
    if (await page.evaluate(() => document.activeElement.matches("td[role=gridcell]"))) break;
  }
  const label = () => page.evaluate(() => document.activeElement.getAttribute("aria-label"));
  const one = await label();
  assert.match(one, /^opal-mini × build-auth-001: .*, now \d\/\d in .*, before \d\/\d in /);
  assert.match(await page.locator("#tip").textContent(), /now \d\/\d in /, "focus shows what hover shows");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowDown");
  assert.match(await label(), /^quartz-mini × debug-auth-002/);
  await page.keyboard.press("Enter");
  assert.ok(await page.locator("#detail").evaluate((dialog) => dialog.open));
  assert.equal(await page.locator("#detail-title").textContent(), "quartz-mini × debug-auth-002");
  await page.keyboard.press("Escape");
  assert.ok(!(await page.locator("#detail").evaluate((dialog) => dialog.open)));
  assert.match(await label(), /^quartz-mini × debug-auth-002/, "and is back where it was");
  await page.focus("#list .open");
  await page.keyboard.press("Enter");
  assert.equal(await page.locator("#list tr.inside").count(), 1);
});

// A scroll is told with the next picture that the browser draws.
const drawn = (page) =>
  page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));

shown(
  "what a cell is stays told next to it where its focus scrolls the page",
  () => usual,
  async (page) => {
    const tip = page.locator("#tip");
    const focused = page.locator("#grid td:focus");
    const apart = async () => {
      const [one, other] = [await tip.boundingBox(), await focused.boundingBox()];
      return Math.max(one.y - (other.y + other.height), other.y - (one.y + one.height));
    };
    const first = await page.locator("#grid td[tabindex='0']").elementHandle();
    await first.focus();
    await drawn(page);
    const { y } = await first.boundingBox();
    for (let presses = 0; presses < 30 && y === (await first.boundingBox()).y; presses += 1) {
      assert.ok((await tip.isVisible()) && (await apart()) < 12, "next to it");
      await page.keyboard.press("ArrowDown");
      await drawn(page);
    }
    assert.notEqual((await first.boundingBox()).y, y);
    assert.ok((await tip.isVisible()) && (await apart()) < 12, "next to it when it has scrolled");
    await page.evaluate(() => scrollBy(0, -20));
    await drawn(page);
    assert.ok((await tip.isVisible()) && (await apart()) < 12, "goes with it");
    await page.evaluate(() => scrollTo(0, 0));
    await drawn(page);
    assert.ok(await tip.isHidden(), "and away with it");
  },
  { viewport: { width: 1280, height: 300 } },
);

shown("tells under the pointer what a cell and a bar are", () => usual, async (page) => {
  await page.hover("#grid td.s-down >> nth=0");
  assert.match(await page.locator("#tip").textContent(), /PASS→FAIL.*now 0\/2 in .*before \d\/2 in /);
  const critical = page.locator(".lanes").first();
  await critical.scrollIntoViewIfNeeded();
  await critical.hover();
  assert.match(await page.locator("#tip").textContent(), /attempt \d \w+.*command/);
  await critical.click();
  assert.ok(await page.locator("#detail").evaluate((dialog) => dialog.open));
});

// A pair that somebody has planned: [experiment, seconds from the start, outcomes], each attempt with so many seconds.
function planned(of, name, start, seconds, ...outcomes) {
  const phases = { provision: null, upload: null, setup: null, boot: null, command: seconds * outcomes.length, collect: null };
  const attempts = outcomes.map((outcome, at) => ({
    ...of.attempts[0],
    ...{ index: at + 1, outcome, seconds, started_offset: start, phases, tries: 1, earlier: [], error: null, checks_failed: [], check_notes: [] },
  }));
  const verdict = outcomes.includes("passed") ? "pass" : outcomes.includes("failed") ? "fail" : "error";
  return { ...of, experiment: "wave", eval: name, verdict, attempts, before: undefined };
}

shown(
  "a bar is told where it is drawn, whatever else its line and its picture hold",
  () =>
    changed("wave", (summary) => {
      const [pair] = summary.pairs;
      Object.assign(summary, { comparison: null, scheduling: undefined });
      summary.run.wall_seconds = 1000;
      summary.pairs = [
        planned(pair, "straggler", 0, 1000, "passed"),
        planned(pair, "steady", 0, 500, "passed"),
        planned(pair, "second", 310, 150, "passed"),
        planned(pair, "first", 0, 290, "passed"),
        planned(pair, "shared", 0, 225, "passed", "failed"),
      ];
    }),
  async (page) => {
    const timeline = page.locator("#timeline");
    await timeline.scrollIntoViewIfNeeded();
    // Moves to a time on one of the lines, the first of which is the critical path.
    const at = async (line, seconds) => {
      const box = await timeline.boundingBox();
      const y = line === 0 ? 27 : 42 + 12 * (line - 0.55);
      await page.mouse.move(box.x + (box.width * seconds) / 1000, box.y + y);
      return (await page.locator("#tip").isVisible()) ? page.locator("#tip").innerText() : "";
    };
    assert.match(await at(0, 900), /wave × straggler\s+attempt 1 passed, 16m40s from 0\.0s on/);
    assert.match(await at(1, 400), /wave × steady/);
    assert.match(await at(2, 100), /wave × first\s+attempt 1 passed, 4m50s from/);
    assert.match(await at(2, 400), /wave × second\s+attempt 1 passed, 2m30s from 5m10s on/);
    assert.match(await at(3, 400), /wave × shared\s+attempt 1 passed, attempt 2 failed, 7m30s from 0\.0s on/);
    assert.equal(await at(1, 700), "", "nothing ran there");
    await at(2, 400);
    await page.mouse.down();
    await page.mouse.up();
    assert.equal(await page.locator("#detail-title").textContent(), "wave × second");
  },
);

shown(
  "an order by failures counts failures, and errors where there are as many",
  () =>
    changed("orders", (summary) => {
      const [pair] = summary.pairs;
      summary.comparison = null;
      summary.pairs = [
        ["passing", "passed", "passed"],
        ["erring", "errored", "errored"],
        ["failing", "failed", "passed"],
        ["failing and erring", "failed", "errored"],
      ].flatMap(([name, ...outcomes]) =>
        outcomes.map((outcome, at) => ({ ...planned(pair, name, 0, 1, outcome), experiment: `agent-${at}` })),
      );
    }),
  async (page) => {
    await page.selectOption("#order", "worst");
    const evals = await page.locator("#grid tbody th").allTextContents();
    assert.deepEqual(evals, ["failing and erring", "failing", "erring", "passing"]);
  },
);

shown(
  "an attempt's card says what little it used",
  () =>
    changed("cheap", (summary) => {
      const [pair] = summary.pairs;
      const usage = { input_tokens: 20, output_tokens: 5, cost_usd: 0.0031 };
      const made = planned(pair, "cheap", 0, 1, "failed", "failed");
      const [once, twice] = made.attempts;
      Object.assign(once, { usage, score: 1 / 3 });
      const error = { class: "throttled", phase: "command", message: "429", exit_code: null, signal: null };
      Object.assign(twice, { usage, tries: 2, earlier: [{ number: 1, seconds: 1, error, usage }] });
      Object.assign(summary, { comparison: null, pairs: [made] });
    }),
  async (page) => {
    await rows(page).first().locator("button").click();
    const cards = await page.locator("#list tr.inside .attempt").allInnerTexts();
    assert.match(cards[0], /score 0\.3333\n/);
    assert.match(cards[0], /25 tokens, \$0\.0031\n/);
    assert.match(cards[1], /50 tokens, \$0\.01, all tries together\n/);
  },
);

shown("no state is told by its colour alone", () => usual, async (page) => {
  const signs = await page.locator("#grid td[role=gridcell]").evaluateAll((cells) =>
    cells.map((cell) => `${[...cell.classList].find((name) => name.startsWith("s-"))} ${cell.firstChild.data}`),
  );
  const kinds = new Set(signs);
  const classes = new Set(signs.map((each) => each.split(" ")[0]));
  const glyphs = new Set(signs.map((each) => each.split(" ")[1]));
  assert.ok(kinds.size >= 5);
  assert.deepEqual([classes.size, glyphs.size], [kinds.size, kinds.size]);
});

for (const colorScheme of ["light", "dark"]) {
  shown(
    `axe finds nothing against it (${colorScheme})`,
    () => usual,
    async (page) => {
      const check = async (what) => {
        const broken = await page.evaluate(async () => (await window.axe.run()).violations);
        const said = broken.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 2).map(({ html }) => html.slice(0, 160)).join(" | ")}`);
        assert.deepEqual(said, [], what);
      };
      await page.evaluate(axe);
      await check("as it opens");
      for (const row of [0, 1]) await rows(page).nth(row).locator("button").click();
      await check("with rows open");
      await page.click("#grid td[role=gridcell] >> nth=0");
      await check("with a dialog");
    },
    { colorScheme },
  );
}

shown(
  "a phone shows all of it without scrolling sideways",
  () => usual,
  async (page) => {
    await rows(page).first().locator("button").click();
    const [wide, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= screen, `${wide} on ${screen}`);
    await rows(page).first().locator("button").click();
    await page.tap("#grid td[role=gridcell] >> nth=0");
    const box = await page.locator("#detail").boundingBox();
    assert.ok(box.x >= 0 && box.x + box.width <= screen);
  },
  { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true },
);

shown(
  "the tries before the last are told, each with its cause and its files",
  () => usual,
  async (page) => {
    await page.fill("#text", "throttled");
    await rows(page).first().locator("button").click();
    const tries = page.locator("#list tr.inside .tries > li");
    assert.equal(await tries.count(), 2);
    const second = tries.nth(1);
    assert.match(await second.innerText(), /try 2 errored after 25(\.0)? ?s: sandbox_lost in command/);
    assert.match(await second.locator("pre").textContent(), /the sandbox went away/);
    assert.match(await second.locator("a").getAttribute("href"), /^\.\/attempts\/[^/]+\/\d\/tries\/2\/output\.log$/);
  },
);

shown("prints: no controls, nothing cut off", () => usual, async (page) => {
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  assert.ok(!(await page.locator("#filter").isVisible()));
  assert.ok(await page.locator("#grid td[role=gridcell]").first().isVisible());
  const cut = await page.evaluate(() =>
    [...document.querySelectorAll(".matrix, .chart")].filter((part) => getComputedStyle(part).overflow !== "visible").length,
  );
  assert.equal(cut, 0);
  assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor), "rgb(255, 255, 255)");
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  const pdf = await page.pdf({ printBackground: true });
  assert.equal(pdf.subarray(0, 5).toString(), "%PDF-");
});

const nasty = `</script><img src=x onerror=alert(1)>"'&\u202egnp\u0007`;
shown(
  "text from outside stays text",
  () =>
    changed("hostile", (summary) => {
      const pair = summary.pairs.find(({ verdict }) => verdict === "fail");
      const flip = summary.comparison.flips.pass_to_fail[0];
      const mean = summary.pairs.find((each) => each.experiment === flip.experiment && each.eval === flip.eval);
      for (const each of [pair, mean, flip]) each.eval = `<b onclick=alert(2)>${nasty.replace("\u0007", "")}`;
      for (const each of mean.attempts) {
        Object.assign(each, { checks_failed: [nasty], check_notes: [nasty], output: nasty, path: "//elsewhere.invalid/javascript:alert(3)" });
      }
      pair.eval += " twice";
      pair.labels = { [nasty]: [nasty] };
      summary.run.suite = nasty;
      summary.run.url = "javascript:alert(4)";
      summary.notices = [nasty];
      summary.comparison.baseline.ref = nasty;
    }),
  async (page) => {
    assert.equal(await page.locator("img, b[onclick], a[href^='javascript']").count(), 0);
    assert.ok((await page.title()).includes("</script><img"));
    assert.ok(!(await page.content()).includes("\u202e"));
    const row = rows(page).filter({ hasText: "<b onclick" }).first();
    await row.locator("button").click();
    const inside = page.locator("#list tr.inside");
    assert.ok((await inside.textContent()).includes(`</script><img src=x onerror=alert(1)>"'&\ufffdgnp\ufffd`));
    assert.match(await inside.locator("a").first().getAttribute("href"), /^\.\/\/\/elsewhere\.invalid\/javascript%3A/);
  },
);

shown(
  "without script, it still says what changed",
  () => usual,
  async (page) => {
    assert.match(await page.locator("noscript").textContent(), /PASS→FAIL/);
    assert.ok(await page.locator("noscript table").first().isVisible());
  },
  { javaScriptEnabled: false },
);

shown(
  "a run without baseline, of one experiment, of nothing",
  () =>
    changed("alone", (summary) => {
      summary.comparison = null;
      summary.pairs = summary.pairs.slice(0, 60).map((pair, at) => ({ ...pair, experiment: "default", eval: `eval-${at}`, before: undefined }));
    }),
  async (page) => {
    assert.match(await page.locator("h1").textContent(), / · no baseline/);
    assert.ok((await page.locator("#grid table").count()) > 1, "a narrow grid goes on beside itself");
    assert.equal(await page.locator("#list-title").textContent(), "Pairs that did not pass");
    const nothing = await open(browser, changed("nothing", (summary) => {
      Object.assign(summary, { pairs: [], comparison: null });
      Object.assign(summary.totals, { pairs: 0, passed: 0, failed: 0, pass_rate: null });
    }));
    assert.equal(await nothing.page.locator("h1").textContent(), "no pair to run");
    assert.match(await nothing.page.locator("#pairs").innerText(), /There are none: no pair of the suite was selected/);
    assert.deepEqual(nothing.heard, []);
    await nothing.close();
  },
);

test("pages are small", () => {
  const [small, big] = [usual, large].map((file) => statSync(file).size);
  console.log(`237 pairs x 2: ${Math.round(small / 1000)} kB; 5000 pairs x 2: ${(big / 1e6).toFixed(1)} MB`);
  assert.ok(small < 500_000 && big < 8_000_000);
});

shown("of five thousand pairs, only what is looked at is made", () => large, async (page) => {
  await page.click("#all");
  assert.equal(await found(page), "5000 of 5000 pairs");
  assert.ok((await rows(page).count()) <= 300);
  assert.ok((await page.locator("#timeline path").count()) < 30, "ten thousand attempts are a few paths");
  for (const least of [50, 75]) {
    await page.locator(".more").scrollIntoViewIfNeeded();
    await page.waitForFunction((least) => document.querySelectorAll("#list tr.pair").length >= least, least);
  }
  await page.fill("#text", "secure-billing");
  for (const text of await rows(page).allTextContents()) assert.match(text, /secure-billing/);
});
