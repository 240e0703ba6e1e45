// Agents of each framework, against a provider on loopback: the same answer, from what is read back.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { Reduction } from "offcut";

const folder = () => join(mkdtempSync(join(tmpdir(), "offcut-")), "store");
const { resolve } = createRequire(import.meta.url);
const has = (name) => {
  try {
    return resolve(name) !== undefined;
  } catch {
    return false;
  }
};
const LOG = Array.from({ length: 3000 }, (_, nth) => `${nth}: a line of the log\n`).join("") + "the leak is in pool.rs\n" + "an end\n".repeat(2000);
const part = (nth) => `part ${nth}\n${LOG.slice(0, 9000)}`;
const early = { max_tokens_for_clear: 3000, clear_at_least_tokens: 0, preview_above: 100_000, max_length_for_trunc: 200_000 };
const schema = { type: "object", properties: { nth: { type: "integer" } } };

/** Runs `work` against a provider whose model calls its tool as many times, or follows a script. Returns the bodies that it was sent. */
async function provider(rounds, work) {
  const server = spawn("python3", [join(import.meta.dirname, "provider.py"), JSON.stringify(rounds)], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: server.stdout })[Symbol.asyncIterator]();
  const { value: url } = await lines.next();
  try {
    await work(url);
  } finally {
    server.stdin.end();
  }
  const { value: bodies } = await lines.next();
  await once(server, "exit");
  return JSON.parse(bodies);
}

/** The model read what was stored, and was never sent all of it. */
function check(bodies, rounds) {
  const lengths = bodies.map((body) => body.length);
  assert.equal(lengths.length, rounds + 2);
  assert.ok(Math.max(...lengths) < (rounds > 1 ? 45_000 : 20_000), String(lengths));
}

for (const way of ["generate", "stream"]) {
  for (const rounds of [1, 6]) {
    test(`AI SDK, ${way}, ${rounds} rounds`, { skip: !has("ai") }, async () => {
      const { generateText, jsonSchema, stepCountIs, streamText, tool, wrapLanguageModel } = await import("ai");
      const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
      const { offcutMiddleware, reader } = await import("offcut/ai-sdk");
      const reduction = Reduction.inDir(folder(), rounds > 1 ? early : {}).session("chat-42");
      const bodies = await provider(rounds, async (url) => {
        const model = wrapLanguageModel({ model: createOpenAICompatible({ name: "p", baseURL: `${url}/v1`, apiKey: "k" })("m"), middleware: offcutMiddleware(reduction) });
        const logs = tool({ description: "Returns the log.", inputSchema: jsonSchema(schema), execute: ({ nth }) => (rounds > 1 ? part(nth) : LOG) });
        const options = { model, prompt: "Where is the leak?", tools: { logs, ...reader(reduction) }, stopWhen: stepCountIs(20) };
        const text = way === "stream" ? await streamText(options).text : (await generateText(options)).text;
        assert.match(text, rounds > 1 ? /It says/ : /the leak is in pool.rs/);
      });
      check(bodies, rounds);
    });
  }
}

for (const rounds of [1, 6]) {
  test(`LangChain, ${rounds} rounds`, { skip: !has("langchain") }, async () => {
    const { createAgent, tool } = await import("langchain");
    const { ChatOpenAI } = await import("@langchain/openai");
    const { offcutMiddleware } = await import("offcut/langchain");
    const reduction = Reduction.inDir(folder(), rounds > 1 ? early : {});
    const bodies = await provider(rounds, async (url) => {
      const model = new ChatOpenAI({ model: "m", apiKey: "k", configuration: { baseURL: `${url}/v1` } });
      const logs = tool(({ nth }) => (rounds > 1 ? part(nth) : LOG), { name: "logs", description: "Returns the log.", schema });
      const agent = createAgent({ model, tools: [logs], middleware: [offcutMiddleware(reduction)] });
      const state = await agent.invoke({ messages: [{ role: "user", content: "Where is the leak?" }] });
      assert.match(state.messages.at(-1).text, rounds > 1 ? /It says/ : /the leak is in pool.rs/);
      const ids = state.messages.map((message) => message.id);
      assert.equal(new Set(ids).size, 2 + 2 * (rounds + 1));
      const cleared = state.messages.filter((message) => message.type === "tool" && message.text.startsWith("[offcut/1 cleared"));
      assert.ok(rounds === 1 || cleared.length >= 3, String(cleared.length));
    });
    check(bodies, rounds);
  });
}

test("LangChain, a tool that throws", { skip: !has("langchain") }, async () => {
  const { createAgent, tool } = await import("langchain");
  const { ChatOpenAI } = await import("@langchain/openai");
  const { offcutMiddleware } = await import("offcut/langchain");
  await provider(1, async (url) => {
    const model = new ChatOpenAI({ model: "m", apiKey: "k", configuration: { baseURL: `${url}/v1` } });
    const logs = tool(() => { throw new Error("no log"); }, { name: "logs", description: "Returns the log.", schema });
    const agent = createAgent({ model, tools: [logs], middleware: [offcutMiddleware(Reduction.inDir(folder()))] });
    const state = await agent.invoke({ messages: [{ role: "user", content: "Where is the leak?" }] });
    assert.match(state.messages[2].text, /no log/);
    assert.equal(state.messages[2].status, "error");
  });
});

// The examples of the page for TypeScript, as they stand there.
const page = readFileSync(join(process.env.OFFCUT_PAGES, "typescript.md"), "utf8");
const blocks = [...page.matchAll(/^```ts\n([^]*?)^```/gm)].map(([, block]) => block);

test("the page has its examples", () => assert.equal(blocks.length, 3));

for (const [nth, block] of blocks.entries()) {
  const wanted = [...block.matchAll(/from "([^"]+)"/g)].map(([, name]) => name).filter((name) => !has(name));
  test(`example ${nth + 1} runs`, { skip: wanted.length > 0 || !has("typescript") }, async () => {
    // Types are erased, and checked by the compiler elsewhere.
    const name = `example-${nth + 1}`;
    writeFileSync(join(import.meta.dirname, `${name}.mts`), block);
    const bodies = await provider(1, async (url) => {
      const env = { ...process.env, OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: "a key" };
      const cwd = mkdtempSync(join(tmpdir(), "offcut-"));
      const tsc = join(import.meta.dirname, "../node_modules/.bin/tsc");
      const options = ["--strict", "--skipLibCheck", "--module", "node20", "--types", "node"];
      const compiled = spawn(tsc, [...options, `tests/${name}.mts`], { cwd: join(import.meta.dirname, ".."), stdio: "inherit" });
      assert.equal((await once(compiled, "exit"))[0], 0);
      const ran = spawn(process.execPath, [join(import.meta.dirname, `${name}.mjs`)], { cwd, env, stdio: ["ignore", "pipe", "inherit"] });
      let shown = "";
      for await (const data of ran.stdout) shown += data;
      assert.match(shown, /the leak is in pool.rs/);
    });
    check(bodies, 1);
  });
}
