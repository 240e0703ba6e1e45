// What the declarations allow; compiled, and not run.
import Anthropic from "@anthropic-ai/sdk";
import { Agent } from "@mastra/core/agent";
import { wrapLanguageModel, type LanguageModel } from "ai";
import { createAgent } from "langchain";
import OpenAI from "openai";
import { Reduction, SettingsError, type Report } from "offcut";
import * as aiSdk from "offcut/ai-sdk";
import * as anthropic from "offcut/anthropic";
import * as langchain from "offcut/langchain";
import * as mastra from "offcut/mastra";

const reduction = Reduction.inDir(".offcut", { max_length_for_trunc: 8000, onReport: (report: Report) => report.decisions.length });
const messages = [{ role: "user", content: "hi" }];
const report: Report = await reduction.beforeModel(messages, { format: "anthropic", tools: [reduction.tool("anthropic")] });
const text: string = await reduction.truncate("x", { tool: "grep", callId: "c1", args: { q: 1 } });
const body: { messages: unknown[] } = await reduction.reduce({ messages });
// @ts-expect-error an unknown format
await reduction.beforeModel(messages, { format: "openai" });
declare const model: Extract<LanguageModel, { specificationVersion: "v3" }>;
wrapLanguageModel({ model, middleware: aiSdk.offcutMiddleware(reduction) });
createAgent({ model: "m", tools: [langchain.reader(reduction)], middleware: [langchain.offcutMiddleware(reduction)] });
const client = new Anthropic({ middleware: [anthropic.offcutMiddleware(reduction)] });
client.beta.messages.toolRunner({ model: "m", max_tokens: 99, messages: [], tools: [anthropic.reader(reduction)] });
const processors = { tools: mastra.reader(reduction), inputProcessors: [mastra.offcutProcessor(reduction)] };
new Agent({ id: "a", name: "a", instructions: "", model: "openai/m", ...processors });
// What a program may not have.
declare const maybe: { usage?: number; options: { format?: "anthropic" }; id?: string; keys?: string[] };
await reduction.beforeModel(messages, { lastUsage: maybe.usage, format: maybe.options.format, isCold: undefined });
await reduction.truncate("x", { tool: "grep", callId: maybe.id });
await reduction.wrapToolCall({}, () => "x", { format: maybe.options.format });
await reduction.answer({ id: maybe.id, name: "grep", args: {} });
await reduction.read("x", { offset: maybe.usage });
await reduction.condense({}, () => "x", { promptTemplate: "x", inputKeys: maybe.keys });
Reduction.inDir(".offcut", { onReport: undefined });
// Messages and tools as the SDKs declare them.
const call = { type: "tool_use", id: "c1", name: "grep", input: {} };
const ofAnthropic: Anthropic.MessageParam[] = [await reduction.wrapToolCall(call, () => "x")];
const ofOpenAi: OpenAI.ChatCompletionMessageParam[] = [await reduction.wrapToolCall(call, () => "x", { format: "openai-chat" })];
const tools: Anthropic.Tool[] = [reduction.tool("anthropic"), anthropic.reader(reduction)];
await client.messages.create({ model: "m", max_tokens: 99, messages: ofAnthropic, tools });
await new OpenAI().chat.completions.create({ model: "m", messages: ofOpenAi, tools: [reduction.tool("openai-chat")] });
const page = await anthropic.reader(reduction).run({ path: "x" });
console.log(page, report, text, body, SettingsError, aiSdk.reader(reduction));
