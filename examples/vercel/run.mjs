// One attempt: asks the experiment's model, and compares its answer with what is expected.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";

const text = (path) => readFileSync(path, "utf8").trim();
const options = { experiment: { type: "string" }, eval: { type: "string" }, "timeout-sec": { type: "string" } };
const { experiment, eval: name, "timeout-sec": seconds } = parseArgs({ options }).values;
const { model } = JSON.parse(text(`experiments/${experiment}.json`));

// The key is not here: the network policy adds it to the request.
const response = await fetch("https://api.anthropic.com/v1/messages", {
  method: "POST",
  headers: { "content-type": "application/json", "anthropic-version": "2023-06-01" },
  body: JSON.stringify({
    model,
    max_tokens: 100,
    messages: [{ role: "user", content: text(`evals/${name}/PROMPT.md`) }],
  }),
  signal: AbortSignal.timeout(Number(seconds) * 1000),
});
// Without a result the attempt is errored, and tried again.
if (!response.ok) throw new Error(`the answer is ${response.status}: ${await response.text()}`);

const { content } = await response.json();
const answer = content.map((part) => part.text ?? "").join("").trim();
console.log(answer);
mkdirSync(`results/${experiment}`, { recursive: true });
writeFileSync(
  `results/${experiment}/${name}.json`,
  JSON.stringify({ passed: answer === text(`evals/${name}/expected.txt`) }),
);
