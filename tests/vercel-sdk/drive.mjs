// Vercel's official client drives a server that says it is Vercel: `node drive.mjs http://127.0.0.1:PORT/api`.
// The client knows no other address than Vercel's, so its requests are sent on from there.
import assert from "node:assert/strict";
import { test } from "node:test";
import { APIError, Sandbox, Snapshot } from "@vercel/sandbox";

const base = new URL(process.argv[2]);
const official = "https://vercel.com/api/";

async function fetch(url, { dispatcher, ...init }) {
  assert.ok(url.startsWith(official), url);
  return globalThis.fetch(`${base}/${url.slice(official.length)}`, init);
}

const account = { token: "fake-vercel-token", teamId: "team_fake", projectId: "prj_fake", fetch };

async function control(method, path, body) {
  const answer = await globalThis.fetch(new URL(`/fake/${path}`, base), { method, body: JSON.stringify(body) });
  assert.equal(answer.status, 200, `${method} ${path}`);
  return answer.json();
}

const faults = (...rules) => control("PUT", "faults", rules);
const times = (times) => control("PUT", "times", times);

const refused = (status, code) => (error) => {
  assert.ok(error instanceof APIError, String(error));
  assert.equal(error.response.status, status);
  if (code) assert.equal(error.json.error.code, code);
  return true;
};

const create = (more) => Sandbox.create({ ...account, runtime: "node24", persistent: false, ...more });
const sh = (script) => ({ cmd: "sh", args: ["-c", script] });

test("a sandbox is created as asked", async () => {
  const sandbox = await create({
    name: "as-asked", tags: { run: "r1" }, timeout: 600_000, resources: { vcpus: 4 }, ports: [3000], env: { A: "1" },
    networkPolicy: { allow: { "api.example.com": [{ transform: [{ headers: { authorization: "secret" } }] }] } },
  });
  assert.equal(sandbox.name, "as-asked");
  assert.equal(sandbox.status, "running");
  assert.equal(sandbox.persistent, false);
  assert.equal(sandbox.vcpus, 4);
  assert.equal(sandbox.memory, 8192);
  assert.equal(sandbox.runtime, "node24");
  assert.equal(sandbox.timeout, 600_000);
  assert.equal(sandbox.cwd, "/vercel/sandbox");
  assert.deepEqual(sandbox.tags, { run: "r1" });
  assert.match(sandbox.domain(3000), /^https:/);
  assert.deepEqual(sandbox.networkPolicy, {
    allow: { "api.example.com": [{ transform: [{ headers: { authorization: "<redacted>" } }] }] },
  });
  const env = await sandbox.runCommand({ ...sh("echo $A $B; pwd"), env: { B: "2" } });
  assert.equal(await env.stdout(), "1 2\n/vercel/sandbox\n");
  assert.ok(sandbox.expiresAt > new Date());
  await sandbox.delete();
});

test("an image is another create", async () => {
  const sandbox = await Sandbox.create({ ...account, image: "vercel/sandbox:ubuntu", persistent: false });
  assert.equal(sandbox.image, "vercel/sandbox:ubuntu");
  await sandbox.delete();
});

test("a command that is waited for tells its output and its end", async () => {
  const sandbox = await create();
  const ended = await sandbox.runCommand(sh("echo out; echo err >&2; exit 3"));
  assert.equal(ended.exitCode, 3);
  assert.equal(await ended.stdout(), "out\n");
  assert.equal(await ended.stderr(), "err\n");
  assert.ok(ended.durationMs >= 0);
  assert.equal((await sandbox.runCommand("no-such-program")).exitCode, 127);
  await sandbox.delete();
});

