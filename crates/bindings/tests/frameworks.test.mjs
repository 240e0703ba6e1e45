// Agents of each framework, against a provider on loopback: the same answer, from what is read back.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
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

test("AI SDK, what JSON has no words for", { skip: !has("ai") }, async () => {
  const { offcutMiddleware } = await import("offcut/ai-sdk");
  const { transformParams } = offcutMiddleware(Reduction.inDir(folder()));
  const around = { a: 1 };
  around.self = around;
  const call = { type: "tool-call", toolCallId: "c", toolName: "t", input: { n: 5n } };
  for (const value of [{ id: 5n }, around]) {
    const result = { type: "tool-result", toolCallId: "c", toolName: "t", output: { type: "json", value } };
    const prompt = [{ role: "assistant", content: [call] }, { role: "tool", content: [result] }];
    assert.deepEqual((await transformParams({ params: { prompt } })).prompt, prompt);
  }
});

test("AI SDK, long arguments of calls", { skip: !has("ai") }, async () => {
  const { offcutMiddleware } = await import("offcut/ai-sdk");
  const sent = async (providerOptions, ...thoughts) => {
    const { transformParams } = offcutMiddleware(Reduction.inDir(folder(), { ...early, clear_tool_inputs_above: 800 }));
    const prompt = [{ role: "system", content: "half of a pair \ud83d" }, { role: "user", content: [{ type: "text", text: "go" }] }];
    for (let nth = 0; nth < 4; nth += 1) {
      const call = { type: "tool-call", toolCallId: `c${nth}`, toolName: "write", input: { path: "p", body: LOG }, providerOptions };
      const result = { type: "tool-result", toolCallId: `c${nth}`, toolName: "write", output: { type: "text", value: "done" } };
      prompt.push({ role: "assistant", content: [...thoughts, call] }, { role: "tool", content: [result] });
    }
    const { prompt: after } = await transformParams({ params: { prompt } });
    const { body } = after[2].content.at(-1).input;
    const whole = after.map(({ content, ...message }) => {
      const parts = (part) => (part.type === "tool-call" ? { ...part, input: { ...part.input, body: LOG } } : part);
      return { ...message, content: Array.isArray(content) ? content.map(parts) : content };
    });
    assert.deepEqual(whole, prompt);
    return body;
  };
  const direct = { caller: { type: "direct", toolId: undefined } };
  for (const own of [{ itemId: "fc_1" }, { cacheControl: { type: "ephemeral" } }, direct, undefined]) {
    assert.match(await sent({ p: own }), /^\[offcut\/1 cleared/);
    assert.equal(await sent({ p: own }, { type: "reasoning", text: "hm" }), LOG);
  }
  const byProgram = { caller: { type: "code_execution_20250825" } };
  for (const own of [{ itemId: "fc_1", thoughtSignature: "s" }, { itemId: "sh_1" }, byProgram]) {
    assert.equal(await sent({ p: own }), LOG);
  }
});

for (const outputVersion of ["v0", "v1"]) {
  test(`LangChain, long arguments of calls over Responses, ${outputVersion}`, { skip: !has("langchain") }, async () => {
    const { createAgent, tool } = await import("langchain");
    const { ChatOpenAI } = await import("@langchain/openai");
    const { offcutMiddleware } = await import("offcut/langchain");
    const call = (id) => [id, "write", { path: id, body: part(id) }];
    const script = [1, 2, 3, 4].map((nth) => [call(`call_${nth}a`), call(`call_${nth}b`)]);
    const sent = async (middleware) => {
      const bodies = await provider([...script, "done"], async (url) => {
        const options = { useResponsesApi: true, outputVersion, configuration: { baseURL: `${url}/v1` } };
        const model = new ChatOpenAI({ model: "m", apiKey: "k", ...options });
        const write = tool(() => "done", { name: "write", description: "Writes.", schema: { type: "object", properties: {} } });
        await createAgent({ model, tools: [write], middleware }).invoke({ messages: [{ role: "user", content: "go" }] });
      });
      return JSON.parse(bodies.at(-1)).input;
    };
    const reduction = Reduction.inDir(folder(), { ...early, clear_tool_inputs_above: 800 });
    const [whole, shown] = [await sent([]), await sent([offcutMiddleware(reduction)])];
    const texts = ({ arguments: text, ...item }) => (text === undefined ? item : { ...item, path: JSON.parse(text).path });
    assert.deepEqual(shown.map(texts), whole.map(texts));
    const calls = shown.filter(({ type }) => type === "function_call").map((item) => JSON.parse(item.arguments).body);
    assert.deepEqual(calls.map((body) => body.startsWith("[offcut/1 cleared")), [...Array(6).fill(true), false, false]);
  });
}

test("LangChain, calls are signed beside thoughts alone", { skip: !has("langchain") }, async () => {
  const { AIMessage, HumanMessage, ToolMessage } = await import("langchain");
  const { offcutMiddleware } = await import("offcut/langchain");
  const sent = async (extras) => {
    const messages = [new HumanMessage({ id: "u", content: "go" })];
    for (let nth = 0; nth < 4; nth += 1) {
      const call = { type: "tool_call", id: `c${nth}`, name: "write", args: { path: "p", body: LOG } };
      messages.push(new AIMessage({ content: [{ ...call, extras }], tool_calls: [call] }));
      messages.push(new ToolMessage({ tool_call_id: call.id, content: "done" }));
    }
    const reduction = Reduction.inDir(folder(), { ...early, clear_tool_inputs_above: 800 });
    const update = await offcutMiddleware(reduction).beforeModel({ messages });
    return (update?.messages ?? messages.slice(1))[0].content[0].args.body;
  };
  for (const extras of [undefined, null, {}, { item_id: "fc_c", status: "completed", namespace: "n", async: true }]) {
    assert.match(await sent(extras), /^\[offcut\/1 cleared/);
  }
  assert.equal(await sent({ item_id: "fc_c", signature: "s" }), LOG);
});

const LONG = "a line of a file\n".repeat(900);
const ofUsers = { max_tokens_for_clear: 2000, clear_at_least_tokens: 0, clear_user_texts_above: 2000 };

test("AI SDK, a long text of a user", { skip: !has("ai") }, async () => {
  const { offcutMiddleware } = await import("offcut/ai-sdk");
  const { transformParams } = offcutMiddleware(Reduction.inDir(folder(), ofUsers));
  const file = { type: "file", mediaType: "image/png", data: "aGk=" };
  const said = ["look", LONG].map((text) => ({ type: "text", text }));
  const rest = ["assistant", "user", "assistant", "user"].map((role) => ({ role, content: [{ type: "text", text: "go on" }] }));
  const { prompt } = await transformParams({ params: { prompt: [{ role: "user", content: [...said, file] }, ...rest] } });
  const [look, shown, kept] = prompt[0].content;
  assert.match(shown.text, /^\[offcut\/1 cleared/);
  assert.deepEqual([look, kept, ...prompt.slice(1)], [said[0], file, ...rest]);
});

test("LangChain, a long text of a user and an image", { skip: !has("langchain") }, async () => {
  const { AIMessage, HumanMessage, ToolMessage } = await import("langchain");
  const { offcutMiddleware } = await import("offcut/langchain");
  const reduction = Reduction.inDir(folder(), ofUsers);
  const messages = [new HumanMessage({ id: "u", content: LONG })];
  for (let nth = 0; nth < 6; nth += 1) {
    messages.push(new AIMessage({ content: "", tool_calls: [{ id: `c${nth}`, name: "t", args: {} }] }));
    const image = { type: "image", mimeType: "image/png", data: "aGk=" };
    messages.push(new ToolMessage({ tool_call_id: `c${nth}`, content: nth > 0 ? LONG : [image, { type: "text", text: LONG }] }));
  }
  const { messages: changed } = await offcutMiddleware(reduction).beforeModel({ messages });
  const text = ({ content }) => (typeof content === "string" ? content : content.map((block) => block.text).join(""));
  assert.match(text(changed.find(({ id }) => id === "u")), /^\[offcut\/1 cleared/);
  const hint = text(changed.find((message) => message.tool_call_id === "c0"));
  const path = JSON.parse(hint.match(/"[^"]+\.png"/)[0]);
  const { content } = await reduction.answer({ id: "r", name: "read_file", args: { path } });
  assert.equal(content[0].image_url.url, "data:image/png;base64,aGk=");
});

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

test("LangChain, a tool that returns a command", { skip: !has("langchain") }, async () => {
  const { createAgent, tool, ToolMessage } = await import("langchain");
  const { Command } = await import("@langchain/langgraph");
  const { ChatOpenAI } = await import("@langchain/openai");
  const { offcutMiddleware } = await import("offcut/langchain");
  const bodies = await provider(1, async (url) => {
    const model = new ChatOpenAI({ model: "m", apiKey: "k", configuration: { baseURL: `${url}/v1` } });
    const logs = tool((_, config) => {
      const message = new ToolMessage({ content: LOG, tool_call_id: config.toolCall.id, name: "logs" });
      return new Command({ update: { messages: [message] } });
    }, { name: "logs", description: "Returns the log.", schema });
    const agent = createAgent({ model, tools: [logs], middleware: [offcutMiddleware(Reduction.inDir(folder()))] });
    const state = await agent.invoke({ messages: [{ role: "user", content: "Where is the leak?" }] });
    assert.match(state.messages.at(-1).text, /the leak is in pool.rs/);
  });
  check(bodies, 1);
});

test("LangChain, messages of a command that are objects", { skip: !has("langchain") }, async () => {
  const { HumanMessage, ToolMessage } = await import("langchain");
  const { Command } = await import("@langchain/langgraph");
  const { offcutMiddleware } = await import("offcut/langchain");
  const { wrapToolCall } = offcutMiddleware(Reduction.inDir(folder()));
  const toolCall = { id: "c1", name: "logs", args: {}, type: "tool_call" };
  const fields = { content: LOG, tool_call_id: "c1" };
  const others = [new HumanMessage(LOG), { role: "user", content: LOG }];
  for (const one of [new ToolMessage(fields), { role: "tool", ...fields }, { type: "tool", ...fields }]) {
    const { update } = await wrapToolCall({ toolCall }, () => new Command({ update: { messages: [one, ...others], n: 1 } }));
    const [message, ...rest] = update.messages;
    assert.ok(ToolMessage.isInstance(message) && message.tool_call_id === "c1");
    assert.match(message.content, /^\[offcut\/1 truncated/);
    assert.ok(rest.every((other, nth) => other === others[nth]) && rest.length === 2 && update.n === 1);
  }
});

test("LangChain, the reader marks its errors", { skip: !has("langchain") }, async () => {
  const { offcutMiddleware, reader } = await import("offcut/langchain");
  const reduction = Reduction.inDir(folder());
  const [, path] = (await reduction.truncate(LOG, { tool: "logs" })).split('"');
  const read = reader(reduction);
  for (const [args, status] of [[{ path }, "success"], [{ path, limit: 0 }, "error"], [{ path: "nowhere" }, "error"]]) {
    const toolCall = { id: "c2", name: "read_file", args, type: "tool_call" };
    const message = await offcutMiddleware(reduction).wrapToolCall({ toolCall }, () => read.invoke(toolCall));
    assert.deepEqual([message.status, message.tool_call_id, message.name], [status, "c2", "read_file"]);
  }
  assert.match(await read.invoke({ path: "nowhere" }), /copy it exactly from a hint/);
});

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

for (const way of ["generate", "stream"]) {
  for (const rounds of [1, 6]) {
    test(`Mastra, ${way}, ${rounds} rounds`, { skip: !has("@mastra/core/agent") }, async () => {
      const { Agent } = await import("@mastra/core/agent");
      const { createTool } = await import("@mastra/core/tools");
      const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
      const { offcutProcessor, reader } = await import("offcut/mastra");
      const reduction = Reduction.inDir(folder(), rounds > 1 ? early : {});
      const bodies = await provider(rounds, async (url) => {
        const model = createOpenAICompatible({ name: "p", baseURL: `${url}/v1`, apiKey: "k" })("m");
        const execute = async ({ nth }) => (rounds > 1 ? part(nth) : LOG);
        const logs = createTool({ id: "logs", description: "Returns the log.", inputSchema: schema, execute });
        const tools = { logs, ...reader(reduction) };
        const agent = new Agent({ id: "a", name: "a", instructions: "Look.", model, tools, inputProcessors: [offcutProcessor(reduction)] });
        const text = await (await agent[way]("Where is the leak?", { maxSteps: 20 })).text;
        assert.match(text, rounds > 1 ? /It says/ : /the leak is in pool.rs/);
      });
      check(bodies, rounds);
    });

    test(`Anthropic's SDK, ${way}, ${rounds} rounds`, { skip: !has("@anthropic-ai/sdk") }, async () => {
      const { default: Anthropic } = await import("@anthropic-ai/sdk");
      const { betaTool } = await import("@anthropic-ai/sdk/helpers/beta/json-schema");
      const { offcutMiddleware, reader } = await import("offcut/anthropic");
      const reduction = Reduction.inDir(folder(), rounds > 1 ? early : {}).session("chat-42");
      const bodies = await provider(rounds, async (baseURL) => {
        const client = new Anthropic({ baseURL, apiKey: "k", middleware: [offcutMiddleware(reduction)] });
        const run = ({ nth }) => (rounds > 1 ? part(nth) : LOG);
        const logs = betaTool({ name: "logs", description: "Returns the log.", inputSchema: schema, run });
        const messages = [{ role: "user", content: "Where is the leak?" }];
        const options = { model: "m", max_tokens: 99, messages, tools: [logs, reader(reduction)], stream: way === "stream" };
        const { content } = await client.beta.messages.toolRunner(options).runUntilDone();
        assert.match(content[0].text, rounds > 1 ? /It says/ : /the leak is in pool.rs/);
      });
      check(bodies, rounds);
    });
  }
}

// Of some 4 000 tokens: as the description of a tool, and as instructions, which Anthropic's SDK has in a message here.
const WORDS = "Mind every word. ".repeat(1000);

/** A prompt in each framework, with both texts, and the module that it needs. */
const asks = {
  "AI SDK": ["ai", async (url, reduction) => {
    const { generateText, jsonSchema, stepCountIs, tool, wrapLanguageModel } = await import("ai");
    const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
    const { offcutMiddleware, reader } = await import("offcut/ai-sdk");
    const provided = createOpenAICompatible({ name: "p", baseURL: `${url}/v1`, apiKey: "k" })("m");
    const model = wrapLanguageModel({ model: provided, middleware: offcutMiddleware(reduction) });
    const noted = tool({ description: WORDS, inputSchema: jsonSchema(schema), execute: () => "short" });
    await generateText({ model, system: WORDS, prompt: "go", tools: { noted, ...reader(reduction) }, stopWhen: stepCountIs(9) });
  }],
  LangChain: ["langchain", async (url, reduction) => {
    const { createAgent, tool } = await import("langchain");
    const { ChatOpenAI } = await import("@langchain/openai");
    const { offcutMiddleware } = await import("offcut/langchain");
    const model = new ChatOpenAI({ model: "m", apiKey: "k", configuration: { baseURL: `${url}/v1` } });
    const noted = tool(() => "short", { name: "noted", description: WORDS, schema });
    const agent = createAgent({ model, tools: [noted], systemPrompt: WORDS, middleware: [offcutMiddleware(reduction)] });
    await agent.invoke({ messages: [{ role: "user", content: "go" }] });
  }],
  Mastra: ["@mastra/core/agent", async (url, reduction) => {
    const { Agent } = await import("@mastra/core/agent");
    const { createTool } = await import("@mastra/core/tools");
    const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
    const { offcutProcessor, reader } = await import("offcut/mastra");
    const model = createOpenAICompatible({ name: "p", baseURL: `${url}/v1`, apiKey: "k" })("m");
    const noted = createTool({ id: "noted", description: WORDS, inputSchema: schema, execute: async () => "short" });
    const idle = createTool({ id: "idle", description: WORDS, inputSchema: schema, execute: async () => "short" });
    const ours = { tools: { noted, idle, ...reader(reduction) }, inputProcessors: [offcutProcessor(reduction)] };
    const agent = new Agent({ id: "a", name: "a", instructions: WORDS, model, ...ours });
    await agent.generate("go", { maxSteps: 9, activeTools: ["noted", "read_file"] });
  }],
  "Anthropic's SDK": ["@anthropic-ai/sdk", async (baseURL, reduction) => {
    const { default: Anthropic } = await import("@anthropic-ai/sdk");
    const { betaTool } = await import("@anthropic-ai/sdk/helpers/beta/json-schema");
    const { offcutMiddleware, reader } = await import("offcut/anthropic");
    const client = new Anthropic({ baseURL, apiKey: "k", middleware: [offcutMiddleware(reduction)] });
    const noted = betaTool({ name: "noted", description: WORDS, inputSchema: schema, run: () => "short" });
    const messages = [{ role: "user", content: WORDS }];
    const options = { model: "m", max_tokens: 99, messages, tools: [noted, reader(reduction)] };
    await client.beta.messages.toolRunner(options).runUntilDone();
  }],
};

for (const [name, [module, ask]] of Object.entries(asks)) {
  test(`${name}, tools and instructions are counted`, { skip: !has(module) }, async () => {
    const counted = [];
    const onReport = ({ phase, tokens }) => phase === "clear" && counted.push(tokens.counted);
    const reduction = Reduction.inDir(folder(), { ...early, onReport });
    await provider([[["call_a", "noted", { nth: 1 }]], "Done."], (url) => ask(url, reduction));
    // Before the first request, LangChain's agent tells nothing of it.
    if (name === "LangChain") assert.ok(counted.shift() < 100);
    assert.ok(counted.length > 0 && counted.every((one) => one > 8000 && one < 10_000), String(counted));
  });
}

test("LangChain, agents may share a middleware", { skip: !has("langchain") }, async () => {
  const { createAgent, tool } = await import("langchain");
  const { ChatOpenAI } = await import("@langchain/openai");
  const { offcutMiddleware } = await import("offcut/langchain");
  const counted = [];
  const onReport = ({ phase, tokens }) => phase === "clear" && counted.push(tokens.counted);
  const middleware = [offcutMiddleware(Reduction.inDir(folder(), { ...early, onReport }))];
  await provider(["Fine.", [["call_a", "noted", { nth: 1 }]], "Done."], async (url) => {
    const model = new ChatOpenAI({ model: "m", apiKey: "k", configuration: { baseURL: `${url}/v1` } });
    const noted = tool(() => "short", { name: "noted", description: "Notes.", schema });
    for (const systemPrompt of [WORDS, "Look."]) {
      await createAgent({ model, tools: [noted], systemPrompt, middleware }).invoke({ messages: [{ role: "user", content: "go" }] });
    }
  });
  const [first, other, again] = counted;
  assert.ok(counted.length === 3 && first === other && other < 100 && again > 100 && again < 2000, String(counted));
});

test("Mastra, threads are told of the reader once", { skip: !has("@mastra/core/agent") }, async () => {
  const { offcutProcessor } = await import("offcut/mastra");
  const { RequestContext } = await import("@mastra/core/request-context");
  const told = [];
  const reduction = Reduction.inDir(folder(), { ...early, onReport: ({ notice }) => notice && told.push(notice) });
  const { processInputStep, processLLMRequest } = offcutProcessor(reduction);
  const prompt = [{ role: "user", content: [{ type: "text", text: "go" }] }];
  for (let nth = 0; nth < 6; nth += 1) {
    const call = { toolCallId: `c${nth}`, toolName: "logs" };
    prompt.push({ role: "assistant", content: [{ type: "tool-call", ...call, input: {} }] });
    prompt.push({ role: "tool", content: [{ type: "tool-result", ...call, output: { type: "text", value: part(nth) } }] });
  }
  for (const id of ["thread-1", "thread-1", "thread-2"]) {
    const requestContext = new RequestContext([["MastraMemory", { thread: { id } }]]);
    const state = {};
    processInputStep({ tools: { logs: { description: "Returns the log." } }, state });
    const { prompt: after } = await processLLMRequest({ prompt, requestContext, state });
    assert.match(after[2].content[0].output.value, /^\[offcut\/1 cleared/);
  }
  assert.equal(told.length, 1);
});

test("Anthropic's SDK, counts decide nothing", { skip: !has("@anthropic-ai/sdk") }, async () => {
  const { default: Anthropic } = await import("@anthropic-ai/sdk");
  const { offcutMiddleware } = await import("offcut/anthropic");
  const path = folder();
  const call = { type: "tool_use", id: "call_1", name: "logs", input: {} };
  const result = { type: "tool_result", tool_use_id: "call_1", content: LOG };
  const messages = [{ role: "user", content: "go" }, { role: "assistant", content: [call] }, { role: "user", content: [result] }];
  const body = { model: "m", messages };
  const stored = [];
  const bodies = await provider(Array(7).fill("Fine."), async (baseURL) => {
    const middleware = [offcutMiddleware(Reduction.inDir(path).session("chat-42"))];
    const client = new Anthropic({ baseURL, apiKey: "k", middleware });
    const counts = [
      () => client.messages.countTokens(body),
      () => client.beta.messages.countTokens({ ...body, betas: ["b"] }),
      () => client.post("/v1/messages/count_tokens?beta=true", { body }),
    ];
    for (const ask of [...counts, () => client.messages.create({ ...body, max_tokens: 9 }), ...counts]) {
      await ask();
      stored.push(readdirSync(dirname(path), { recursive: true }).length);
    }
  });
  const [some] = stored.slice(3);
  assert.ok(some > 0);
  assert.deepEqual(stored, [0, 0, 0, some, some, some, some]);
  const texts = bodies.map((one) => JSON.parse(one).messages[2].content[0].content);
  const [shown] = texts.slice(3);
  assert.match(shown, /^\[offcut\/1 truncated/);
  assert.deepEqual(texts, [LOG, LOG, LOG, shown, shown, shown, shown]);
});

// Two prompts and a third that reads: parallel calls, an error, images, and a result that is long.
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const SCRIPT = [
  [["call_a", "logs", { nth: 1 }], ["call_b", "fails", {}], ["call_c", "shows", {}], ["call_d", "logs", { nth: 2 }]],
  "The first answer.",
  [["call_e", "logs", { nth: 3 }]],
  "The second answer.",
];
const READS = [[["call_f", "read_file", { path: "LOCATION", pattern: "leak" }]]];
const calls = { logs: ({ nth }) => (nth === 2 ? "short" : `log ${nth}\n${LOG}`), fails: () => { throw new Error("no log"); } };
const results = (body) => JSON.parse(body).messages.flatMap((one) => {
  if (one.role === "tool") return [[one.tool_call_id, one.content]];
  return Array.isArray(one.content) ? one.content.filter((part) => part.tool_use_id).map((part) => [part.tool_use_id, part.content]) : [];
});

/** Runs `ask` without Offcut and with it: the same answers and requests, but for long results, and one more that reads. Returns the store's path. */
async function compare(ask) {
  const prompts = ["Where is the leak?", "And now?", "Read it."];
  const [plain, told] = [[], []];
  const whole = await provider(SCRIPT, (url) => ask(url, prompts.slice(0, 2), plain));
  const path = folder();
  const reduction = Reduction.inDir(path).session("chat-42");
  const bodies = await provider([...SCRIPT, ...READS], (url) => ask(url, prompts, told, reduction));
  assert.deepEqual(told.slice(0, 2), plain);
  assert.match(told[2], /It says: .*the leak is in pool.rs/s);
  assert.equal(bodies.length, whole.length + 2);
  for (const [nth, body] of whole.entries()) {
    const [before, after] = [results(body), new Map(results(bodies[nth]))];
    assert.equal(after.size, before.length);
    let expected = body;
    for (const [id, content] of before) {
      const shown = after.get(id);
      const isLong = JSON.stringify(content).length > 20_000;
      assert.equal(JSON.stringify(shown).startsWith('"[offcut/1 '), isLong, id);
      if (isLong) expected = expected.replace(JSON.stringify(content), () => JSON.stringify(shown));
    }
    assert.equal(withoutReader(bodies[nth]), expected);
  }
  assert.equal(new Set(bodies.slice(1).map((body) => JSON.stringify(results(body)[0]))).size, 1);
  assert.ok(bodies.every((body) => body.length < 30_000));
  return path;
}

/** A body without the definition of the reader, which stands after the others. */
const withoutReader = (body) => {
  const reader = JSON.parse(body).tools.find((tool) => (tool.function ?? tool).name === "read_file");
  return body.replace(`,${JSON.stringify(reader)}`, "");
};

for (const way of ["generate", "stream"]) {
  test(`AI SDK, ${way}, prompts in a loop`, { skip: !has("ai") }, async () => {
    const { generateText, jsonSchema, stepCountIs, streamText, tool, wrapLanguageModel } = await import("ai");
    const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
    const { offcutMiddleware, reader } = await import("offcut/ai-sdk");
    await compare(async (url, prompts, told, reduction) => {
      const model = createOpenAICompatible({ name: "p", baseURL: `${url}/v1`, apiKey: "k" })("m");
      const named = (execute, more) => tool({ description: "A tool.", inputSchema: jsonSchema(schema), execute, ...more });
      const image = { type: "content", value: [{ type: "text", text: "It shows:" }, { type: "media", data: PNG, mediaType: "image/png" }] };
      const shows = named(async () => "an image", { toModelOutput: () => image });
      const tools = { logs: named(async (args) => calls.logs(args)), fails: named(async () => calls.fails()), shows };
      const ours = reduction && { model: wrapLanguageModel({ model, middleware: offcutMiddleware(reduction) }), tools: { ...tools, ...reader(reduction) } };
      const messages = [];
      for (const text of prompts) {
        messages.push({ role: "user", content: [{ type: "text", text }, { type: "image", image: PNG }] });
        const options = { model, tools, messages, stopWhen: stepCountIs(9), ...ours };
        const run = way === "stream" ? streamText(options) : await generateText(options);
        told.push(await run.text);
        messages.push(...(await run.response).messages);
      }
      assert.ok(JSON.stringify(messages).includes(JSON.stringify(calls.logs({ nth: 1 }))), "the messages stay whole");
    });
  });

  test(`LangChain, ${way}, prompts in a thread`, { skip: !has("langchain") }, async () => {
    const { createAgent, tool } = await import("langchain");
    const { MemorySaver } = await import("@langchain/langgraph");
    const { ChatOpenAI } = await import("@langchain/openai");
    const { offcutMiddleware } = await import("offcut/langchain");
    await compare(async (url, prompts, told, reduction) => {
      const model = new ChatOpenAI({ model: "m", apiKey: "k", configuration: { baseURL: `${url}/v1` } });
      const image = [{ type: "text", text: "It shows:" }, { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } }];
      const named = (name, run) => tool(run, { name, description: "A tool.", schema });
      const tools = [named("logs", (args) => calls.logs(args)), named("fails", () => calls.fails()), named("shows", () => image)];
      const middleware = reduction ? [offcutMiddleware(reduction)] : [];
      const agent = createAgent({ model, tools, middleware, checkpointer: new MemorySaver() });
      const thread = { configurable: { thread_id: "1" } };
      for (const text of prompts) {
        const content = [{ type: "text", text }, { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } }];
        const ask = { messages: [{ role: "user", content }] };
        let state;
        if (way === "generate") state = await agent.invoke(ask, thread);
        else for await (const [mode, one] of await agent.stream(ask, { ...thread, streamMode: ["values", "messages"] })) if (mode === "values") state = one;
        told.push(state.messages.at(-1).text);
      }
    });
  });
}

for (const way of ["generate", "stream"]) {
  test(`Mastra, ${way}, prompts in a thread`, { skip: !has("@mastra/core/agent") }, async () => {
    const { Agent } = await import("@mastra/core/agent");
    const { MockMemory } = await import("@mastra/core/memory");
    const { createTool } = await import("@mastra/core/tools");
    const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
    const { offcutProcessor, reader } = await import("offcut/mastra");
    const named = (id, execute, more) => createTool({ id, description: "A tool.", inputSchema: schema, execute, ...more });
    const path = await compare(async (url, prompts, told, reduction) => {
      const image = { type: "content", value: [{ type: "text", text: "It shows:" }, { type: "media", data: PNG, mediaType: "image/png" }] };
      const shows = named("shows", async () => "an image", { toModelOutput: () => image });
      const tools = { logs: named("logs", async (args) => calls.logs(args)), fails: named("fails", async () => calls.fails()), shows };
      const ours = reduction && { tools: { ...tools, ...reader(reduction) }, inputProcessors: [offcutProcessor(reduction)] };
      const model = createOpenAICompatible({ name: "p", baseURL: `${url}/v1`, apiKey: "k" })("m");
      const memory = new MockMemory();
      const agent = new Agent({ id: "a", name: "a", instructions: "Look.", model, memory, tools, ...ours });
      for (const text of prompts) {
        const content = [{ type: "text", text }, { type: "image", image: PNG, mimeType: "image/png" }];
        const run = await agent[way]([{ role: "user", content }], { maxSteps: 9, memory: { thread: "thread-1", resource: "someone" } });
        told.push(await run.text);
      }
      const { messages } = await memory.recall({ threadId: "thread-1", resourceId: "someone" });
      assert.ok(JSON.stringify(messages).includes(JSON.stringify(calls.logs({ nth: 1 }))), "the memory stays whole");
    });
    assert.deepEqual(readdirSync(join(path, "chat-42")), ["thread-1"], "a session for each thread");
  });

  test(`Anthropic's SDK, ${way}, prompts in a loop`, { skip: !has("@anthropic-ai/sdk") }, async () => {
    const { default: Anthropic } = await import("@anthropic-ai/sdk");
    const { offcutMiddleware, reader } = await import("offcut/anthropic");
    await compare(async (baseURL, prompts, told, reduction) => {
      const ours = reduction && reader(reduction);
      const client = new Anthropic({ baseURL, apiKey: "k", middleware: reduction ? [offcutMiddleware(reduction)] : [] });
      const source = { type: "base64", media_type: "image/png", data: PNG };
      const all = { ...calls, shows: () => [{ type: "text", text: "It shows:" }, { type: "image", source }], read_file: ours?.run };
      const tools = ["logs", "fails", "shows"].map((name) => ({ name, description: "A tool.", input_schema: schema }));
      if (ours) tools.push({ name: ours.name, description: ours.description, input_schema: ours.input_schema });
      const messages = [];
      const answer = async ({ id, name, input }) => {
        const result = { type: "tool_result", tool_use_id: id };
        try {
          return { ...result, content: await all[name](input) };
        } catch (error) {
          return { ...result, content: error.message, is_error: true };
        }
      };
      for (const text of prompts) {
        messages.push({ role: "user", content: [{ type: "text", text }, { type: "image", source }] });
        for (;;) {
          const options = { model: "m", max_tokens: 99, messages, tools };
          const asked = way === "stream" ? client.messages.stream(options).finalMessage() : client.messages.create(options);
          const { content } = await asked;
          messages.push({ role: "assistant", content });
          if (content[0].type === "text") break;
          messages.push({ role: "user", content: await Promise.all(content.map(answer)) });
        }
        told.push(messages.at(-1).content[0].text);
      }
      assert.ok(JSON.stringify(messages).includes(JSON.stringify(calls.logs({ nth: 1 }))), "the messages stay whole");
    });
  });
}

// The examples of the page for TypeScript, as they stand there.
const page = readFileSync(join(process.env.OFFCUT_PAGES, "typescript.md"), "utf8");
const blocks = [...page.matchAll(/^```ts\n([^]*?)^```/gm)].map(([, block]) => block);

/** Compiles a file beside this one as a user may who has the compiler check all that it can. */
async function compile(name) {
  const tsc = join(import.meta.dirname, "../node_modules/.bin/tsc");
  const checks = ["--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess", "--skipLibCheck"];
  const options = [...checks, "--module", "node20", "--types", "node", `tests/${name}`];
  const compiled = spawn(tsc, options, { cwd: join(import.meta.dirname, ".."), stdio: "inherit" });
  assert.equal((await once(compiled, "exit"))[0], 0);
}

test("the declarations allow what they promise", { skip: !has("typescript") }, () => compile("types.mts"));

test("the page has its examples", () => assert.equal(blocks.length, 5));

for (const [nth, block] of blocks.entries()) {
  const wanted = [...block.matchAll(/from "([^"]+)"/g)].map(([, name]) => name).filter((name) => !has(name));
  test(`example ${nth + 1} runs`, { skip: wanted.length > 0 || !has("typescript") }, async () => {
    // Types are erased, and checked by the compiler elsewhere.
    const name = `example-${nth + 1}`;
    writeFileSync(join(import.meta.dirname, `${name}.mts`), block);
    const bodies = await provider(1, async (url) => {
      const keys = { OPENAI_API_KEY: "a key", ANTHROPIC_API_KEY: "a key" };
      const env = { ...process.env, ...keys, OPENAI_BASE_URL: `${url}/v1`, ANTHROPIC_BASE_URL: url };
      const cwd = mkdtempSync(join(tmpdir(), "offcut-"));
      await compile(`${name}.mts`);
      const ran = spawn(process.execPath, [join(import.meta.dirname, `${name}.mjs`)], { cwd, env, stdio: ["ignore", "pipe", "inherit"] });
      let shown = "";
      for await (const data of ran.stdout) shown += data;
      assert.match(shown, /the leak is in pool.rs/);
    });
    check(bodies, 1);
  });
}
