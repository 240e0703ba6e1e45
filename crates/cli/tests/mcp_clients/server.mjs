// A server with everything that the official conformance suite asks of one, by the official TypeScript SDK.
// node server.mjs SDK stdio, or node server.mjs SDK http, which writes its URL to stdout
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const [sdk, transport] = process.argv.slice(2);
const of = (file) => import(pathToFileURL(`${sdk}/dist/esm/${file}.js`));
const { Server } = await of("server/index");
const { StdioServerTransport } = await of("server/stdio");
const { StreamableHTTPServerTransport } = await of("server/streamableHttp");
const types = await of("types");

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const wav = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";
const text = (text) => ({ type: "text", text });
const image = { type: "image", data: png, mimeType: "image/png" };
const resource = (uri, mimeType, text) => ({ type: "resource", resource: { uri, mimeType, text } });
const none = { type: "object", properties: {} };
const one = (name) => ({ type: "object", properties: { [name]: { type: "string" } }, required: [name] });

const form = (properties, required) => ({ type: "object", properties, required });
const ask = async (extra, message, requestedSchema) => {
  const params = { mode: "form", message, requestedSchema };
  const answer = await extra.sendRequest({ method: "elicitation/create", params }, types.ElicitResultSchema);
  return `action=${answer.action}, content=${JSON.stringify(answer.content ?? {})}`;
};
const options = ["option1", "option2", "option3"];
const titled = (title) => ["First", "Second", "Third"].map((nth, at) => ({ const: `value${at + 1}`, title: `${nth} ${title}` }));

const tools = {
  test_simple_text: [none, () => [text("This is a simple text response for testing.")]],
  test_image_content: [none, () => [image]],
  test_audio_content: [none, () => [{ type: "audio", data: wav, mimeType: "audio/wav" }]],
  test_embedded_resource: [none, () => [resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")]],
  test_multiple_content_types: [none, () => [
    text("Multiple content types test:"),
    image,
    resource("test://mixed-content-resource", "application/json", JSON.stringify({ test: "data", value: 123 })),
  ]],
  test_tool_with_logging: [none, async (_, extra) => {
    for (const data of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
      await extra.sendNotification({ method: "notifications/message", params: { level: "info", data } });
      await pause(50);
    }
    return [text("done")];
  }],
  test_tool_with_progress: [none, async (_, extra) => {
    for (const progress of [0, 50, 100]) {
      const progressToken = extra._meta?.progressToken;
      if (progressToken !== undefined) {
        await extra.sendNotification({ method: "notifications/progress", params: { progressToken, progress, total: 100 } });
      }
      await pause(50);
    }
    return [text("done")];
  }],
  test_error_handling: [none, () => {
    throw new Error("This tool intentionally returns an error for testing");
  }],
  test_sampling: [one("prompt"), async ({ prompt }, extra) => {
    const params = { messages: [{ role: "user", content: text(prompt) }], maxTokens: 100 };
    const answer = await extra.sendRequest({ method: "sampling/createMessage", params }, types.CreateMessageResultSchema);
    return [text(`LLM response: ${answer.content.text}`)];
  }],
  test_elicitation: [one("message"), async ({ message }, extra) => {
    const field = (description) => ({ type: "string", description });
    const asked = form({ username: field("User's response"), email: field("User's email address") }, ["username", "email"]);
    return [text(`User response: ${await ask(extra, message, asked)}`)];
  }],
  test_elicitation_sep1034_defaults: [none, async (_, extra) => {
    const asked = form({
      name: { type: "string", default: "John Doe" },
      age: { type: "integer", default: 30 },
      score: { type: "number", default: 95.5 },
      status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
      verified: { type: "boolean", default: true },
    });
    return [text(`Elicitation completed: ${await ask(extra, "Defaults?", asked)}`)];
  }],
  test_elicitation_sep1330_enums: [none, async (_, extra) => {
    const asked = form({
      untitledSingle: { type: "string", enum: options },
      titledSingle: { type: "string", oneOf: titled("Option") },
      legacyEnum: { type: "string", enum: ["opt1", "opt2", "opt3"], enumNames: ["Option One", "Option Two", "Option Three"] },
      untitledMulti: { type: "array", items: { type: "string", enum: options } },
      titledMulti: { type: "array", items: { anyOf: titled("Choice") } },
    });
    return [text(`Elicitation completed: ${await ask(extra, "Enums?", asked)}`)];
  }],
  test_reconnection: [none, async (_, extra) => {
    // Over HTTP, the client takes up the stream again.
    extra.closeSSEStream?.();
    await pause(100);
    return [text("Reconnection test completed successfully.")];
  }],
  test_long_text: [none, () => [text("a line of a log\n".repeat(10_000))]],
  test_long_table: [none, () => {
    const rows = Array.from({ length: 2000 }, (_, n) => ({ n, text: `row ${n} of the table` }));
    const structuredContent = { total: rows.length, rows };
    return { content: [text(JSON.stringify(structuredContent))], structuredContent };
  }, {
    type: "object",
    properties: {
      total: { type: "integer" },
      rows: { type: "array", items: { type: "object", properties: { n: { type: "integer" }, text: { type: "string" } }, required: ["n", "text"] } },
    },
    required: ["total", "rows"],
    additionalProperties: false,
  }],
  json_schema_2020_12_tool: [{
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    $defs: { address: { type: "object", properties: { street: { type: "string" }, city: { type: "string" } } } },
    properties: { name: { type: "string" }, address: { $ref: "#/$defs/address" } },
    additionalProperties: false,
  }, () => [text("done")]],
};

const named = (name, ...names) => ({ name, description: name, arguments: names.map((name) => ({ name, description: name, required: true })) });
const prompts = [
  [named("test_simple_prompt"), () => [text("This is a simple prompt for testing.")]],
  [named("test_prompt_with_arguments", "arg1", "arg2"), ({ arg1, arg2 }) => [text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)]],
  [named("test_prompt_with_embedded_resource", "resourceUri"), ({ resourceUri }) => [
    resource(resourceUri, "text/plain", "Embedded resource content for testing."),
    text("Please process the embedded resource above."),
  ]],
  [named("test_prompt_with_image"), () => [image, text("Please analyze the image above.")]],
];

const contents = (uri) => {
  const id = uri.match(/^test:\/\/template\/(.*)\/data$/)?.[1];
  if (id) {
    return { uri, mimeType: "application/json", text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) };
  }
  switch (uri) {
    case "test://static-text":
      return { uri, mimeType: "text/plain", text: "This is the content of the static text resource." };
    case "test://static-binary":
      return { uri, mimeType: "image/png", blob: png };
    case "test://watched-resource":
      return { uri, mimeType: "text/plain", text: "watched" };
    default:
      throw new Error("no such resource");
  }
};

