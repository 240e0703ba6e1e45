// Messages of a framework as chat completions, for a pass over them.
"use strict";

const { isDeepStrictEqual } = require("node:util");

/** A call. The arguments of one that `isFixed` are left alone: its provider has signed it. */
const call = (id, name, args, isFixed) => ({
  id: id ?? "",
  type: "function",
  function: { name, arguments: typeof args === "string" ? args : JSON.stringify(args ?? {}) },
  ...(isFixed ? { extra_content: {} } : {}),
});

const assistant = (content, calls) => ({ role: "assistant", content, ...(calls.length > 0 ? { tool_calls: calls } : {}) });

const result = (id, content) => ({ role: "tool", tool_call_id: id ?? "", content });

/** Each message that a pass has changed, by its index. `pass` gives the messages after it. */
async function changes(messages, pass) {
  const after = await pass([...messages]);
  const all = after.map((message, nth) => [nth, message]);
  return all.filter(([nth, message]) => !isDeepStrictEqual(message, messages[nth]));
}

/** The arguments of each call of a message. */
const newArguments = (message) => (message.tool_calls ?? []).map((one) => JSON.parse(one.function.arguments));

module.exports = { assistant, call, changes, newArguments, result };
