// Middleware for LangChain's agents.
"use strict";

const { createMiddleware, tool, ToolMessage, AIMessage, SystemMessage } = require("langchain");
const chat = require("./chat.js");

/** Shortens what tools return, clears old results in the agent's state before a model call, and adds the reader to the tools. */
function offcutMiddleware(reduction) {
  return createMiddleware({
    name: "Offcut",
    tools: reduction.readerName ? [reader(reduction)] : [],
    beforeModel: async (state) => {
      const messages = await cleared(reduction, state.messages);
      return messages.length > 0 ? { messages } : undefined;
    },
    wrapToolCall: async (request, handler) => {
      const message = await handler(request);
      if (!ToolMessage.isInstance(message)) return message;
      const { name, id, args } = request.toolCall;
      const isError = message.status === "error";
      const content = await reduction.truncate(message.content, { tool: name, callId: id, args, isError });
      return content === message.content ? message : changed(ToolMessage, message, { content });
    },
  });
}

/** The reader as a tool. */
function reader(reduction) {
  const { name, description, input_schema } = reduction.tool("anthropic");
  return tool(async (args) => (await reduction.page(args)).text, { name, description, schema: input_schema });
}

/** The messages that a pass has changed. A message with the same id takes the place of the one before. */
async function cleared(reduction, messages) {
  const pass = async (all) => {
    await reduction.clear(all, { format: "openai-chat" });
    return all;
  };
  const all = await chat.changes(messages.map(plainMessage), pass);
  return all.map(([nth, after]) => {
    const message = messages[nth];
    if (ToolMessage.isInstance(message)) return changed(ToolMessage, message, { content: after.content });
    const args = chat.newArguments(after);
    const tool_calls = message.tool_calls.map((one, at) => ({ ...one, args: args[at] }));
    return changed(AIMessage, message, { tool_calls });
  });
}

function changed(Kind, message, fields) {
  const { lc_kwargs, ...own } = message;
  return new Kind({ ...own, ...fields });
}

function plainMessage(message) {
  const isList = Array.isArray(message.content);
  if (ToolMessage.isInstance(message)) return chat.result(message.tool_call_id, message.content);
  if (AIMessage.isInstance(message)) {
    // Beside thoughts, and what a provider keeps of them, calls may be signed.
    const kept = Object.keys(message.additional_kwargs ?? {}).filter((name) => name !== "tool_calls");
    const isFixed = isList || kept.length > 0;
    return chat.assistant(message.text, (message.tool_calls ?? []).map((one) => chat.call(one.id, one.name, one.args, isFixed)));
  }
  return { role: SystemMessage.isInstance(message) ? "system" : "user", content: message.content };
}

exports.offcutMiddleware = offcutMiddleware;
exports.reader = reader;