function server() {
  const server = new Server(
    { name: "conformance", version: "1" },
    { capabilities: { tools: {}, prompts: {}, resources: { subscribe: true }, logging: {}, completions: {} } },
  );
  const on = (schema, answer) => server.setRequestHandler(types[`${schema}RequestSchema`], answer);
  on("ListTools", () => ({ tools: Object.entries(tools).map(([name, [inputSchema, , outputSchema]]) => ({ name, description: name, inputSchema, outputSchema })) }));
  on("CallTool", async ({ params }, extra) => {
    const tool = tools[params.name];
    if (!tool) {
      throw new types.McpError(types.ErrorCode.InvalidParams, "no such tool");
    }
    try {
      const made = await tool[1](params.arguments ?? {}, extra);
      return Array.isArray(made) ? { content: made } : made;
    } catch (error) {
      return { content: [text(error.message)], isError: true };
    }
  });
  on("ListPrompts", () => ({ prompts: prompts.map(([prompt]) => prompt) }));
  on("GetPrompt", ({ params }) => {
    const [, made] = prompts.find(([prompt]) => prompt.name === params.name);
    return { messages: made(params.arguments ?? {}).map((content) => ({ role: "user", content })) };
  });
  const listed = ["test://static-text", "test://static-binary", "test://watched-resource"];
  on("ListResources", () => ({ resources: listed.map((uri) => ({ uri, name: uri, description: uri })) }));
  const template = { uriTemplate: "test://template/{id}/data", name: "template", description: "template" };
  on("ListResourceTemplates", () => ({ resourceTemplates: [template] }));
  on("ReadResource", ({ params }) => ({ contents: [contents(params.uri)] }));
  for (const schema of ["Subscribe", "Unsubscribe", "SetLevel"]) {
    on(schema, () => ({}));
  }
  on("Complete", () => ({ completion: { values: ["paris", "park", "party"], total: 150, hasMore: false } }));
  return server;
}

/** Events of one session, to be taken up again. */
class Events {
  #all = [];
  async storeEvent(stream, message) {
    return `${this.#all.push({ stream, message }) - 1}`;
  }
  async getStreamIdForEventId(id) {
    return this.#all[Number(id)]?.stream;
  }
  async replayEventsAfter(id, { send }) {
    const { stream } = this.#all[Number(id)];
    for (const [at, event] of this.#all.entries()) {
      if (at > Number(id) && event.stream === stream && Object.keys(event.message).length) {
        await send(`${at}`, event.message);
      }
    }
    return stream;
  }
}

if (transport === "stdio") {
  await server().connect(new StdioServerTransport());
} else {
  const sessions = new Map();
  const http = createServer(async (request, response) => {
    const allowed = [`localhost:${http.address().port}`, `127.0.0.1:${http.address().port}`];
    if (!allowed.includes(request.headers.host)) {
      response.writeHead(403).end();
      return;
    }
    const id = request.headers["mcp-session-id"];
    let session = sessions.get(id);
    if (id && !session) {
      response.writeHead(404).end();
      return;
    }
    if (!session) {
      session = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        eventStore: new Events(),
        retryInterval: 50,
        onsessioninitialized: (id) => sessions.set(id, session),
        onsessionclosed: (id) => sessions.delete(id),
      });
      await server().connect(session);
    }
    await session.handleRequest(request, response);
  });
  http.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${http.address().port}/mcp`));
}
