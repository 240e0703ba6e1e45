// The class `Reduction`, without any framework.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
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
    for (const args of [read.arguments, JSON.stringify(read.arguments)]) {
      const { content, isError } = await reduction.answer({ name: read.name, args });
      assert.ok(content.includes("3999: a line") && !isError);
    }
    assert.equal((await reduction.answer({ name: read.name, args: { path: location, limit: 0 } })).isError, true);
    assert.equal(await reduction.answer({ name: "grep" }), undefined);
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
  for (const short of ["short", [{ id: 1 }], [null, 7], null, undefined, 7, { a: 1 }]) assert.equal(await shown(short), short);
  assert.equal(await shown(Buffer.from("short")), "short");
  for (const long of [LONG, Buffer.from(LONG, "utf16le"), Array.from({ length: 500 }, (_, id) => ({ id, text: "x".repeat(100) }))]) {
    assert.match(await shown(long), /^\[offcut\/1 truncated/);
  }
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "aGk=" } };
  const parts = await shown([{ type: "text", text: LONG }, image]);
  assert.match(parts[0].text, /^\[offcut\/1 truncated/);
  assert.deepEqual(parts[1], image);
  const inline = { mimeType: "image/png", data: "aGk=" };
  for (const medium of [{ type: "image", ...inline }, { inlineData: inline }]) {
    const answered = await reduction.wrapToolCall(calls.anthropic, () => [medium]);
    assert.deepEqual(answered.content[0].content, [image]);
    const { parts } = await reduction.wrapToolCall(calls.gemini, () => [medium]);
    assert.deepEqual(parts[0].functionResponse.parts, [{ inlineData: inline }]);
  }
  const failed = await reduction.wrapToolCall(calls.anthropic, () => { throw new RangeError("too far"); });
  assert.deepEqual(failed.content[0], { type: "tool_result", tool_use_id: "call_1", content: "RangeError: too far", is_error: true });
  const warned = once(process, "warning");
  const refused = await reduction.wrapToolCall(calls.anthropic, () => ({ head: Buffer.from("hi") }));
  assert.match(refused.content[0].content, /no JSON says a Buffer/);
  assert.match((await warned)[0].message, /^offcut: a result was refused: TypeError: no JSON says a Buffer/);
});

test("a cleared message keeps what JSON can't say", async () => {
  const messages = conversation();
  const [at, tags] = [new Date(0), new Set(["x"])];
  for (const message of messages) Object.assign(message, { at, tags });
  const before = JSON.stringify(messages);
  await Reduction.inDir(folder(), early).beforeModel(messages);
  assert.notEqual(JSON.stringify(messages), before);
  for (const message of messages) assert.ok(message.at === at && message.tags === tags);
});

