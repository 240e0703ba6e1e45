// JSON of values, for the core.
"use strict";

/** Writes big integers as texts, and `[Circular]` in place of what is around a value already, as the AI SDK does. */
function lenient() {
  const around = [];
  return function (key, one) {
    if (typeof one === "bigint") return one.toString();
    if (typeof one !== "object" || one === null) return one;
    while (around.length > 0 && around.at(-1) !== this) around.pop();
    if (around.includes(one)) return "[Circular]";
    around.push(one);
    return one;
  };
}

/** JSON in which each half of a surrogate pair is a replacement character: `JSON.stringify` escapes no other surrogates. */
function spelled(value, replacer = lenient()) {
  const text = JSON.stringify(value, replacer);
  if (!text?.includes("\\ud")) return text;
  return text.replace(/\\\\|\\ud[89a-f][0-9a-f]{2}/g, (found) => (found === "\\\\" ? found : "\ufffd"));
}

module.exports = { spelled };
