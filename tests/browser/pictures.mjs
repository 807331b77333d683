// The pictures of the page that the documentation shows: `node pictures.mjs DIRECTORY`. scripts/pages.sh calls it.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { launch, open } from "./browser.mjs";
import { invent, shapes } from "./suite.mjs";

const into = process.argv[2];
const scratch = mkdtempSync(join(tmpdir(), "evalwave-pictures-"));
const browser = await launch();
try {
  const file = invent(process.env.EVALWAVE, scratch, shapes.usual);
  const look = async (name, height, colorScheme, prepare) => {
    const options = { viewport: { width: 1200, height }, colorScheme, deviceScaleFactor: 1.5 };
    const { page, close } = await open(browser, file, options);
    await prepare(page);
    await page.screenshot({ path: join(into, name) });
    await close();
  };
  await look("report.png", 1130, "light", (page) => page.hover("#grid td.s-down:not(.known) >> nth=1"));
  await look("report-pair.png", 1180, "dark", async (page) => {
    await page.fill("#text", "types check");
    await page.locator("#list .open").first().click();
    await page.locator("#list-title").evaluate((title) => title.scrollIntoView());
    await page.mouse.wheel(0, -20);
    await page.waitForTimeout(200);
  });
} finally {
  await browser.close();
  rmSync(scratch, { recursive: true, force: true });
}
