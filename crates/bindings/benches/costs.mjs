// Prints the milliseconds of `truncate`, of an untriggered `beforeModel`, and of its messages' conversion to JSON and back.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Reduction } from "offcut";

const given = JSON.parse(readFileSync(process.argv[2], "utf8"));
const { messages } = given;
const reduction = new Reduction(given.settings);

async function fastest(work) {
  const times = [];
  for (let nth = 0; nth < given.runs; nth++) {
    const start = performance.now();
    await work(nth);
    times.push(performance.now() - start);
  }
  return Math.min(...times);
}

const truncate = async (nth) => {
  const shown = await reduction.truncate(`${nth}\n${given.text}`, { tool: "grep", callId: `call_${nth}` });
  assert.ok(shown.startsWith("[offcut/1"));
};
const pass = () => reduction.beforeModel(messages, { format: "openai-chat" });
const toJson = () => Buffer.from(JSON.stringify(messages));
const text = toJson();
const figures = [];
for (const work of [truncate, pass, toJson, () => JSON.parse(text)]) figures.push(await fastest(work));
console.log(JSON.stringify(figures));
