// Cuts GitHub's published OpenAPI description down to the routes that evalwave uses: `node tests/openapi/trim.mjs`.
//
// What stays is JSON Schema (nullable types written out, texts and examples dropped), so that the tests can hold the
// client's questions and the fake GitHub's answers to it. The description is MIT-licensed, by the Octokit contributors.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const version = "23.0.2";
const routes = [
  "GET /repos/{owner}/{repo}",
  "GET /repos/{owner}/{repo}/actions/artifacts/{artifact_id}/{archive_format}",
  "GET /repos/{owner}/{repo}/actions/runs/{run_id}",
  "GET /repos/{owner}/{repo}/actions/runs/{run_id}/artifacts",
  "GET /repos/{owner}/{repo}/actions/workflows/{workflow_id}/runs",
  "GET /repos/{owner}/{repo}/commits",
  "GET /repos/{owner}/{repo}/commits/{ref}",
  "GET /repos/{owner}/{repo}/compare/{basehead}",
  "GET /repos/{owner}/{repo}/git/commits/{commit_sha}",
  "DELETE /repos/{owner}/{repo}/issues/comments/{comment_id}",
  "PATCH /repos/{owner}/{repo}/issues/comments/{comment_id}",
  "GET /repos/{owner}/{repo}/issues/{issue_number}/comments",
  "POST /repos/{owner}/{repo}/issues/{issue_number}/comments",
  "GET /repos/{owner}/{repo}/pulls",
  "GET /repos/{owner}/{repo}/pulls/{pull_number}",
  "GET /repos/{owner}/{repo}/releases",
  "GET /repos/{owner}/{repo}/releases/latest",
];

const directory = mkdtempSync(join(tmpdir(), "openapi-"));
const run = (program, ...parameters) => execFileSync(program, parameters, { cwd: directory, encoding: "utf8" });
const archive = run("npm", "pack", "--silent", `@octokit/openapi@${version}`).trim();
run("tar", "xzf", archive, "package/generated/api.github.com.json");
const api = JSON.parse(readFileSync(join(directory, "package/generated/api.github.com.json"), "utf8"));
rmSync(directory, { recursive: true });

const dropped = ["description", "title", "example", "examples", "default", "externalDocs", "deprecated", "nullable"];
const used = new Set();

function schema(from) {
  if (Array.isArray(from)) return from.map(schema);
  if (from === null || typeof from !== "object") return from;
  if (from.$ref) {
    const name = from.$ref.replace("#/components/schemas/", "");
    used.add(name);
    return { $ref: `#/$defs/${name}` };
  }
  const to = {};
  for (const [key, value] of Object.entries(from)) {
    if (dropped.includes(key) || key.startsWith("x-")) continue;
    if (key === "properties") {
      to[key] = Object.fromEntries(Object.entries(value).map(([name, each]) => [name, schema(each)]));
    } else {
      to[key] = ["required", "enum"].includes(key) ? value : schema(value);
    }
  }
  if (!from.nullable) return to;
  if (to.enum && !to.enum.includes(null)) to.enum = [...to.enum, null];
  if (typeof to.type === "string") return { ...to, type: [to.type, "null"] };
  return to.enum ? to : { anyOf: [to, { type: "null" }] };
}

const resolve = (from) => (from.$ref ? from.$ref.slice(2).split("/").reduce((at, key) => at[key], api) : from);
const json = (body) => body?.content?.["application/json"]?.schema;

const trimmed = routes.map((route) => {
  const [method, path] = route.split(" ");
  const operation = api.paths[path][method.toLowerCase()];
  const parameters = { path: {}, query: {} };
  for (const parameter of (operation.parameters ?? []).map(resolve)) {
    if (parameter.in in parameters) parameters[parameter.in][parameter.name] = schema(parameter.schema);
  }
  const body = json(operation.requestBody && resolve(operation.requestBody));
  const responses = {};
  for (const [status, response] of Object.entries(operation.responses)) {
    const answer = json(resolve(response));
    responses[status] = answer ? schema(answer) : null;
  }
  return { method, path, parameters, body: body ? schema(body) : null, responses };
});

const defs = {};
for (let more = true; more; ) {
  more = false;
  for (const name of [...used]) {
    if (name in defs) continue;
    defs[name] = schema(api.components.schemas[name]);
    more = true;
  }
}
const lines = (entries) => entries.map((entry) => `  ${entry}`).join(",\n");
const sorted = Object.keys(defs).sort();
writeFileSync(
  new URL("github.json", import.meta.url),
  `{"source": "@octokit/openapi ${version}, trimmed by trim.mjs",\n"routes": [\n` +
    `${lines(trimmed.map((route) => JSON.stringify(route)))}\n],\n"$defs": {\n` +
    `${lines(sorted.map((name) => `${JSON.stringify(name)}: ${JSON.stringify(defs[name])}`))}\n}}\n`,
);
