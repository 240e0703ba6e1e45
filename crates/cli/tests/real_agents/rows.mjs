// An MCP server on stdio with two tools, which return as many rows as they are asked for: `rows` as text, as an error if it is
// to fail, and also as structured content if it is asked to; `table` as structured content with a schema.
import { createInterface } from "node:readline";

const tool = {
  name: "rows",
  description: "Returns rows.",
  inputSchema: { type: "object", properties: { count: { type: "number" }, fails: { type: "boolean" }, structured: { type: "boolean" } }, required: ["count"] },
};

const table = {
  name: "table",
  description: "Returns a table.",
  inputSchema: { type: "object", properties: { count: { type: "number" } }, required: ["count"] },
  outputSchema: {
    type: "object",
    properties: {
      total: { type: "integer" },
      rows: { type: "array", items: { type: "object", properties: { n: { type: "integer" }, text: { type: "string" } }, required: ["n", "text"] } },
    },
    required: ["total", "rows"],
    additionalProperties: false,
  },
};

function answer({ method, params }) {
  switch (method) {
    case "initialize":
      return { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "probe", version: "1" } };
    case "tools/list":
      return { tools: [tool, table] };
    case "tools/call": {
      if (params.name === "table") {
        const rows = Array.from({ length: params.arguments.count }, (_, n) => ({ n, text: `row ${n} of the table` }));
        const structuredContent = { total: rows.length, rows };
        return { content: [{ type: "text", text: JSON.stringify(structuredContent) }], structuredContent };
      }
      const rows = Array.from({ length: params.arguments.count }, (_, n) => `row ${n} of the server`);
      const structuredContent = params.arguments.structured ? { rows } : undefined;
      return { content: [{ type: "text", text: rows.join("\n") }], structuredContent, isError: params.arguments.fails === true };
    }
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  if (request.id === undefined) continue;
  const result = answer(request);
  const reply = result ? { result } : { error: { code: -32601, message: "unknown method" } };
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id: request.id, ...reply }) + "\n");
}