test("a detached command is waited for, and its log replayed", async () => {
  const sandbox = await create();
  const command = await sandbox.runCommand({ ...sh("echo one; sleep 0.3; echo two; exit 4"), detached: true });
  assert.equal(command.exitCode, null);
  const followed = [];
  for await (const line of command.logs()) followed.push(line.data);
  assert.deepEqual(followed, ["one\n", "two\n"]);
  assert.equal((await command.wait()).exitCode, 4);
  const again = await sandbox.getCommand(command.cmdId);
  assert.equal(again.exitCode, 4);
  assert.equal(await again.stdout(), "one\ntwo\n");
  await sandbox.delete();
});

test("a command is killed, and one runs out of time", async () => {
  const sandbox = await create();
  const command = await sandbox.runCommand({ cmd: "sleep", args: ["600"], detached: true });
  await command.kill("SIGTERM");
  assert.equal((await command.wait()).exitCode, 143);
  const slow = await sandbox.runCommand({ cmd: "sleep", args: ["600"], timeoutMs: 100 });
  assert.equal(slow.exitCode, 137);
  await sandbox.delete();
});

test("what a command leaves running lives as long as the sandbox", async () => {
  const sandbox = await create();
  const started = await sandbox.runCommand(sh("(while sleep 0.01; do date +%N > /tmp/beat; done) & echo started"));
  assert.equal(await started.stdout(), "started\n");
  const beats = "until [ -s /tmp/beat ]; do sleep 0.01; done; a=$(cat /tmp/beat); while [ $a = $(cat /tmp/beat) ]; do :; done";
  assert.equal((await sandbox.runCommand({ ...sh(beats), timeoutMs: 20_000 })).exitCode, 0);
  assert.match((await sandbox.openInteractive()).url, /^wss:/);
  await sandbox.delete();
});

test("files are written with their mode and read, and a missing one is none", async () => {
  const sandbox = await create();
  await sandbox.writeFiles([
    { path: "deep/run.sh", content: "#!/bin/sh\necho ran\n", mode: 0o755 },
    { path: "/tmp/bytes", content: Buffer.from([0, 255, 10]) },
  ]);
  assert.equal(await (await sandbox.runCommand("deep/run.sh")).stdout(), "ran\n");
  assert.deepEqual(await sandbox.readFileToBuffer({ path: "/tmp/bytes" }), Buffer.from([0, 255, 10]));
  assert.equal(String(await sandbox.readFileToBuffer({ path: "run.sh", cwd: "/vercel/sandbox/deep" })).length, 19);
  assert.equal(await sandbox.readFileToBuffer({ path: "missing" }), null);
  await sandbox.mkDir("made");
  await assert.rejects(sandbox.mkDir("not/there"), refused(400, "bad_request"));
  await sandbox.fs.mkdir("/tmp/a/b", { recursive: true });
  await sandbox.fs.writeFile("/tmp/a/b/c", "text");
  assert.equal(await sandbox.fs.readFile("/tmp/a/b/c", "utf8"), "text");
  assert.deepEqual(await sandbox.fs.readdir("/tmp/a"), ["b"]);
  await sandbox.delete();
});

test("sandboxes do not see each other", async () => {
  const [one, other] = await Promise.all([create(), create()]);
  await one.writeFiles([{ path: "/tmp/mine", content: "1" }, { path: "mine", content: "1" }]);
  const looked = await other.runCommand(sh("ls /tmp /vercel/sandbox; ps -e -o comm= | grep -c '^sleep$'"));
  assert.equal(await looked.stdout(), "/tmp:\n\n/vercel/sandbox:\n1\n");
  await Promise.all([one.delete(), other.delete()]);
});

test("the time limit is extended up to the most there is", async () => {
  const sandbox = await create({ timeout: 60_000 });
  await sandbox.extendTimeout(30_000);
  assert.equal(sandbox.currentSession().timeout, 90_000);
  await assert.rejects(sandbox.extendTimeout(25 * 3600_000), refused(400, "sandbox_timeout_invalid"));
  await assert.rejects(sandbox.extendTimeout(1), refused(400, "bad_request"));
  assert.equal(await sandbox.updateNetworkPolicy("deny-all"), "deny-all");
  await sandbox.update({ timeout: 120_000, tags: { a: "b" } });
  assert.equal(sandbox.timeout, 120_000);
  assert.equal(sandbox.currentSession().timeout, 120_000);
  await sandbox.delete();
});

