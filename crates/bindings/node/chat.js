// Messages of a framework as chat completions, for a pass over them.
"use strict";

const { spelled } = require("./json.js");

/** A call. The arguments of one that `isFixed` are left alone: its provider has signed it. */
const call = (id, name, args, isFixed) => ({
  id: id ?? "",
  type: "function",
  function: { name, arguments: typeof args === "string" ? args : spelled(args ?? {}) },
  ...(isFixed ? { extra_content: {} } : {}),
});

const assistant = (content, calls) => ({ role: "assistant", content, ...(calls.length > 0 ? { tool_calls: calls } : {}) });

const result = (id, content) => ({ role: "tool", tool_call_id: id ?? "", content });

/** Each message that a pass has changed: its index, the message, and the one before. `pass` gives the messages after it. */
async function changes(messages, pass) {
  const after = await pass([...messages]);
  const all = after.map((message, nth) => [nth, message, messages[nth]]);
  return all.filter(([, message, before]) => message !== before && spelled(message) !== spelled(before));
}

/** The arguments of each call of a message as they are now; undefined for those that have not changed. */
const newArguments = (before, after) =>
  (after.tool_calls ?? []).map(({ function: { arguments: text } }, nth) =>
    text === before.tool_calls[nth].function.arguments ? undefined : JSON.parse(text),
  );

module.exports = { assistant, call, changes, newArguments, result };
