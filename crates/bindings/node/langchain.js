// Middleware for LangChain's agents.
"use strict";

const { convertToOpenAITool } = require("@langchain/core/utils/function_calling");
const { coerceMessageLikeToMessage } = require("@langchain/core/messages");
const { createMiddleware, tool, ToolMessage, AIMessage, SystemMessage } = require("langchain");
const chat = require("./chat.js");

/** Shortens what tools return, clears old results in the agent's state before a model call, and adds the reader to the tools. */
function offcutMiddleware(reduction) {
  // What was last sent beside messages, and in which conversation: agents, threads and sub-agents may share a middleware.
  // The agent tells it after the pass, so the next one counts it.
  let last = {};
  return createMiddleware({
    name: "Offcut",
    tools: reduction.readerName ? [reader(reduction)] : [],
    beforeModel: async (state) => {
      const isSame = last.of !== undefined && last.of === conversation(state);
      const messages = await cleared(reduction, state.messages, isSame ? last.beside : []);
      return messages.length > 0 ? { messages } : undefined;
    },
    wrapModelCall: (request, handler) => {
      const { tools = [], systemMessage, state } = request;
      const beside = [...tools.map((one) => convertToOpenAITool(one)), ...(systemMessage?.text ? [systemMessage.text] : [])];
      last = { of: conversation(state), beside };
      return handler(request);
    },
    wrapToolCall: async (request, handler) => {
      // A tool of the agent may have taken the reader's name.
      const page = await reduction.answer(request.toolCall);
      if (page) return answering(request.toolCall, page.content, page.isError);
      let message;
      try {
        message = await handler(request);
      } catch (error) {
        // Beside a middleware, LangChain leaves it to that what a tool throws; interrupts and an end from outside are no errors of it.
        if (error?.is_bubble_up || error?.name === "AbortError") throw error;
        const content = `Error: ${error?.message ?? error}\n Please fix your mistakes.`;
        message = answering(request.toolCall, content, true);
      }
      // Nobody but the user sees the result of such a tool.
      return request.tool?.returnDirect ? message : shown(reduction, request.toolCall, message);
    },
  });
}

/** The id of the first message. */
const conversation = ({ messages: [first] }) => first?.id ?? undefined;

const answering = ({ id, name }, content, isError) =>
  new ToolMessage({ content, name, tool_call_id: id ?? "", status: isError ? "error" : "success" });

/** What a tool returned, shortened: its message, or those of a `Command`. */
async function shown(reduction, call, returned) {
  if (returned?.lg_name === "Command" && Array.isArray(returned.update?.messages)) {
    const messages = await Promise.all(returned.update.messages.map((one) => shown(reduction, call, one)));
    const command = Object.create(Object.getPrototypeOf(returned), Object.getOwnPropertyDescriptors(returned));
    return Object.assign(command, { update: { ...returned.update, messages } });
  }
  const isTool = returned?.role === "tool" || returned?.type === "tool";
  const message = isTool ? coerceMessageLikeToMessage(returned) : returned;
  if (!ToolMessage.isInstance(message)) return message;
  const { name, id, args } = call;
  const isError = message.status === "error";
  const content = await reduction.truncate(message.content, { tool: name, callId: id, args, isError });
  return content === message.content ? message : changed(ToolMessage, message, { content });
}

/** The reader as a tool. */
function reader(reduction) {
  const { name, description, input_schema } = reduction.tool("anthropic");
  const read = async (args, { toolCall }) => {
    const { text, isError } = await reduction.page(args);
    // Only the message of a call can be marked.
    return isError && toolCall ? answering(toolCall, text, true) : text;
  };
  return tool(read, { name, description, schema: input_schema });
}

/** The messages that a pass has changed. A message with the same id takes the place of the one before. */
async function cleared(reduction, messages, beside) {
  const pass = async (all) => {
    await reduction.clear(all, { format: "openai-chat", tools: beside });
    return all;
  };
  const all = await chat.changes(messages.map(plainMessage), pass);
  return all.map(([nth, after, before]) => {
    const message = messages[nth];
    if (!AIMessage.isInstance(message)) return changed(message.constructor, message, { content: after.content });
    const args = chat.newArguments(before, after);
    const tool_calls = message.tool_calls.map((one, at) => ({ ...one, args: args[at] ?? one.args }));
    const withArguments = (block) => {
      const at = tool_calls.findIndex(({ id }) => id === (block.call_id ?? block.id));
      const field = args[at] && argumentsOf[block.type];
      return field ? { ...block, [field]: field === "arguments" ? JSON.stringify(args[at]) : args[at] } : block;
    };
    const within = (blocks) => (Array.isArray(blocks) ? blocks.map(withArguments) : blocks);
    const { content, response_metadata: metadata } = message;
    // Of OpenAI's responses, the output is sent.
    const output = metadata.output && { response_metadata: { ...metadata, output: within(metadata.output) } };
    return changed(AIMessage, message, { tool_calls, content: within(content), ...output });
  });
}

/** The field with the arguments of each type of call. */
const argumentsOf = { tool_use: "input", tool_call: "args", function_call: "arguments" };

/** What is beside a message, and the blocks without thoughts: they sign nothing. */
const unsigned = new Set(["refusal", "function_call", "tool_calls", "__openai_function_call_ids__"]);
const unthought = new Set(["text", "output_text", "refusal", "message", ...Object.keys(argumentsOf)]);
/** What OpenAI has beside a call: other things may sign it. */
const unsigning = new Set(["item_id", "status", "namespace", "async"]);

/** True for a message whose calls a provider may have signed: with thoughts, or what it keeps of them. */
function mayBeSigned({ content, additional_kwargs: others, response_metadata: { output } }) {
  const isKept = ([name, value]) => value != null && !unsigned.has(name);
  const isOther = (block) => !unthought.has(block?.type) || Object.keys(block.extras ?? {}).some((name) => !unsigning.has(name));
  return Object.entries(others ?? {}).some(isKept) || [content, output].some((all) => Array.isArray(all) && all.some(isOther));
}

function changed(Kind, message, fields) {
  const { lc_kwargs, ...own } = message;
  return new Kind({ ...own, ...fields });
}

/** An image as chat completions have it, whoever wrote it. */
function image(part) {
  const { base64, data = base64, mime_type, media_type = mime_type, mimeType = media_type } = part?.type === "image" ? (part.source ?? part) : {};
  return data && mimeType ? { type: "image_url", image_url: { url: `data:${mimeType};base64,${data}` } } : part;
}

function plainMessage(message) {
  if (ToolMessage.isInstance(message)) {
    // Chat completions can't mark an error, and errors stay.
    const content = Array.isArray(message.content) ? message.content.map(image) : message.content;
    return chat.result(message.tool_call_id, message.status === "error" ? "" : content);
  }
  if (AIMessage.isInstance(message)) {
    const isFixed = mayBeSigned(message);
    return chat.assistant(message.text, (message.tool_calls ?? []).map((one) => chat.call(one.id, one.name, one.args, isFixed)));
  }
  return { role: SystemMessage.isInstance(message) ? "system" : "user", content: message.content };
}

exports.offcutMiddleware = offcutMiddleware;
exports.reader = reader;
