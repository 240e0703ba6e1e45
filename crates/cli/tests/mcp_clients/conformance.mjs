// A client for the official conformance suite, by the official TypeScript SDK: over HTTP, or through the gateway if OFFCUT names
// the program, over stdio or, if OFFCUT_LISTENS is set, over HTTP.
// node conformance.mjs SDK URL, with the scenario in MCP_CONFORMANCE_SCENARIO
import { spawn } from "node:child_process";
import { once } from "node:events";
import { pathToFileURL } from "node:url";

const [sdk, server] = process.argv.slice(2);
const of = (file) => import(pathToFileURL(`${sdk}/dist/esm/${file}.js`));
const { Client } = await of("client/index");
const { UnauthorizedError } = await of("client/auth");
const { StdioClientTransport } = await of("client/stdio");
const { StreamableHTTPClientTransport } = await of("client/streamableHttp");
const { ElicitRequestSchema } = await of("types");

const { OFFCUT: offcut, OFFCUT_LISTENS: listens, MCP_CONFORMANCE_CONTEXT: context } = process.env;
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? "";
let url = server;
let gateway;
if (listens) {
  gateway = spawn(offcut, ["mcp", "--listen", "127.0.0.1:0", "--url", server], { stdio: ["ignore", "pipe", "inherit"] });
  url = `${(await once(gateway.stdout, "data"))[0]}`.trim();
}

/** Logs in without a person: the suite's authorization server asks nothing. */
class Login {
  redirectUrl = "http://localhost:3000/callback";
  clientMetadataUrl = scenario === "auth/basic-cimd" ? "https://conformance-test.local/client-metadata.json" : undefined;
  clientMetadata = {
    client_name: "test",
    redirect_uris: [this.redirectUrl],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
  };
  #given = context && JSON.parse(context).client_id ? JSON.parse(context) : undefined;
  clientInformation = () => this.#given;
  saveClientInformation = (given) => void (this.#given = given);
  tokens = () => this.given;
  saveTokens = (tokens) => void (this.given = tokens);
  codeVerifier = () => this.verifier;
  saveCodeVerifier = (verifier) => void (this.verifier = verifier);
  async redirectToAuthorization(to) {
    while (!`${to}`.startsWith(this.redirectUrl)) {
      const answer = await fetch(to, { redirect: "manual" });
      to = new URL(answer.headers.get("location"), to);
    }
    this.code = to.searchParams.get("code");
  }
}

const authProvider = scenario.startsWith("auth/") ? new Login() : undefined;
const transport = () =>
  offcut && !listens
    ? new StdioClientTransport({ command: offcut, args: ["mcp", "--url", url], env: process.env, stderr: "inherit" })
    : new StreamableHTTPClientTransport(new URL(url), { authProvider });

let client;
async function connect() {
  client = new Client({ name: "test", version: "1" }, { capabilities: { elicitation: { form: { applyDefaults: true } } } });
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: "accept", content: {} }));
  await client.connect(transport());
}

/** Does something again once logged in. */
async function retried(something) {
  for (let tries = 0; ; tries += 1) {
    try {
      return await something();
    } catch (error) {
      if (!(error instanceof UnauthorizedError) || !authProvider || tries === 3) throw error;
      await new StreamableHTTPClientTransport(new URL(url), { authProvider }).finishAuth(authProvider.code);
    }
  }
}

try {
  await retried(connect);
  const { tools } = await retried(() => client.listTools());
  const own = tools.filter((tool) => !["read_stored_result", "read_file"].includes(tool.name));
  for (const { name } of own) {
    await retried(() => client.callTool({ name, arguments: name === "add_numbers" ? { a: 5, b: 3 } : {} }));
  }
  await client.close();
} catch (error) {
  // The suite judges what its server has seen.
  console.error(error.message);
  process.exitCode = 1;
} finally {
  gateway?.kill();
}
