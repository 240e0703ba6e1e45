// Calls tools of a server by the official TypeScript client, and prints the list of tools and all results as JSON.
// Results that Offcut has stored are read back by its reader, and printed whole.
// node client.mjs CALLS.json SDK COMMAND ARGS…, or a URL in place of a command
import { readFileSync } from "node:fs";
import { READER, connect, parse, whole } from "./reading.mjs";

const [calls, sdk, command, ...args] = process.argv.slice(2);
const client = await connect(sdk, command, args);
const { tools } = await client.listTools();
const reader = tools.find((tool) => tool.name === READER);
let stored = 0;

async function original(text) {
  const hint = reader && parse(text);
  if (!hint) return text;
  stored += 1;
  return await whole(client, hint.location);
}

const results = [];
for (const { name, arguments: given } of JSON.parse(readFileSync(calls, "utf8"))) {
  try {
    const result = await client.callTool({ name, arguments: given });
    for (const block of result.content) {
      if (block.type === "text") block.text = await original(block.text);
    }
    results.push(result);
  } catch (error) {
    results.push({ error: error.message });
  }
}
await client.close();
console.log(JSON.stringify({ tools: tools.filter((tool) => tool !== reader), has_reader: !!reader, stored, results }));
