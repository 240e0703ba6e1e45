// Does in Node what test_traces.py asks for, a line of JSON for each.
import { createInterface } from "node:readline";
import { Reduction } from "offcut";

for await (const line of createInterface({ input: process.stdin })) {
  const { store, sessions, body, field, format } = JSON.parse(line);
  const reduction = sessions.reduce((one, id) => one.session(id), Reduction.inDir(store));
  if (!field) {
    console.log(await reduction.reduce(body));
    continue;
  }
  const { [field]: messages, tools } = JSON.parse(body);
  await reduction.clear(messages, { format, tools });
  console.log(JSON.stringify(messages));
}
