// Calls a tool with an output schema by the official TypeScript client, which checks the result: with the schema of the list that it
// asks for, or, if TOOLS.json is given, with that of an earlier list. Prints the structured content and the tools as JSON, and the
// whole text to which a hint in it leads.
// node schemas.mjs TOOLS.json|- SDK COMMAND ARGS…, or a URL in place of a command
import { readFileSync } from "node:fs";
import { connect, whole } from "./reading.mjs";

const [known, sdk, command, ...args] = process.argv.slice(2);
const client = await connect(sdk, command, args);
let tools = [];
if (known === "-") {
  tools = (await client.listTools()).tools;
} else {
  client.cacheToolMetadata(JSON.parse(readFileSync(known, "utf8")));
}
const { structuredContent } = await client.callTool({ name: "test_long_table", arguments: {} });

const location = /\[offcut\/1 \S+ \S+ \d+\+\d+ \\"(.*?)\\"\]/.exec(JSON.stringify(structuredContent))?.[1];
const read = location && (await whole(client, location));
await client.close();
console.log(JSON.stringify({ tools, structured: structuredContent, whole: read }));