test("a sandbox boots from a snapshot until that is deleted or expires", async () => {
  const builder = await create({ name: "builder" });
  await builder.writeFiles([{ path: "warm", content: "yes", mode: 0o755 }]);
  await builder.runCommand(sh("ln -s warm link; echo t > /tmp/t"));
  const snapshot = await builder.snapshot({ expiration: 0 });
  assert.equal(snapshot.status, "created");
  assert.equal(snapshot.expiresAt, undefined);
  assert.ok(snapshot.sizeBytes > 0);
  await assert.rejects(builder.currentSession().runCommand("true"), refused(410, "sandbox_stopped"));
  assert.deepEqual((await Snapshot.list({ ...account, name: "builder" })).snapshots.map(({ id }) => id), [snapshot.snapshotId]);

  const source = { type: "snapshot", snapshotId: snapshot.snapshotId };
  const warm = await Sandbox.create({ ...account, source, persistent: false });
  assert.equal(warm.sourceSnapshotId, snapshot.snapshotId);
  assert.equal(await (await warm.runCommand(sh("cat link /tmp/t; test -x warm && echo x"))).stdout(), "yest\nx\n");
  const second = await warm.snapshot();
  assert.ok(second.expiresAt > new Date());
  const tree = await Snapshot.tree({ ...account, snapshotId: second.snapshotId });
  assert.equal(tree.anchor.snapshot.id, second.snapshotId);

  const found = await Snapshot.get({ ...account, snapshotId: snapshot.snapshotId });
  await found.delete();
  await assert.rejects(Sandbox.create({ ...account, source }), refused(410, "snapshot_not_found"));
  await control("POST", `snapshots/${second.snapshotId}/expire`);
  const expired = { type: "snapshot", snapshotId: second.snapshotId };
  await assert.rejects(Sandbox.create({ ...account, source: expired }), refused(410, "snapshot_not_found"));
  await assert.rejects(Snapshot.get({ ...account, snapshotId: "snap_none" }), refused(404, "not_found"));
  await builder.delete();
  await warm.delete();
});

test("a session that is over answers 410, and the client resumes in another", async () => {
  const sandbox = await create();
  await sandbox.writeFiles([{ path: "kept", content: "no" }]);
  const session = sandbox.currentSession();
  const stopped = await sandbox.stop();
  assert.equal(stopped.status, "stopped");
  await assert.rejects(session.runCommand("true"), refused(410, "sandbox_stopped"));
  await assert.rejects(session.extendTimeout(1000), refused(410, "sandbox_stopped"));
  assert.equal((await Sandbox.get({ ...account, name: sandbox.name })).status, "stopped");
  // What evals must never do: this is another machine, and empty.
  assert.equal((await sandbox.runCommand("ls", ["kept"])).exitCode, 2);
  assert.notEqual(sandbox.currentSession().sessionId, session.sessionId);
  await sandbox.delete();
});

test("a persistent sandbox keeps its disk when it stops", async () => {
  const sandbox = await create({ persistent: true });
  await sandbox.writeFiles([{ path: "kept", content: "yes" }]);
  const stopped = await sandbox.stop();
  assert.equal(stopped.snapshot.status, "created");
  assert.equal(String(await sandbox.readFileToBuffer({ path: "kept" })), "yes");
  assert.equal((await sandbox.listSessions()).sessions.length, 2);
  const fork = await Sandbox.fork({ ...account, sourceSandbox: sandbox.name });
  assert.equal(String(await fork.readFileToBuffer({ path: "kept" })), "yes");
  await fork.delete();
  await sandbox.delete({ deleteOrphanSnapshots: true });
  assert.equal((await Snapshot.list({ ...account, name: sandbox.name })).snapshots[0].status, "deleted");
});

