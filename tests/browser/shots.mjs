// Takes pictures of pages: `node shots.mjs PAGE OUT-PREFIX`.
import { chromium } from "playwright-core";
const [page, out] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.EVALWAVE_TEST_CHROMIUM, args: ["--no-sandbox"] });
for (const [name, width, height, colorScheme] of [["light", 1280, 900, "light"], ["dark", 1280, 900, "dark"], ["phone", 390, 844, "light"]]) {
  const tab = await browser.newPage({ viewport: { width, height }, colorScheme });
  tab.on("console", (message) => console.log(name, message.text()));
  tab.on("pageerror", (error) => console.log(name, String(error)));
  await tab.goto(`file://${page}`);
  await tab.screenshot({ path: `${out}-${name}.png`, fullPage: true });
  await tab.close();
}
await browser.close();
