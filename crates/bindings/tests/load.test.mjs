// Calls from threads and at once, and killed in the middle: nothing is lost, nothing hangs, memory is flat.
//
// `OFFCUT_CALLS` is the number of calls: 400 without it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { Reduction } from "offcut";

const CALLS = Number(process.env.OFFCUT_CALLS ?? 400);
/** Bytes by which the process may grow in the second half of the calls. */
const GROWTH = 60 << 20;
const folder = () => join(mkdtempSync(join(tmpdir(), "offcut-")), "store");

/** What the test, its workers and its children share, as text. */
const shared = `
const { Reduction } = require(${JSON.stringify(createRequire(import.meta.url).resolve("offcut"))});
const textOf = (nth) => Array.from({ length: 2000 }, (_, line) => nth + "." + line + ": a line\\n").join("");
/** Truncates texts, several at once, and tells where each is. */
async function write(path, numbers, atOnce, tell) {
  const reduction = Reduction.inDir(path);
  const next = numbers[Symbol.iterator]();
  const one = async () => {
    for (const nth of { [Symbol.iterator]: () => next }) {
      const shown = await reduction.truncate(textOf(nth), { tool: "grep", callId: "c-" + nth });
      if (!shown.startsWith("[offcut/1 truncated")) throw new Error(shown);
      // A copy: a slice would keep all of the text in memory.
      tell(nth, Buffer.from(shown.split('"')[1]).toString());
    }
  };
  await Promise.all(Array.from({ length: atOnce }, one));
}
`;
const { write, textOf } = new Function("require", `${shared}; return { write, textOf };`)(createRequire(import.meta.url));
const range = (start, end) => Array.from({ length: end - start }, (_, nth) => start + nth);

/** Every text is where it was told to be. */
async function check(path, told, count) {
  const reduction = Reduction.inDir(path);
  assert.equal(told.size, count);
  assert.equal(new Set(told.values()).size, count);
  for (const [nth, location] of told) assert.equal(Buffer.from(await reduction.original(location)).toString(), textOf(nth));
}

test("many calls at once", async () => {
  const [path, told] = [folder(), new Map()];
  const tell = (nth, location) => told.set(nth, location);
  await write(path, range(0, CALLS / 2), 64, tell);
  const before = process.memoryUsage().rss;
  await write(path, range(CALLS / 2, CALLS), 64, tell);
  assert.ok(process.memoryUsage().rss - before < GROWTH);
  await check(path, told, CALLS);
});

test("calls from 16 threads", async () => {
  const [path, told] = [folder(), new Map()];
  const code = `${shared}
    const { parentPort, workerData: { path, numbers } } = require("node:worker_threads");
    write(path, numbers, 4, (nth, location) => parentPort.postMessage([nth, location]));`;
  const run = (thread) => {
    const numbers = range(0, CALLS).filter((nth) => nth % 16 === thread);
    const worker = new Worker(code, { eval: true, workerData: { path, numbers } });
    worker.on("message", ([nth, location]) => told.set(nth, location));
    return new Promise((ended, failed) => worker.on("exit", ended).on("error", failed));
  };
  await Promise.all(range(0, 16).map(run));
  await check(path, told, CALLS);
});

test("workers may end in the middle of calls", async () => {
  const code = `${shared}
    write(${JSON.stringify(folder())}, Array(1e6).keys(), 100, () => {});
    setTimeout(() => process.exit(0), 30);`;
  const workers = range(0, 8).map(() => new Worker(code, { eval: true }));
  await Promise.all(workers.map((worker) => new Promise((ended) => worker.on("exit", ended))));
});

test("what was shown before a kill is stored whole", async () => {
  const path = folder();
  const code = `${shared}
    write(${JSON.stringify(path)}, Array(1e6).keys(), 16, (nth, location) => process.stdout.write(nth + " " + location + "\\n"));`;
  for (const _ of range(0, 3)) {
    const writer = spawn(process.execPath, ["-e", code], { stdio: ["ignore", "pipe", "inherit"] });
    const told = new Map();
    for await (const line of createInterface({ input: writer.stdout })) {
      const [nth, location] = line.split(" ");
      // The last line may be cut.
      if (location?.endsWith(`/c-${nth}`)) told.set(Number(nth), location);
      if (told.size === CALLS / 10) writer.kill("SIGKILL");
    }
    assert.ok(told.size >= CALLS / 10);
    await check(path, told, told.size);
  }
});