test("a session ends when its time has run out, also under a command", async () => {
  const sandbox = await create({ timeout: 1000 });
  const session = sandbox.currentSession();
  const error = await session.runCommand(sh("echo begun; sleep 600")).catch((error) => error);
  assert.equal(error.name, "StreamError");
  assert.equal(error.code, "sandbox_stopped");
  await assert.rejects(session.runCommand("true"), refused(410, "sandbox_stopped"));
  await sandbox.delete();
});

const forever = 3600_000;

async function until(name, status) {
  while ((await Sandbox.get({ ...account, name })).status !== status);
}

test("stopping and snapshotting take their time and answer 422 meanwhile", async () => {
  const [stopping, snapshotting] = await Promise.all([create(), create()]);
  await times({ "stop-ms": forever, "snapshot-ms": forever });
  const sessions = [stopping, snapshotting].map((sandbox) => sandbox.currentSession());
  const ends = [stopping.stop(), sessions[1].snapshot()];
  await until(stopping.name, "stopping");
  await until(snapshotting.name, "snapshotting");
  await assert.rejects(sessions[0].runCommand("true"), refused(422, "sandbox_stopping"));
  await assert.rejects(sessions[1].runCommand("true"), refused(422, "sandbox_snapshotting"));
  const resumed = stopping.runCommand("true");
  await times({});
  assert.equal((await ends[0]).status, "stopped");
  assert.equal((await ends[1]).status, "created");
  assert.equal((await resumed).exitCode, 0);
  assert.notEqual(stopping.currentSession().sessionId, sessions[0].sessionId);
  await Promise.all([stopping.delete(), snapshotting.delete()]);
});

test("a creation may answer while the session is pending, and may fail", async () => {
  await times({ "create-ms": forever, "answers-pending": true });
  const [pending, failing] = await Promise.all([create(), create()]);
  assert.equal(pending.status, "pending");
  await control("POST", `sessions/${failing.currentSession().sessionId}/fail`);
  assert.equal((await Sandbox.get({ ...account, name: failing.name })).status, "failed");
  await assert.rejects(failing.currentSession().runCommand("true"), refused(410));
  const ran = pending.runCommand("true");
  await times({});
  assert.equal((await ran).exitCode, 0);
  await control("POST", `sessions/${pending.currentSession().sessionId}/abort`);
  assert.equal((await Sandbox.get({ ...account, name: pending.name })).status, "aborted");
  await Promise.all([pending.delete(), failing.delete()]);
});

test("429 is ridden out twice, and surfaces the third time or when it is long", async () => {
  await faults({ on: ["create"], fault: { "too-many": 1 }, at: [1, 2] });
  const started = Date.now();
  const sandbox = await create();
  assert.ok(Date.now() - started > 3000);
  await faults({ on: ["run-and-wait"], fault: { "too-many": 21 }, at: [1] });
  await assert.rejects(sandbox.runCommand("true"), refused(429, "rate_limited"));
  await faults({ on: ["run-and-wait"], fault: { "too-many-until": 2 }, at: [1, 2, 3] });
  await assert.rejects(sandbox.runCommand("true"), refused(429));
  await faults();
  await sandbox.delete();
});

test("what was done and answered 502, or lost, is asked again", async () => {
  await faults({ on: ["create"], fault: "bad-gateway", at: [1] });
  await assert.rejects(create({ name: "twice" }), (error) => {
    refused(400, "bad_request")(error);
    return error.message.includes("A sandbox with the name 'twice' already exists for this project.");
  });
  const sandbox = await Sandbox.get({ ...account, name: "twice" });
  await faults(
    { on: ["read"], fault: "reset", at: [1] },
    { on: ["write"], fault: "lost", at: [1] },
    { on: ["stop"], fault: { refused: [503, "unavailable"] }, at: [1] },
  );
  await sandbox.writeFiles([{ path: "x", content: "1" }]);
  assert.equal(String(await sandbox.readFileToBuffer({ path: "x" })), "1");
  await sandbox.stop();
  const { faults: shown } = await control("GET", "counts");
  assert.ok(shown.Reset >= 1 && shown.Lost >= 1 && shown.Refused >= 1 && shown.BadGateway >= 1, JSON.stringify(shown));
  await faults();
  await sandbox.delete();
});

