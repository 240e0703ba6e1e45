// Offcut's extension for pi, placed by `offcut install`.
//
// A long tool result is stored by `offcut hook pi`, and the model is shown a preview and the path of the
// rest. If that fails for any reason, the result stays as it was.
import { spawn } from "node:child_process";

const COMMAND = __OFFCUT_COMMAND__;
// Shorter results, in bytes, never gain.
const MIN_BYTES = 1000;
const TIME_OUT_MS = 10_000;
// The line that pi adds below the output of a command that failed.
const STATUS = /\n\n(Command (?:exited with code -?\d+|timed out after [\d.]+ seconds|aborted))$/;

// Events that were seen here, or by the other extension if the user and the project have one each.
const SEEN = (globalThis[Symbol.for("offcut.seen")] ??= new WeakSet());

/** The answer to an event; undefined if there is none, or if the user aborts. */
function ask(event, signal) {
  return new Promise((resolve) => {
    const [program, ...args] = COMMAND;
    const child = spawn(program, args, { stdio: ["pipe", "pipe", "ignore"], windowsHide: true });
    const end = (answer) => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
      resolve(answer);
    };
    const stop = () => {
      child.kill("SIGKILL");
      // A process that it has started may still hold the pipe.
      child.stdout.destroy();
      end();
    };
    const timer = setTimeout(stop, TIME_OUT_MS);
    signal?.addEventListener("abort", stop);
    const chunks = [];
    child.on("error", () => end());
    child.stdin.on("error", () => {});
    child.stdout.on("data", (chunk) => chunks.push(chunk));
    child.on("close", () => end(Buffer.concat(chunks).toString()));
    child.stdin.end(JSON.stringify(event));
  });
}

/** The texts that take the place of the event's: as many, or one. */
async function shorten(event, signal) {
  const texts = event.tool_response;
  const isText = (text) => typeof text === "string";
  if (Buffer.byteLength(texts.join("")) < MIN_BYTES) return texts;
  try {
    const { output } = JSON.parse(await ask(event, signal));
    const isRight = Array.isArray(output) && output.every(isText) && [texts.length, 1].includes(output.length);
    return isRight ? output : texts;
  } catch {
    return texts;
  }
}

export default function (pi) {
  // A failed result doesn't name the file that has all of the output, but its updates did.
  const spilledBy = new Map();
  pi.on("tool_execution_update", (update) => {
    const path = update.partialResult?.details?.fullOutputPath;
    if (typeof path === "string") spilledBy.set(update.toolCallId, path);
  });
  pi.on("tool_execution_end", (event) => {
    spilledBy.delete(event.toolCallId);
  });

  pi.on("tool_result", async (event, ctx) => {
    if (SEEN.has(event)) return undefined;
    SEEN.add(event);
    const named = event.details?.fullOutputPath ?? spilledBy.get(event.toolCallId);
    const spilled = event.toolName === "bash" && typeof named === "string" ? named : undefined;
    const blocks = event.content.filter((block) => block.type === "text");
    const texts = blocks.map((block) => block.text);
    const status = spilled && event.isError ? (STATUS.exec(texts.at(-1))?.[0] ?? "") : "";
    if (status) texts.push(texts.pop().slice(0, -status.length));
    const shorter = await shorten(
      {
        session_id: ctx.sessionManager.getSessionId(),
        cwd: ctx.cwd,
        tool_use_id: event.toolCallId,
        tool_name: event.toolName,
        tool_input: event.input,
        tool_response: texts,
        spilled,
      },
      ctx.signal,
    );
    if (shorter === texts) return undefined;
    shorter.push(shorter.pop() + status);
    const content = event.content.flatMap((block) => {
      const at = blocks.indexOf(block);
      if (at < 0) return block;
      // Many texts may have become one.
      return at < shorter.length ? { ...block, text: shorter[at] } : [];
    });
    return { content };
  });
}
