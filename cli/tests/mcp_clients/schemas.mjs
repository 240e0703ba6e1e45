// Calls a tool with an output schema by the official TypeScript client, which checks the result: with the schema of the list that it
// asks for, or, if TOOLS.json is given, with that of an earlier list. Prints the structured content and the tools as JSON, and the
// whole text to which a hint in it leads.
// node schemas.mjs TOOLS.json|- SDK COMMAND ARGS…, or a URL in place of a command
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [known, sdk, command, ...args] = process.argv.slice(2);
const of = (file) => import(pathToFileURL(`${sdk}/dist/esm/client/${file}.js`));
const { Client } = await of("index");
const { StdioClientTransport } = await of("stdio");
const { StreamableHTTPClientTransport } = await of("streamableHttp");

const client = new Client({ name: "test", version: "1" }, { capabilities: {} });
await client.connect(
  command.startsWith("http:")
    ? new StreamableHTTPClientTransport(new URL(command))
    : new StdioClientTransport({ command, args, env: process.env, stderr: "ignore" }),
);
let tools = [];
if (known === "-") {
  tools = (await client.listTools()).tools;
} else {
  client.cacheToolMetadata(JSON.parse(readFileSync(known, "utf8")));
}
const { structuredContent } = await client.callTool({ name: "test_long_table", arguments: {} });

const location = /\[offcut\/1 \S+ \S+ \d+\+\d+ \\"(.*?)\\"\]/.exec(JSON.stringify(structuredContent))?.[1];
let whole;
for (let offset = "1"; location && offset; ) {
  const page = await client.callTool({ name: "read_stored_result", arguments: { path: location, offset } });
  const bytes = Buffer.from(page.content[0].text);
  const header = /^\[offcut\/1 \S+ \S+ (\d+)\+(\d+) "[^"]*"\] /.exec(bytes);
  const preview = Buffer.byteLength(header[0]) + Number(header[1]) + 1;
  whole = (whole ?? "") + bytes.subarray(preview, preview + Number(header[2]));
  offset = /offset (\S+?)\.$/.exec(bytes.subarray(header[0].length, preview - 1).toString())?.[1];
}
await client.close();
console.log(JSON.stringify({ tools, structured: structuredContent, whole }));
