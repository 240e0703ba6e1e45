// Messages of a framework as chat completions, for a pass over them.
"use strict";

const { isDeepStrictEqual } = require("node:util");

/** JSON as the AI SDK writes it: big integers as texts, and `[Circular]` in place of what is around a value already. */
function spelled(value) {
  const around = [];
  return JSON.stringify(value, function (key, one) {
    if (typeof one === "bigint") return one.toString();
    if (typeof one !== "object" || one === null) return one;
    while (around.length > 0 && around.at(-1) !== this) around.pop();
    if (around.includes(one)) return "[Circular]";
    around.push(one);
    return one;
  });
}

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
  return all.filter(([nth, message]) => !isDeepStrictEqual(message, messages[nth]));
}

/** The arguments of each call of a message as they are now; undefined for those that have not changed. */
const newArguments = (before, after) =>
  (after.tool_calls ?? []).map(({ function: { arguments: text } }, nth) =>
    text === before.tool_calls[nth].function.arguments ? undefined : JSON.parse(text),
  );

module.exports = { assistant, call, changes, newArguments, result, spelled };
