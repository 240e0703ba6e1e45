// A client for the official conformance suite, by the official TypeScript SDK: over HTTP, or over stdio through the gateway if
// OFFCUT names the program.
// node conformance.mjs SDK URL, with the scenario in MCP_CONFORMANCE_SCENARIO
import { pathToFileURL } from "node:url";

const [sdk, url] = process.argv.slice(2);
const of = (file) => import(pathToFileURL(`${sdk}/dist/esm/${file}.js`));
const { Client } = await of("client/index");
const { StdioClientTransport } = await of("client/stdio");
const { StreamableHTTPClientTransport } = await of("client/streamableHttp");
const { ElicitRequestSchema } = await of("types");

const client = new Client(
  { name: "test", version: "1" },
  { capabilities: { elicitation: { form: { applyDefaults: true } } } },
);
client.setRequestHandler(ElicitRequestSchema, () => ({ action: "accept", content: {} }));
const offcut = process.env.OFFCUT;
await client.connect(
  offcut
    ? new StdioClientTransport({ command: offcut, args: ["mcp", "--url", url], env: process.env, stderr: "inherit" })
    : new StreamableHTTPClientTransport(new URL(url)),
);
const { tools } = await client.listTools();
const own = tools.filter((tool) => tool.name !== "read_stored_result");
for (const { name } of own) {
  await client.callTool({ name, arguments: name === "add_numbers" ? { a: 5, b: 3 } : {} });
}
await client.close();
