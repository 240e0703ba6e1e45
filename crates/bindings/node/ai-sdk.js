// Middleware and a tool for the AI SDK.
"use strict";

const { jsonSchema, tool } = require("ai");
const { reduced } = require("./prompt.js");

/** Middleware for `wrapLanguageModel`: shortens and clears results in what is sent. The caller's messages stay whole. */
function offcutMiddleware(reduction) {
  return {
    specificationVersion: "v3",
    transformParams: async ({ params }) => ({ ...params, prompt: await reduced(reduction, params.prompt, params.tools) }),
  };
}

/** The reader, to be spread into `tools`. */
function reader(reduction) {
  if (!reduction.readerName) return {};
  const { name, description, input_schema } = reduction.tool("anthropic");
  const execute = async (args) => (await reduction.page(args)).text;
  return { [name]: tool({ description, inputSchema: jsonSchema(input_schema), execute }) };
}

exports.offcutMiddleware = offcutMiddleware;
exports.reader = reader;
