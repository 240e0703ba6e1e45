// Middleware and a tool for the clients of Anthropic's SDK.
"use strict";

const { betaTool } = require("@anthropic-ai/sdk/helpers/beta/json-schema");

/** Middleware of a client: shortens and clears results in what is sent. The caller's messages stay whole. */
function offcutMiddleware(reduction) {
  return async (request, next, { options }) => {
    // There are requests of other kinds, such as those for tokens.
    if (typeof request.body !== "string" || !Array.isArray(options?.body?.messages)) return next(request);
    // What is counted may never be sent, so a count decides nothing.
    const repeatsOnly = options.path.split("?")[0].endsWith("/count_tokens");
    return next({ ...request, body: await reduction.reduce(request.body, { format: "anthropic", repeatsOnly }) });
  };
}

/** The reader as a tool of `toolRunner`. */
function reader(reduction) {
  const { name, description, input_schema: inputSchema } = reduction.tool("anthropic");
  return betaTool({ name, description, inputSchema, run: async (args) => (await reduction.page(args)).text });
}

exports.offcutMiddleware = offcutMiddleware;
exports.reader = reader;
