// Offcut's plug-in for OpenCode, placed by `offcut install`.
//
// A long tool result is stored by `offcut hook opencode`, and the model is shown a preview and the path
// of the rest. If that fails for any reason, the result stays as it was.
import { spawn } from "node:child_process";

const COMMAND = __OFFCUT_COMMAND__;
// The paths of the store.
const STORES = __OFFCUT_STORES__;
// Shorter results, in bytes, never gain.
const MIN_BYTES = 1000;
const TIME_OUT_MS = 10_000;
// Results that the model has to see whole: the instructions of a skill.
const WHOLE = new Set(["skill"]);
// Results that were seen here, or by the other plug-in if the user and the project have one each.
const SEEN = (globalThis[Symbol.for("offcut.seen")] ??= new WeakSet());

/** The answer to an event; undefined if there is none. */
function ask(event) {
  return new Promise((resolve) => {
    const [program, ...args] = COMMAND;
    const child = spawn(program, args, { stdio: ["pipe", "pipe", "ignore"], windowsHide: true });
    const end = (answer) => {
      clearTimeout(timer);
      resolve(answer);
    };
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      // A process that it has started may still hold the pipe.
      child.stdout.destroy();
      end();
    }, TIME_OUT_MS);
    const chunks = [];
    child.on("error", () => end());
    child.stdin.on("error", () => {});
    child.stdout.on("data", (chunk) => chunks.push(chunk));
    child.on("close", () => end(Buffer.concat(chunks).toString()));
    child.stdin.end(JSON.stringify(event));
  });
}

/** The text or the texts that take the place of the event's output. */
async function shorten(event) {
  const isText = (text) => typeof text === "string";
  const texts = [event.tool_response].flat();
  if (!texts.every(isText) || Buffer.byteLength(texts.join("")) < MIN_BYTES) return event.tool_response;
  try {
    const { output } = JSON.parse(await ask(event));
    const isList = Array.isArray(output) && output.every(isText) && [texts.length, 1].includes(output.length);
    return (Array.isArray(event.tool_response) ? isList : isText(output)) ? output : event.tool_response;
  } catch {
    return event.tool_response;
  }
}

/** The text of a page of a file, with the file's numbers before its lines, and what OpenCode puts before and after it. */
function page({ output, metadata }) {
  if (typeof output !== "string") return undefined;
  const { type, text, lineStart } = metadata?.display ?? {};
  if (type !== "file" || typeof text !== "string" || metadata.loaded?.length) return undefined;
  const numbered = text.split("\n").map((line, at) => `${lineStart + at}: ${line}`).join("\n");
  const [head, tail, ...rest] = output.split(numbered);
  return tail === undefined || rest.length ? undefined : { head, text: numbered, tail };
}

/** Lets the agent read the store. For everything else the user's permissions stay as they are. */
function allowStore(config) {
  const object = (rules) => (typeof rules === "string" ? { "*": rules } : (rules ?? {}));
  const { external_directory, ...rules } = object(config.permission);
  const stored = STORES.map((store) => [`${store.replaceAll("\\", "/")}/*`, "allow"]);
  // The last rule that matches counts.
  const external = { ...object(external_directory), ...Object.fromEntries(stored) };
  config.permission = { ...rules, external_directory: external };
}

export const Offcut = async ({ directory }) => ({
  config: async (config) => {
    // Otherwise OpenCode refuses to read outside the project, and without a user to ask the run ends.
    allowStore(config);
  },

  "tool.execute.after": async (call, result) => {
    if (!result || WHOLE.has(call.tool) || SEEN.has(result)) return;
    SEEN.add(result);
    const shown = call.tool === "read" ? page(result) : undefined;
    const event = {
      session_id: call.sessionID,
      cwd: directory,
      tool_use_id: call.callID,
      tool_name: call.tool,
      tool_input: call.args ?? {},
    };
    if (Array.isArray(result.content)) {
      // A result of MCP, not yet cut: blocks, of which the model is shown the texts.
      const holder = (block) => (block?.type === "resource" ? block.resource : block);
      const blocks = result.content.filter((block) => typeof holder(block)?.text === "string");
      const texts = await shorten({ ...event, tool_response: blocks.map((block) => holder(block).text) });
      for (const [at, block] of blocks.entries()) {
        // Many texts may have become one.
        if (at < texts.length) holder(block).text = texts[at];
        else result.content.splice(result.content.indexOf(block), 1);
      }
    } else if (shown) {
      const shorter = await shorten({ ...event, tool_response: shown.text });
      if (shorter !== shown.text) result.output = shown.head + shorter + shown.tail;
    } else if (typeof result.output === "string") {
      // OpenCode cuts what its own tools return, and names the file that has all of it.
      const { truncated, outputPath } = result.metadata ?? {};
      const spilled = truncated === true && typeof outputPath === "string" ? outputPath : undefined;
      result.output = await shorten({ ...event, tool_response: result.output, spilled });
    }
  },
});
