// The class `Reduction`, without any framework.
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { OffcutError, Reduction, SettingsError, State } from "offcut";

const LONG = Array.from({ length: 4000 }, (_, nth) => `${nth}: a line\n`).join("");
const folder = () => join(mkdtempSync(join(tmpdir(), "offcut-")), "store");
const early = { max_tokens_for_clear: 2000, clear_at_least_tokens: 0 };
const calls = {
  "openai-chat": { id: "call_1", type: "function", function: { name: "grep", arguments: '{"q":1}' } },
  "openai-responses": { type: "function_call", call_id: "call_1", name: "grep", arguments: '{"q":1}' },
  anthropic: { type: "tool_use", id: "call_1", name: "grep", input: { q: 1 } },
  gemini: { functionCall: { id: "call_1", name: "grep", args: { q: 1 } } },
};

function conversation() {
  const messages = [{ role: "user", content: "go" }];
  for (let nth = 0; nth < 6; nth++) {
    const call = { ...calls["openai-chat"], id: `call_${nth}` };
    messages.push({ role: "assistant", content: null, tool_calls: [call] });
    messages.push({ role: "tool", tool_call_id: `call_${nth}`, content: `${nth}: ${"a line of output\n".repeat(150)}` });
  }
  return messages;
}

for (const [format, call] of Object.entries(calls)) {
  test(`a call is answered in its format: ${format}`, async () => {
    const reduction = Reduction.inDir(folder());
    const message = JSON.stringify(await reduction.wrapToolCall(call, () => LONG));
    assert.match(message, /\[offcut\/1 truncated/);
    assert.ok(message.length < 10_000);
    const location = message.split('\\"')[1];
    assert.equal(Buffer.from(await reduction.original(location)).toString(), LONG);
    const read = { id: "call_2", name: reduction.readerName, arguments: { path: location, pattern: "^3999:" } };
    const page = await reduction.wrapToolCall(read, () => assert.fail("the reader is Offcut's"), { format });
    assert.match(JSON.stringify(page), /3999: a line/);
    assert.match(await reduction.read(location, { pattern: "^3999:" }), /3999: a line$/);
    await assert.rejects(reduction.read("nowhere"), /copy it exactly from a hint/);
    await assert.rejects(reduction.original("nowhere"), TypeError);
    assert.ok(JSON.stringify(reduction.tool(format)).includes("read_file"));
  });
}

test("a pass changes old results alone", async () => {
  const told = [];
  const reduction = Reduction.inDir(folder(), { ...early, onReport: (report) => told.push(report) });
  const messages = conversation();
  const before = [...messages];
  const report = await reduction.beforeModel(messages, { tools: [reduction.tool("openai-chat")] });
  const changed = messages.map((message, nth) => message !== before[nth]);
  assert.equal(messages.length, before.length);
  assert.ok(changed.some(Boolean) && !changed.at(-1) && !changed.at(-2));
  assert.equal(report.decisions.filter((one) => one.outcome === "cleared").length, changed.filter(Boolean).length);
  assert.deepEqual(told, [report]);
});

test("the results of parallel calls are joined", async () => {
  const reduction = Reduction.inDir(folder());
  const both = [calls.anthropic, { ...calls.anthropic, id: "call_2" }];
  const messages = [{ role: "user", content: "go" }, { role: "assistant", content: both }];
  for (const call of both) messages.push(await reduction.wrapToolCall(call, async () => "fine"));
  await reduction.beforeModel(messages);
  assert.deepEqual(messages.map((message) => message.content.length), [2, 2, 2]);
});

test("a body is reduced as it was given", async () => {
  const path = folder();
  const text = `{ "model": "m", "n": 1.00, "messages": ${JSON.stringify(conversation())}}`;
  const shown = await Reduction.inDir(path, early).session("chat-42").reduce(text);
  assert.ok(shown.startsWith('{ "model": "m", "n": 1.00, "messages": [') && shown.includes("offcut/1"));
  const again = Reduction.inDir(path, early).session("chat-42");
  assert.equal(await again.reduce(text), shown);
  assert.deepEqual(await again.reduce(JSON.parse(text)), JSON.parse(shown));
  assert.ok(existsSync(join(path, "chat-42")));
});

test("results of every kind", async () => {
  const reduction = Reduction.inDir(folder());
  const shown = (result) => reduction.truncate(result, { tool: "t", callId: "c1" });
  for (const short of ["short", [{ id: 1 }], null, undefined, 7, { a: 1 }]) assert.equal(await shown(short), short);
  assert.equal(await shown(Buffer.from("short")), "short");
  for (const long of [LONG, Buffer.from(LONG, "utf16le"), Array.from({ length: 500 }, (_, id) => ({ id, text: "x".repeat(100) }))]) {
    assert.match(await shown(long), /^\[offcut\/1 truncated/);
  }
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "aGk=" } };
  const parts = await shown([{ type: "text", text: LONG }, image]);
  assert.match(parts[0].text, /^\[offcut\/1 truncated/);
  assert.deepEqual(parts[1], image);
  const failed = await reduction.wrapToolCall(calls.anthropic, () => { throw new RangeError("too far"); });
  assert.deepEqual(failed.content[0], { type: "tool_result", tool_use_id: "call_1", content: "RangeError: too far", is_error: true });
});

test("mistakes are told with a cure", async () => {
  assert.throws(() => Reduction.inDir(folder(), { max_length_for_trunk: 8 }), /max_length_for_trunc/);
  assert.throws(() => new Reduction({}), SettingsError);
  assert.ok(new SettingsError("x") instanceof OffcutError);
  const reduction = Reduction.inDir(folder());
  await assert.rejects(reduction.beforeModel([{ a: 1 }]), { name: "TypeError", message: /no known format fits/ });
  await assert.rejects(reduction.beforeModel([{ role: "user", content: "x" }], { format: "openai" }), /"openai-chat"/);
  await assert.rejects(reduction.wrapToolCall({ a: 1 }, () => "x"), /as the provider writes it/);
});

test("results that JSON has no words for", async () => {
  const reduction = Reduction.inDir(folder());
  const shown = async (run) => (await reduction.wrapToolCall(calls.anthropic, run)).content[0];
  assert.equal((await shown(() => "a \ud83d b")).content, "a \ufffd b");
  assert.equal((await shown(() => "\\ud83d 😀")).content, "\\ud83d 😀");
  assert.equal((await shown(() => ({ n: 2n }))).content, '{"n":"2"}');
  assert.equal((await shown(() => new Map([["a", 1]]))).content, '[["a",1]]');
  assert.equal((await shown(() => new Uint8Array([104, 105]).buffer)).content, "hi");
  const circular = {};
  circular.self = circular;
  assert.ok((await shown(() => circular)).is_error);
  assert.equal((await shown(() => { throw { code: 5 }; })).content, '{"code":5}');
});

test("messages pushed during a pass stay", async () => {
  const messages = conversation();
  const count = messages.length;
  const passed = Reduction.inDir(folder(), early).beforeModel(messages);
  messages.push({ role: "user", content: "and quickly" });
  assert.ok((await passed).decisions.length > 0);
  assert.equal(messages.length, count + 1);
  assert.equal(messages.at(-1).content, "and quickly");
  await assert.rejects(Reduction.inDir(folder()).beforeModel({ messages }), TypeError);
  await assert.rejects(Reduction.inDir(folder()).beforeModel([], { lastUsage: -1 }), TypeError);
});

test("workers may end in the middle of calls", async () => {
  const path = createRequire(import.meta.url).resolve("offcut");
  const code = `const { Reduction } = require(${JSON.stringify(path)});
    const one = Reduction.inDir(${JSON.stringify(folder())}).session("w");
    for (let i = 0; i < 100; i++) one.truncate(("z" + i + " ").repeat(20000), { tool: "t", callId: "t" + i });
    setTimeout(() => process.exit(0), 30);`;
  const workers = Array.from({ length: 8 }, () => new Worker(code, { eval: true }));
  await Promise.all(workers.map((worker) => new Promise((ended) => worker.on("exit", ended))));
});

test("many calls at once", async () => {
  const reduction = Reduction.inDir(folder());
  const all = Array.from({ length: 500 }, (_, nth) => reduction.truncate(`${nth}\n${LONG}`, { tool: "grep", callId: `c-${nth}` }));
  const shown = await Promise.all(all);
  for (const [nth, text] of shown.entries()) {
    assert.equal(Buffer.from(await reduction.original(text.split('"')[1])).toString(), `${nth}\n${LONG}`);
  }
});

test("the cases of state that all languages run", () => {
  const cases = JSON.parse(readFileSync(process.env.OFFCUT_STATE_CASES, "utf8"));
  assert.ok(cases.length > 15);
  for (const { about, schema, state: value, updates, after, error: code } of cases) {
    const run = () => new State(schema, value).apply(...updates);
    if (after) assert.deepEqual(run(), after, about);
    else assert.throws(run, (error) => error.message.startsWith(`${code}: `), about);
  }
});
