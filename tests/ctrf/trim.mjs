// Cuts the published schema of CTRF down to what it holds documents to: `npm install ctrf@0.3.0`, then
// `node tests/ctrf/trim.mjs node_modules/ctrf` writes schema.json beside this file. The package is under the MIT
// licence, copyright 2024 Matthew Poulton-White.
import { readFileSync, writeFileSync } from 'node:fs';

const schema = JSON.parse(readFileSync(`${process.argv[2]}/dist/ctrf-schema-0.0.json`, 'utf8'));
const wordless = (value) => {
  if (Array.isArray(value)) return value.map(wordless);
  if (value === null || typeof value !== 'object') return value;
  const kept = Object.entries(value).filter(([key, inner]) => !(key === 'description' && typeof inner === 'string'));
  return Object.fromEntries(kept.map(([key, inner]) => [key, wordless(inner)]));
};
writeFileSync(new URL('schema.json', import.meta.url), `${JSON.stringify(wordless(schema), null, 1)}\n`);
