// A real browser with a page in it, and everything that the page said and asked for.
import { chromium } from "playwright-core";
import { pathToFileURL } from "node:url";

const executablePath = process.env.EVALWAVE_TEST_CHROMIUM;
if (!executablePath || !process.env.EVALWAVE) throw new Error("EVALWAVE and EVALWAVE_TEST_CHROMIUM name the binaries");

export const launch = () =>
  chromium.launch({
    executablePath,
    // Tests run as root in a container, where Chromium has no sandbox of its own.
    args: ["--no-sandbox"],
  });

// Opens a file; `heard` fills with messages, errors and requests besides the file itself.
export async function open(browser, file, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const url = pathToFileURL(file).href;
  const heard = [];
  page.on("console", (message) => heard.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => heard.push(`error: ${error}`));
  page.on("dialog", (dialog) => {
    heard.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => {
    if (request.url() !== url && !request.url().startsWith("data:")) heard.push(`request: ${request.url()}`);
  });
  await page.goto(url);
  return { page, heard, close: () => context.close() };
}
