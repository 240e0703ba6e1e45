// Prompts of the AI SDK's language models, which other frameworks send too.
"use strict";

const chat = require("./chat.js");
const { spelled } = require("./json.js");

/** The prompt with its results shortened and cleared, beside the parts of the one before. The `tools` are counted. */
async function reduced(reduction, prompt, tools) {
  const [plain, places] = [[], []];
  prompt.forEach((message, nth) => {
    if (message.role !== "tool") {
      plain.push(plainMessage(message));
      places.push([nth]);
      return;
    }
    message.content.forEach((part, at) => {
      plain.push(part.type === "tool-result" ? chat.result(part.toolCallId, textOf(part.output)) : { role: "user", content: "" });
      places.push([nth, at]);
    });
  });
  const after = [...prompt];
  const pass = async (messages) => (await reduction.reduce({ messages, tools }, { format: "openai-chat" })).messages;
  for (const [index, message, before] of await chat.changes(plain, pass)) {
    const [nth, at] = places[index];
    const content = [...after[nth].content];
    if (after[nth].role === "user") {
      const texts = message.content.map(({ text }) => text);
      after[nth] = { ...after[nth], content: content.map((part) => (part.type === "text" ? { ...part, text: texts.shift() } : part)) };
      continue;
    }
    if (at === undefined) {
      const args = chat.newArguments(before, message);
      const input = (part) => (isOwn(part) ? (args.shift() ?? part.input) : part.input);
      after[nth] = { ...after[nth], content: content.map((part) => (isOwn(part) ? { ...part, input: input(part) } : part)) };
      continue;
    }
    const { output } = content[at];
    const type = output.type.startsWith("error") ? "error-text" : "text";
    content[at] = { ...content[at], output: { ...output, type, value: message.content } };
    after[nth] = { ...after[nth], content };
  }
  return after;
}

const isOwn = (part) => part.type === "tool-call" && !part.providerExecuted;

/** What signs nothing. OpenAI's provider refuses another input for calls whose ids don't begin so: they are of its own tools. */
const signsNothing = ([name, value]) =>
  name === "cacheControl" || (name === "itemId" && /^fc_/.test(value)) || (name === "caller" && value?.type === "direct");

/** True for a call that a provider may have signed. */
const isSigned = ({ providerOptions }) =>
  Object.values(providerOptions ?? {}).some((options) => !Object.entries(options ?? {}).every(signsNothing));

function plainMessage(message) {
  if (message.role === "system") return { role: "system", content: message.content };
  const parts = message.content;
  const texts = parts.filter((part) => part.type === "text").map(({ text }) => ({ type: "text", text }));
  if (message.role !== "assistant") return { role: "user", content: texts.length > 0 ? texts : "" };
  // A provider may have signed what stands beside its thoughts.
  const hasOthers = parts.some((part) => part.type !== "text" && part.type !== "tool-call");
  const call = (part) => chat.call(part.toolCallId, part.toolName, part.input, hasOthers || isSigned(part));
  return chat.assistant(texts.map(({ text }) => text).join("\n"), parts.filter(isOwn).map(call));
}

/** The longest error that stays whatever the pass does, in characters. Chat completions can't mark one. */
const LONGEST_ERROR = 2000;

/** The text of a result; none if it must stay, as one with media and a short error do. */
function textOf(output) {
  if (output.type === "content") {
    return output.value.every((part) => part.type === "text") ? output.value.map((part) => part.text).join("\n") : "";
  }
  const text = typeof output.value === "string" ? output.value : (spelled(output.value ?? output.reason ?? "") ?? "");
  return output.type.startsWith("error") && text.length <= LONGEST_ERROR ? "" : text;
}

module.exports = { reduced };
