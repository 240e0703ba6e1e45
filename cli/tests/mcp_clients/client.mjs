// Calls tools of a server by the official TypeScript client, and prints the list of tools and all results as JSON.
// Results that Offcut has stored are read back by its reader, and printed whole.
// node client.mjs CALLS.json SDK COMMAND ARGS…, or a URL in place of a command
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [calls, sdk, command, ...args] = process.argv.slice(2);
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
const { tools } = await client.listTools();
const reader = tools.find((tool) => tool.name === "read_stored_result");
let stored = 0;

// The lengths in a hint's header tell where its sentence and its preview are.
function parse(text) {
  const bytes = Buffer.from(text);
  const header = /^\[offcut\/1 \S+ \S+ (\d+)\+(\d+) ("(?:[^"\\]|\\.)*")\] /.exec(text);
  if (!header) return undefined;
  const prose = Buffer.byteLength(header[0]);
  const preview = prose + Number(header[1]) + 1;
  return {
    location: JSON.parse(header[3]),
    prose: bytes.subarray(prose, preview - 1).toString(),
    preview: bytes.subarray(preview, preview + Number(header[2])).toString(),
  };
}

async function whole(text) {
  const hint = reader && parse(text);
  if (!hint) return text;
  stored += 1;
  let all = "";
  for (let offset = "1"; offset; ) {
    const page = await client.callTool({ name: reader.name, arguments: { path: hint.location, offset } });
    const { prose, preview } = parse(page.content[0].text);
    all += preview;
    offset = /offset (\S+?)\.$/.exec(prose)?.[1];
  }
  return all;
}

const results = [];
for (const { name, arguments: given } of JSON.parse(readFileSync(calls, "utf8"))) {
  try {
    const result = await client.callTool({ name, arguments: given });
    for (const block of result.content) {
      if (block.type === "text") block.text = await whole(block.text);
    }
    results.push(result);
  } catch (error) {
    results.push({ error: error.message });
  }
}
await client.close();
console.log(JSON.stringify({ tools: tools.filter((tool) => tool !== reader), has_reader: !!reader, stored, results }));
