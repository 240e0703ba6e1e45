// An input processor and a tool for Mastra's agents.
"use strict";

const { parseMemoryRequestContext } = require("@mastra/core/memory");
const { createTool } = require("@mastra/core/tools");
const { reduced } = require("./prompt.js");

/** An input processor: shortens and clears results in what is sent. The messages of the memory stay whole. */
function offcutProcessor(reduction) {
  return {
    id: "offcut",
    // Only this moment, which comes first, knows the tools. The state is of one run.
    processInputStep: ({ tools, activeTools, state }) => {
      const isActive = ([name]) => activeTools?.includes(name) ?? true;
      state.tools = Object.entries(tools ?? {}).filter(isActive).map(definition);
    },
    processLLMRequest: async ({ prompt, requestContext, state }) => ({
      prompt: await reduced(ofThread(reduction, requestContext), prompt, state.tools),
    }),
  };
}

/** A tool as it is sent, to be counted. */
const definition = ([name, { description, parameters, inputSchema = parameters }]) => ({
  name,
  description,
  parameters: inputSchema?.jsonSchema,
});

/** The reader, to be spread into `tools`. */
function reader(reduction) {
  if (!reduction.readerName) return {};
  const { name, description, input_schema } = reduction.tool("anthropic");
  const execute = async (args, { requestContext } = {}) => (await ofThread(reduction, requestContext).page(args)).text;
  return { [name]: createTool({ id: name, description, inputSchema: input_schema, execute }) };
}

/** A thread of the memory has a session of its own. */
function ofThread(reduction, requestContext) {
  const thread = parseMemoryRequestContext(requestContext)?.thread;
  return thread ? reduction.session(thread.id) : reduction;
}

exports.offcutProcessor = offcutProcessor;
exports.reader = reader;
