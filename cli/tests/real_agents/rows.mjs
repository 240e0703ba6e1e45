// An MCP server on stdio with one tool, which returns as many rows as it is asked for, as an error if it is to fail,
// and also as structured content if it is asked to.
import { createInterface } from "node:readline";

const tool = {
  name: "rows",
  description: "Returns rows.",
  inputSchema: { type: "object", properties: { count: { type: "number" }, fails: { type: "boolean" }, structured: { type: "boolean" } }, required: ["count"] },
};

function answer({ method, params }) {
  switch (method) {
    case "initialize":
      return { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "probe", version: "1" } };
    case "tools/list":
      return { tools: [tool] };
    case "tools/call": {
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