test("answers end early, polls are lost, streams break", async () => {
  const sandbox = await create();
  const command = await sandbox.runCommand({ ...sh("echo one; echo two >&2"), detached: true });
  await faults({ on: ["wait"], fault: { "lost-poll": 50 }, at: [1] });
  assert.equal((await command.wait()).exitCode, 0);
  await faults({ on: ["logs"], fault: "error-line", at: [1] });
  await assert.rejects(command.output(), { name: "StreamError", code: "sandbox_stream_closed" });
  assert.equal((await command.output()).length, 8);
  await faults({ on: ["run-and-wait"], fault: "early-eof", at: [1] });
  const told = console.error;
  console.error = () => {};
  await assert.rejects(sandbox.runCommand("true"));
  console.error = told;
  await faults({ on: ["read"], fault: "session-over", at: [1] });
  await assert.rejects(sandbox.currentSession().readFile({ path: "x" }), refused(410, "sandbox_stopped"));
  await faults();
  await sandbox.delete();
});

test("sandboxes are listed by tag, page after page", async () => {
  const sandboxes = [];
  for (let n = 0; n < 5; n += 1) sandboxes.push(await create({ name: `listed-${n}`, tags: { run: n < 4 ? "r 7" : "r8" } }));
  const listed = await Sandbox.list({ ...account, tags: { run: "r 7" }, limit: 3, sortBy: "name", sortOrder: "asc" });
  assert.deepEqual(listed.sandboxes.map(({ name }) => name), ["listed-0", "listed-1", "listed-2"]);
  assert.equal((await listed.toArray()).length, 4);
  assert.equal((await Sandbox.list({ ...account, namePrefix: "listed-" })).sandboxes.length, 5);
  for (const sandbox of sandboxes) await sandbox.delete();
  assert.equal((await Sandbox.list({ ...account, namePrefix: "listed-" })).sandboxes.length, 0);
});

test("who may not is refused", async () => {
  const sandbox = await create();
  await assert.rejects(Sandbox.get({ ...account, token: "wrong", name: sandbox.name }), refused(403, "forbidden"));
  await assert.rejects(Sandbox.get({ ...account, teamId: "team_other", name: sandbox.name }), refused(403, "forbidden"));
  await assert.rejects(Sandbox.get({ ...account, projectId: "prj_other", name: sandbox.name }), refused(404, "not_found"));
  await assert.rejects(Sandbox.get({ ...account, name: "nobody" }), refused(404, "not_found"));
  const anonymous = await globalThis.fetch(`${base}/v2/sandboxes?teamId=team_fake&project=prj_fake`);
  assert.equal(anonymous.status, 401);
  await sandbox.delete();
  await assert.rejects(sandbox.delete(), refused(404, "not_found"));
});

test("limits are those of the account", async () => {
  await control("PUT", "limits", { concurrent: 1, "vcpus-per-minute": [4, 2, 5], "minute-ms": 1000 });
  const first = await create();
  await assert.rejects(create(), refused(429));
  await first.delete();
  const next = await create({ resources: { vcpus: 4 } });
  await next.delete();
  await assert.rejects(create({ resources: { vcpus: 3 } }), refused(400, "bad_request"));
  await assert.rejects(create({ resources: { vcpus: 16 } }), refused(400, "bad_request"));
  await assert.rejects(create({ timeout: 25 * 3600_000 }), refused(400, "sandbox_timeout_invalid"));
  await control("PUT", "limits", {});
  const { sandboxes, live, troubles } = await control("GET", "counts");
  assert.deepEqual({ sandboxes, live, troubles }, { sandboxes: 0, live: 0, troubles: [] });
});
