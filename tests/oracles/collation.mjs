// Sorts names as JavaScript does where result rows are published: `node tests/oracles/collation.mjs` writes
// collation.json beside this file.
import { writeFileSync } from 'node:fs';

const names = [
  'a', 'A', 'b', 'B', 'ab', 'a-b', 'a_b', 'a.b', 'a b', 'a/b', 'a:b', 'a1', 'a2', 'a10', 'a-1', 'é', 'e', 'f', 'ß', 'ss',
  'codex-gpt-5.4', 'codex-gpt-5.4-mini', 'codex-gpt-5.4-mini-no-skills', 'codex-gpt-5.6', 'claude-code-opus-5',
  'claude-code-opus-5-no-skills', 'claude_code', 'Claude', 'z', 'Z', '-', '_', '.', '1', '日本', 'ñ', 'n', 'o', 'a+b', 'a~b',
];
const sorted = [...names].sort((one, other) => one.localeCompare(other, 'en'));
writeFileSync(new URL('collation.json', import.meta.url), `${JSON.stringify(sorted)}\n`);
