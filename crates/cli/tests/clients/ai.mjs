// Two prompts through the AI SDK: ai.mjs FOLDER CLIENT URL. Prints the answers as JSON.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, client, url] = process.argv.slice(2);
const installed = createRequire(folder + "/package.json");
const load = (name) => import(pathToFileURL(installed.resolve(name)));
const { generateText, jsonSchema, stepCountIs, streamText, tool } = await load("ai");

const ASKED = ["First task: look up the tables.", "Second task: look up more of them."];
const ROWS = [40, 400, 900, 2500];
const STATES = ["open", "closed", "waiting"];

const number = { type: "integer" };
const schema = (properties, required) => jsonSchema({ type: "object", properties, required });
const tools = {
  fetch: tool({
    description: "Fetches a table.",
    inputSchema: schema({ n: number }, ["n"]),
    execute: ({ n }) => {
      const row = (_, row) => `row ${row} of table ${n}: item-${(row * 7919 + n * 31) % 10007} is ${STATES[row % 3]}\n`;
      return Array.from({ length: ROWS[n % 4] }, row).join("");
    },
  }),
  read_file: tool({
    description: "Reads lines of a file.",
    inputSchema: schema({ path: { type: "string" }, offset: number, limit: number }, ["path"]),
    execute: ({ path, offset = 1, limit = 200 }) =>
      readFileSync(path, "utf8").split("\n").slice(offset - 1, offset - 1 + limit).join("\n"),
  }),
};

const MODELS = {
  openai: async () => (await load("@ai-sdk/openai")).createOpenAI({ baseURL: url + "/openai/v1", apiKey: "none" }).responses("scripted"),
  chat: async () => (await load("@ai-sdk/openai")).createOpenAI({ baseURL: url + "/openai/v1", apiKey: "none" }).chat("scripted"),
  anthropic: async () => (await load("@ai-sdk/anthropic")).createAnthropic({ baseURL: url + "/anthropic/v1", apiKey: "none" })("scripted"),
  google: async () => (await load("@ai-sdk/google")).createGoogleGenerativeAI({ baseURL: url + "/gemini/v1beta", apiKey: "none" })("scripted"),
};
const [, name, form] = client.match(/^ai-sdk-(\w+)(-stream)?$/);
const model = await MODELS[name]();

async function ask(messages) {
  const asked = { model, messages, tools, stopWhen: stepCountIs(50) };
  if (!form) return generateText(asked);
  let failed;
  const stream = streamText({ ...asked, onError: ({ error }) => (failed = error) });
  await stream.consumeStream();
  if (failed) throw failed;
  return { text: await stream.text, response: await stream.response };
}

const answers = [];
let messages = [];
for (const content of ASKED) {
  messages.push({ role: "user", content });
  for (let tried = 0; ; tried++) {
    try {
      const { text, response } = await ask(messages);
      answers.push(text);
      messages = [...messages, ...response.messages];
      break;
    } catch (error) {
      console.error(String(error));
      if (tried === 3) throw error;
    }
  }
}
console.log(JSON.stringify(answers));
