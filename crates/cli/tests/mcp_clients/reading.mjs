// The official TypeScript client, and what is read through it of a stored result.
import { pathToFileURL } from "node:url";

export const READER = "read_stored_result";

// A client of a server that is a command, or at a URL.
export async function connect(sdk, command, args) {
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
  return client;
}

// The lengths in a hint's header tell where its sentence and its preview are.
export function parse(text) {
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

// The whole text at a location, page by page.
export async function whole(client, path) {
  let all = "";
  for (let offset = "1"; offset; ) {
    const page = await client.callTool({ name: READER, arguments: { path, offset } });
    const { prose, preview } = parse(page.content[0].text);
    all += preview;
    offset = /offset (\S+?)\.$/.exec(prose)?.[1];
  }
  return all;
}