test("a cleared message keeps what JSON can't say beside a join", async () => {
  const call = (id) => ({ ...calls.anthropic, id });
  const content = (id) => [{ type: "tool_result", tool_use_id: id, content: `${id}: ${LONG}` }];
  const result = (id) => ({ role: "user", at: new Date(0), content: content(id) });
  const messages = [{ role: "user", content: "go" }];
  for (const ids of [["a"], ["b"], ["c", "d"]]) {
    messages.push({ role: "assistant", content: ids.map(call) }, ...ids.map(result));
  }
  const last = { role: "user", content: "go on" };
  messages.push({ ...last });
  await Reduction.inDir(folder(), early).beforeModel(messages);
  assert.equal(messages.length, 8);
  assert.deepEqual(messages.at(-1), last);
  for (const nth of [2, 4]) {
    assert.match(messages[nth].content[0].content, /^\[offcut\/1 cleared/);
    assert.deepEqual(messages[nth].at, new Date(0));
  }
});

test("messages that a join has not changed stay one's own", async () => {
  const more = () => ({ at: new Date(0), n: 5n, half: "\ud83d" });
  const call = (id) => ({ ...calls.anthropic, id });
  const result = (id) => ({ role: "user", content: [{ type: "tool_result", tool_use_id: id, content: "fine" }], ...more() });
  const user = (content) => ({ role: "user", content, ...more() });
  const asked = { role: "assistant", content: ["a", "b", "c", "d"].map(call), ...more() };
  const [late, last] = [user("wait"), user("go on")];
  const messages = [user("go"), asked, user("hm"), result("a"), result("b"), late, result("c"), result("d"), last];
  const before = [...messages];
  await Reduction.inDir(folder()).beforeModel(messages);
  assert.deepEqual(messages.map((message) => before.indexOf(message)), [0, 1, 2, -1, 5, -1, 8]);
  assert.deepEqual([messages[3], messages[5]].map(({ content }) => content.length), [2, 2]);
});

test("a changed message keeps its fields right before a join", async () => {
  const both = ["a", "b"].map((id) => ({ ...calls.anthropic, id, input: { q: LONG } }));
  const at = new Date(0);
  const asked = ({ id }) => ({ role: "assistant", content: [{ ...both[0], id, at }], at });
  const result = ({ id }) => ({ role: "user", content: [{ type: "tool_result", tool_use_id: id, content: "fine", at }], at });
  const old = ["x", "y", "z"].map((id) => ({ id }));
  const messages = [{ role: "user", content: LONG, at }, ...old.flatMap((one) => [asked(one), result(one)])];
  messages.push({ role: "assistant", content: both }, ...both.map(result));
  const count = messages.length;
  const settings = { ...early, clear_tool_inputs_above: 800, clear_user_texts_above: 2000 };
  await Reduction.inDir(folder(), settings).beforeModel(messages);
  assert.equal(messages.length, count - 1);
  const [changed] = messages[1].content;
  assert.match(changed.input.q, /^\[offcut\/1 cleared/);
  assert.ok(changed.at === at && messages.slice(0, 7).every((message) => message.at === at));
});

test("a body keeps what JSON can't say", async () => {
  const around = { n: 5n };
  around.self = around;
  const more = { at: new Date(0), around, half: "\ud83d", tags: new Set(["x"]), absent: undefined };
  const said = { role: "user", content: [{ type: "text", text: "half \ud83d", ...more }], ...more };
  const body = { model: "m", messages: [said, ...conversation().map((message) => ({ ...message, ...more }))], ...more };
  const copy = { ...body, messages: [...body.messages] };
  const reduction = Reduction.inDir(folder(), early).session("chat-42");
  const reduced = await reduction.reduce(body);
  assert.deepEqual(body, copy);
  const isOwn = reduced.messages.map((message, nth) => message === body.messages[nth]);
  assert.ok(isOwn[0] && isOwn.includes(false));
  for (const one of [reduced, ...reduced.messages]) for (const name in more) assert.ok(name in one && one[name] === more[name]);
  for (const [nth, { content, ...rest }] of reduced.messages.entries()) {
    if (!isOwn[nth]) assert.match(content, /^\[offcut\/1 cleared/);
    assert.deepEqual({ content: body.messages[nth].content, ...rest }, body.messages[nth]);
  }
  const list = await reduction.reduce(body.messages);
  assert.ok(isOwn.every((own, nth) => (list[nth] === body.messages[nth]) === own));
});

test("a body of JSON alone is reduced as its text is", async () => {
  const contents = [{ role: "user", parts: [{ text: "go" }] }];
  for (let nth = 0; nth < 6; nth++) {
    const [id, name] = [`call_${nth}`, "grep"];
    contents.push({ role: "model", parts: [{ functionCall: { id, name, args: {} } }] });
    const media = { parts: [{ inlineData: { mimeType: "image/png", data: "aGk=" } }], later: 1 };
    const functionResponse = { id, name, response: { output: "a line of output\n".repeat(150) }, ...media };
    contents.push({ role: "user", parts: [{ functionResponse }] });
  }
  for (const body of [{ contents }, contents]) {
    const reduction = Reduction.inDir(folder(), early).session("chat-42");
    const expected = JSON.parse(await reduction.reduce(JSON.stringify(body)));
    // What has gone is gone.
    assert.equal((expected.contents ?? expected)[2].parts[0].functionResponse.parts, undefined);
    assert.deepEqual(await reduction.reduce(body), expected);
    assert.deepEqual(await reduction.reduce({ toJSON: () => body }), expected);
  }
});

test("a body that is changed during its pass", async () => {
  const body = { messages: conversation() };
  const passing = Reduction.inDir(folder(), early).session("chat-42").reduce(body);
  body.messages.unshift({ role: "user", content: "quickly" });
  const { messages } = await passing;
  assert.deepEqual(messages.map(({ role }) => role), conversation().map(({ role }) => role));
});

test("a sealed array is refused where a join would shorten it", async () => {
  const reduction = Reduction.inDir(folder(), early);
  const sealed = Object.seal(conversation());
  await reduction.beforeModel(sealed);
  assert.match(sealed[2].content, /^\[offcut\/1 cleared/);
  const both = [calls.anthropic, { ...calls.anthropic, id: "call_2" }];
  const results = both.map(({ id }) => ({ role: "user", content: [{ type: "tool_result", tool_use_id: id, content: "fine" }] }));
  const messages = Object.seal([{ role: "user", content: "go" }, { role: "assistant", content: both }, ...results]);
  const before = [...messages];
  await reduction.clear(messages);
  await assert.rejects(reduction.beforeModel(messages), /not frozen or sealed/);
  assert.deepEqual([...messages], before);
});

test("big integers and what is around itself", async () => {
  const around = { n: 5n };
  around.self = around;
  const reduction = Reduction.inDir(folder(), early);
  const call = { id: "call_1", name: "grep", arguments: around };
  assert.equal((await reduction.wrapToolCall(call, () => "fine", { format: "openai-chat" })).content, "fine");
  assert.match(await reduction.truncate(LONG, { tool: "grep", args: around }), /^\[offcut/);
  const messages = conversation().map((message) => ({ ...message, around }));
  const { decisions } = await reduction.beforeModel(messages, { tools: [around] });
  assert.ok(decisions.some(({ outcome }) => outcome === "cleared") && messages.every((message) => message.around === around));
  around.n = 5;
  const state = new State({ dialect: "openarmature", fields: [{ name: "a" }] });
  assert.throws(() => state.apply({ a: around }), { name: "TypeError", message: /`a.self` can't be circular/ });
});

test("half of a surrogate pair is refused in a state", async () => {
  const told = { name: "TypeError", message: "a text has half of a surrogate pair: replace it" };
  const schema = { dialect: "openarmature", fields: [{ name: "a" }] };
  const state = new State(schema);
  for (const a of ["\ud83d", "\ude00 x", ["x", { y: "\ud83d" }], { "\ud83d": 1 }]) {
    assert.throws(() => state.apply({ a }), told);
    assert.throws(() => new State(schema, { a }), told);
    const notes = { notes: a, other: "\ud83d" };
    const node = { promptTemplate: "Sum up: {notes}", inputKeys: ["notes"] };
    await assert.rejects(Reduction.inDir(folder()).condense(notes, () => assert.fail("it asks no model"), node), told);
    assert.deepEqual(notes, { notes: a, other: "\ud83d" });
  }
  assert.deepEqual(state.apply({ a: "😀" }), { a: "😀" });
});

test("half of a surrogate pair is a replacement character", async () => {
  const half = `${LONG}\ud83d`;
  const reduction = Reduction.inDir(folder(), early);
  const rows = Array.from({ length: 2000 }, (_, id) => ({ id, text: "a \ud83d" }));
  assert.match(await reduction.truncate(rows, { tool: "rows" }), /\[2000 records\]/);
  assert.match((await reduction.page({ path: "x\ud83d" })).text, /copy it exactly from a hint/);

  const [first, ...rest] = conversation();
  const messages = [{ ...first, content: half, name: "\ud83d" }, ...rest.map((message) => ({ ...message, name: "\ud83d" }))];
  const body = { messages: [...messages] };
  await reduction.beforeModel(messages, { tools: [{ name: "t", description: half }] });
  assert.equal(messages[0], body.messages[0]);
  assert.match(messages[2].content, /^\[offcut\/1 cleared/);
  assert.ok(messages.every(({ name }) => name === "\ud83d"));
  const reduced = await reduction.reduce(body);
  assert.equal(reduced.messages[0], body.messages[0]);
  assert.match(reduced.messages[2].content, /^\[offcut\/1 cleared/);
});

test("mistakes are told with a cure", async () => {
  assert.throws(() => Reduction.inDir(folder(), { max_length_for_trunk: 8 }), /max_length_for_trunc/);
  assert.throws(() => new Reduction({}), SettingsError);
  assert.throws(() => new Reduction(), { name: "SettingsError", message: /^settings must be/ });
  assert.ok(new SettingsError("x") instanceof OffcutError);
  const reduction = Reduction.inDir(folder());
  await assert.rejects(reduction.beforeModel([{ a: 1 }]), { name: "TypeError", message: /no known format fits/ });
  await assert.rejects(reduction.beforeModel([{ role: "user", content: "x" }], { format: "openai" }), /"openai-chat"/);
  const ofOpenai = { role: "tool", tool_call_id: "a", content: "x" };
  await assert.rejects(reduction.beforeModel([ofOpenai], { format: "anthropic" }), /calls of openai-chat, and `format` is anthropic/);
  await assert.rejects(reduction.wrapToolCall({ a: 1 }, () => "x"), /as the provider writes it/);
  await assert.rejects(reduction.wrapToolCall(calls.anthropic, "x"), { name: "TypeError", message: /`run` must be a function, not String/ });
  await assert.rejects(reduction.truncate("x"), { name: "TypeError", message: /`truncate` needs the tool's name/ });
  assert.throws(() => Reduction.inDir(folder(), { onReport: 5 }), { name: "TypeError", message: /`onReport` must be a function/ });
  for (const wrong of [() => reduction.session(42), () => reduction.session(""), () => reduction.tool()]) assert.throws(wrong, TypeError);
  await assert.rejects(reduction.original(5), TypeError);
  const fields = [{ name: "a" }];
  for (const a of [new Map([["x", 1]]), () => 1]) {
    assert.throws(() => new State({ dialect: "openarmature", fields }).apply({ a }), { name: "TypeError", message: /the field `a` can't be / });
  }
  await assert.rejects(reduction.condense({}, () => null, { promptTemplate: "x" }), { name: "TypeError", message: /no answer/ });
});

test("a URL of a file is its path", async () => {
  const path = join(folder(), "my ägent");
  await Reduction.inDir(pathToFileURL(path)).truncate(LONG, { tool: "grep", callId: "c1" });
  assert.ok(existsSync(path));
});

test("an option that JSON can't say is refused by its name", () => {
  const of = (settings) => () => Reduction.inDir(folder(), settings);
  const all = [
    [{ trunc_handler: () => "x" }, /`trunc_handler` is a function: .* for Rust, and here only `onReport`/],
    [{ tool_config: { grep: { preview_with() {} } } }, /`tool_config.grep.preview_with` is a function/],
    [{ trunc_exclude_tools: new Set(["grep"]) }, /`trunc_exclude_tools` can't be Set/],
    [{ tool_config: new Map() }, /`tool_config` can't be Map/],
    [{ max_length_for_trunc: NaN }, /`max_length_for_trunc` can't be NaN/],
    [{ max_length_for_trunc: 5000n }, /`max_length_for_trunc` can't be BigInt/],
    [{ backend: "x" }, /takes no `backend`/],
  ];
  for (const [settings, message] of all) assert.throws(of(settings), { name: "TypeError", message });
  assert.throws(of({ max_length_for_trunk: 8 }), { name: "SettingsError", message: /^`max_length_for_trunk`: unknown/ });
  assert.ok(new Reduction({ backend: pathToFileURL(folder()) }));
  const absent = { preset: undefined, backend: undefined, max_tokens_for_clear: undefined, tool_config: { grep: undefined } };
  assert.equal(Reduction.inDir(folder(), absent).readerName, "read_file");
});

test("a module of one's own that can't be loaded is told by its name", () => {
  const env = { ...process.env, OFFCUT_MODULE: "/nowhere/offcut.node" };
  const path = createRequire(import.meta.url).resolve("offcut");
  const { stderr } = spawnSync(process.execPath, ["-e", `require(${JSON.stringify(path)})`], { env });
  assert.match(String(stderr), /OffcutError: OFFCUT_MODULE names no module of Offcut: \/nowhere\/offcut.node/);
});

test("a reader without a name is not defined", () => {
  const reduction = Reduction.inDir(folder(), { read_file_tool_name: false });
  assert.equal(reduction.readerName, null);
  assert.throws(() => reduction.tool("anthropic"), { name: "SettingsError", message: /`read_file_tool_name` is false/ });
});

test("a store that fails is a warning", async () => {
  const path = folder();
  const told = [];
  const [silent, reporting] = [Reduction.inDir(path), Reduction.inDir(path, { onReport: (report) => told.push(report) })];
  rmSync(path, { recursive: true, force: true });
  writeFileSync(path, "in the way");
  const warned = once(process, "warning");
  assert.equal(await reporting.truncate(LONG, { tool: "grep", callId: "c1" }), LONG);
  assert.equal(await silent.truncate(LONG, { tool: "grep", callId: "c2" }), LONG);
  assert.match((await warned)[0].message, /^offcut: .*c2/);
  assert.ok(told[0].decisions[0].error);
});

test("an observer that rejects is a warning", async () => {
  const onReport = async () => { throw new Error("mine"); };
  const warned = once(process, "warning");
  await Reduction.inDir(folder(), { onReport }).truncate(LONG, { tool: "grep", callId: "c1" });
  assert.match((await warned)[0].message, /onReport has thrown Error: mine/);
});

const foreign = {
  LangChain: { type: "tool", tool_call_id: "c", content: LONG },
  "pydantic-ai": { kind: "request", parts: [{ part_kind: "tool-return", tool_name: "t", content: LONG }] },
  "AI SDK ModelMessages": { role: "tool", content: [{ type: "tool-result", toolCallId: "c", output: { type: "text", value: LONG } }] },
  "AI SDK UIMessages": { id: "1", role: "assistant", parts: [{ type: "tool-t", toolCallId: "c", output: LONG }] },
};

for (const [name, message] of Object.entries(foreign)) {
  test(`a framework's messages are refused by name: ${name}`, async () => {
    const reduction = Reduction.inDir(folder());
    const told = { name: "TypeError", message: new RegExp(`${name}.*use the adapter`) };
    for (const format of [undefined, "openai-chat"]) {
      await assert.rejects(reduction.beforeModel([{ role: "user", content: "hi" }, message], { format }), told);
      await assert.rejects(reduction.reduce({ messages: [message] }, { format }), told);
    }
  });
}

test("the README's block runs", async () => {
  const page = readFileSync(join(process.env.OFFCUT_PAGES, "../README.md"), "utf8");
  const block = /^```ts\n([^]*?)^```/m.exec(page)[1].replace(/^import .*$/m, "").replace('".offcut"', "path");
  const messages = [{ role: "user", content: "go" }];
  const names = { Reduction, path: folder(), myTools: [], messages, call: calls["openai-chat"], run: () => "fine" };
  await new (async () => {}).constructor(...Object.keys(names), block)(...Object.values(names));
  assert.equal(messages.at(-1).content, "fine");
});

test("what is known of a turn counts", async () => {
  const settings = { max_tokens_for_clear: 6000, clear_at_least_tokens: 0 };
  const passed = async (turn) => {
    const { decisions } = await Reduction.inDir(folder(), settings).beforeModel(conversation(), turn);
    return decisions.filter((one) => one.outcome === "cleared").length;
  };
  assert.equal(await passed({}), 0);
  assert.ok((await passed({ isCold: true })) > 0);
  assert.equal(await passed({ isTooLong: true }), 5);
  assert.ok((await passed({ lastUsage: 9000 })) > 0);
  const body = { messages: conversation() };
  const reduction = Reduction.inDir(folder(), settings).session("chat-42");
  assert.equal(await reduction.reduce(body), body);
  assert.match(JSON.stringify(await reduction.reduce(body, { isTooLong: true })), /offcut\/1 cleared/);
});

test("rows are not parts", async () => {
  const reduction = Reduction.inDir(folder());
  const rows = [{ type: "file", name: "a.rs", url: "https://example.org/a.rs" }];
  assert.equal((await reduction.wrapToolCall(calls["openai-chat"], () => rows)).content, JSON.stringify(rows));
});

test("results that JSON has no words for", async () => {
  const reduction = Reduction.inDir(folder());
  const shown = async (run) => (await reduction.wrapToolCall(calls.anthropic, run)).content[0];
  assert.equal((await shown(() => "a \ud83d b")).content, "a \ufffd b");
  assert.equal((await shown(() => "\\ud83d 😀")).content, "\\ud83d 😀");
  assert.equal((await shown(() => ({ n: 2n }))).content, '{"n":"2"}');
  assert.equal((await shown(() => new Map([["a", 1]]))).content, '[["a",1]]');
  assert.equal((await shown(() => ({ m: new Map([["a", 1]]), e: new RangeError("x") }))).content, '{"m":[["a",1]],"e":"RangeError: x"}');
  assert.equal((await shown(() => new Uint8Array([104, 105]).buffer)).content, "hi");
  const unsaid = [new Response("x"), new Blob(["x"]), Readable.from(["x"]), (async function* () {})(), (function* () {})(), () => 1, { a: Buffer.from("x") }];
  for (const one of unsaid) {
    const { content, is_error } = await shown(() => one);
    assert.ok(is_error && content.startsWith("TypeError: no JSON says a "), content);
    await assert.rejects(reduction.truncate(one, { tool: "t" }), /a tool may return text, bytes/);
  }
  assert.match((await shown(() => { throw new Blob(["x"]); })).content, /Blob/);
  const circular = {};
  circular.self = circular;
  assert.ok((await shown(() => circular)).is_error);
  assert.equal((await shown(() => { throw { code: 5 }; })).content, '{"code":5}');
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  const loud = { toJSON() { throw proxy; }, toString() { throw proxy; }, get [Symbol.toStringTag]() { throw proxy; } };
  const bare = Object.assign(Object.create(null), { circular });
  const unnamed = Object.assign(new Error("x"), { name: Symbol("x") });
  for (const thrown of [bare, unnamed, proxy, loud]) {
    assert.ok((await shown(() => { throw thrown; })).is_error);
    assert.ok((await shown(() => ({ toJSON() { throw thrown; } }))).is_error);
  }
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

test("messages changed during a pass stay", async () => {
  const reduction = Reduction.inDir(folder(), early);
  const messages = conversation();
  const passing = reduction.beforeModel(messages);
  const edited = { role: "user", content: "stop" };
  messages.splice(0, 1, edited);
  const now = [...messages];
  await passing;
  assert.deepEqual(messages, now);
  await assert.rejects(reduction.beforeModel(Object.freeze(conversation())), /not frozen or sealed/);
  const state = { notes: ["a"] };
  const model = async () => state.notes.push("b") && "both";
  const condensed = reduction.condense(state, model, { promptTemplate: "Sum up: {notes}", inputKeys: ["notes"] });
  await assert.rejects(condensed, /changed while the model wrote/);
  assert.deepEqual(state, { notes: ["a", "b"] });
});

test("the cases of state that all languages run", async () => {
  const cases = JSON.parse(readFileSync(process.env.OFFCUT_STATE_CASES, "utf8"));
  assert.ok(cases.length > 20);
  for (const { about, schema, node, state: value, updates, prompt, answer, after, error } of cases) {
    const run = async () => {
      if (!node) return new State(schema, value).apply(...updates);
      const [state, asked] = [{ ...value }, []];
      const names = { promptTemplate: node.prompt_template, inputKeys: node.input_keys, outputKey: node.output_key };
      const model = async (one) => (asked.push(one), answer);
      try {
        await Reduction.inDir(folder()).condense(state, model, { ...names, namesOriginals: false });
      } catch (error) {
        assert.deepEqual(state, value, about);
        throw error;
      } finally {
        assert.deepEqual(asked, prompt === undefined ? [] : [prompt], about);
      }
      return state;
    };
    if (after) assert.deepEqual(await run(), after, about);
    else await assert.rejects(run, (thrown) => thrown.message.startsWith(error), about);
  }
});

test("a condensed value names its originals", async () => {
  const reduction = Reduction.inDir(folder());
  const state = { notes: "a long story" };
  const options = { promptTemplate: "Sum up: {notes}", inputKeys: ["notes"], outputKey: "sum" };
  const { stored } = await reduction.condense(state, (prompt) => prompt.slice(-5), options);
  assert.deepEqual(state, { sum: `story\n\n[originals: notes at ${stored[0][1]}]` });
  assert.equal(Buffer.from(await reduction.original(stored[0][1])).toString(), "a long story");
});
