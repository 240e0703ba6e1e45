const data = JSON.parse(document.getElementById("data").textContent);
const colour = (policy) => `var(--c${policy % 8})`;

const chosen = { trace: -1, policy: Math.min(1, data.policies.length - 1) };
const none = data.totals[0];
const relative = (part, whole) => (whole > 0 ? part / whole : 1);

const shownTraces = () => (chosen.trace < 0 ? data.traces : [data.traces[chosen.trace]]);
const worst = (policy) => Math.max(...shownTraces().map((trace) => relative(trace.rows[policy].bill, trace.rows[0].bill)));

const columns = [
  ["tokens", "All input tokens that were sent.", (row, base) => relative(row.tokens, base.tokens)],
  ["peak", "The tokens of the largest call.", (row) => kilo(row.peak)],
  ["bill", `What was sent, at ${data.card.cached} for a token that was in the previous request and ${data.card.fresh} for one that did not.`,
    (row, base) => relative(row.bill, base.bill)],
  ["with reads", "The bill plus the cost of reading back what was used but not shown: one more call and a page of the reader for each stretch of stored content; pages stay.",
    (row, base) => relative(row.bill_pages, base.bill)],
  ["worst", "The highest bill of any transcript, relative to doing nothing on it.", (row, base, policy) => worst(policy)],
  ["reads/100", "Such pages for each 100 calls. Each costs time, and a model may not think of reading back.",
    (row) => (row.model_calls ? (100 * row.pages / row.model_calls).toFixed(1) : "0.0")],
  ["breaks", "Calls that do not begin with the whole previous request, so that the prompt cache misses.", (row) => relative(row.breaks, row.model_calls || 1)],
  ["named", "Of the distinctive strings that the model used from results: those that were shown at that call.", (row) => row.uses ? row.named : "-"],
  ["shown", "The same, together with the text around them.", (row) => row.uses ? row.shown : "-"],
  ["quoted", "Of the lines that the model repeated from results: those that were shown. Edits need them.", (row) => row.quotes ? row.quoted : "-"],
  ...[
    ["numbers", "Numbers of three digits and more that were used from results, and shown."],
    ["flags", "The same for options, such as --all."],
    ["nouns", "The same for two capitalised words in a row."],
    ["verdicts", "Exit codes and counts of commands that test, build, lint, check or install: those that were shown."],
    ["failing", "The same for lines that report failures."],
    ["edits", "Old texts of edits that were shown at that call."],
  ].map(([kind, meaning]) => [kind, meaning, (row) => row.seen[kind].needed ? row.seen[kind].seen : "-"]),
  ["reachable", "Strings that were shown, or that a hint leads to.", (row) => row.uses ? row.reachable : "-"],
  ["stored", "Stored results and their bytes.", (row) => `${number(row.stored_objects)} (${(row.stored_bytes / 1e6).toFixed(1)} MB)`],
];

function cell(value) {
  if (typeof value !== "number") return element("td", {}, value);
  return element("td", { class: "bar", style: `--share: ${Math.min(100, 100 * value)}%` }, percent(value));
}

function policyTable(rows) {
  const head = element("tr", {}, element("th", {}, "policy"), ...columns.map(([name]) => element("th", {}, name)));
  const body = rows.map((row, policy) => element("tr", {}, element("td", {}, row.name), ...columns.map(([, , value]) => cell(value(row, rows[0], policy)))));
  return [element("thead", {}, head), element("tbody", {}, ...body)];
}

function drawPlane() {
  chart(byId("plane"), 260, (svg, width, height) => {
    const left = 46, right = 16, top = 28, bottom = 34;
    const costs = data.totals.map((row) => relative(row.bill_pages, none.bill));
    const [low, high] = [Math.min(...costs, 1) * 0.95, Math.max(...costs, 1) * 1.05];
    const least = Math.min(...data.totals.map((row) => row.named)) * 0.95;
    const x = (cost) => left + (width - left - right) * (cost - low) / (high - low);
    const y = (named) => top + (height - top - bottom) * (1 - named) / (1 - least || 1);
    for (let step = 0; step <= 3; step += 1) {
      const named = least + (1 - least) * step / 3, cost = low + (high - low) * step / 3;
      svg.append(
        element("svg:line", { class: "axis", x1: left, x2: width - right, y1: y(named), y2: y(named) }),
        element("svg:text", { x: left - 6, y: y(named) + 4, "text-anchor": "end" }, Math.round(100 * named) + " %"),
        element("svg:text", { x: x(cost), y: height - 18, "text-anchor": step === 3 ? "end" : "middle" }, Math.round(100 * cost) + " %"),
      );
    }
    svg.append(
      element("svg:text", { x: 4, y: 12 }, "↑ strings that the model used and still saw"),
      element("svg:text", { x: width - right, y: height - 3, "text-anchor": "end" }, "← bill with reads, in % of doing nothing"),
    );
    for (const [policy, row] of data.totals.entries()) {
      svg.append(element("svg:circle", { cx: x(costs[policy]), cy: y(row.named), r: 5, style: `fill: ${colour(policy)}` }));
    }
    // Names that would overlap are moved apart, from the top down. They are drawn over the points.
    const names = [];
    const order = data.totals.map((_, policy) => policy).sort((one, two) => data.totals[two].named - data.totals[one].named);
    for (const policy of order) {
      const row = data.totals[policy], at = x(costs[policy]), end = at > width * 0.6;
      const length = 8 * row.name.length, from = end ? at - 9 - length : at + 9;
      let level = y(row.named) + 4;
      for (const other of names) if (from < other.to && other.from < from + length && Math.abs(level - other.level) < 16) level = other.level + 16;
      names.push({ from, to: from + length, level });
      svg.append(element("svg:text", { class: "name", x: at + (end ? -9 : 9), y: level, "text-anchor": end ? "end" : "start" }, row.name));
    }
  });
}

function lines(svg, trace, x, y) {
  data.policies.forEach((_, policy) => {
    const points = trace.contexts[policy].map((tokens, call) => `${x(call).toFixed(1)},${y(tokens).toFixed(1)}`).join(" ");
    svg.append(element("svg:polyline", { points, style: `stroke: ${colour(policy)}` }));
  });
}

function drawTrace(into, trace) {
  const holder = element("div", { class: "chart" }), reading = element("div", { class: "reading" }, "Move over the chart, or touch it, for figures.");
  into.replaceChildren(holder, reading);
  const calls = trace.contexts[0].length, most = Math.max(1, ...trace.contexts.flat());
  const left = 46, right = 10, top = 10, bottom = 24;
  const scales = (width, height) => [
    (call) => left + (width - left - right) * call / Math.max(1, calls - 1),
    (tokens) => height - bottom - (height - top - bottom) * tokens / most,
  ];
  const svg = chart(holder, 280, (svg, width, height) => {
    const [x, y] = scales(width, height);
    for (let step = 0; step <= 4; step += 1) {
      const tokens = most * step / 4;
      svg.append(
        element("svg:line", { class: "axis", x1: left, x2: width - right, y1: y(tokens), y2: y(tokens) }),
        element("svg:text", { x: left - 6, y: y(tokens) + 4, "text-anchor": "end" }, kilo(Math.round(tokens))),
      );
    }
    svg.append(element("svg:text", { x: width - right, y: height - 4, "text-anchor": "end" }, `tokens sent at each of ${calls} model calls →`));
    lines(svg, trace, x, y);
    const passes = new Set(trace.changes[chosen.policy].filter(({ outcome }) => column(outcome) !== "truncated").map(({ call }) => call));
    for (const call of passes) {
      svg.append(element("svg:circle", { cx: x(call), cy: y(trace.contexts[chosen.policy][call] || 0), r: 4, style: `fill: ${colour(chosen.policy)}` },
        element("svg:title", {}, `cleared before call ${call + 1}`)));
    }
  });
  const cursor = element("svg:line", { class: "axis", y1: top, y2: 280 - bottom, style: "stroke: var(--soft); visibility: hidden" });
  svg.append(cursor);
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect(), share = (event.clientX - box.left - left) / Math.max(1, box.width - left - right);
    const call = Math.max(0, Math.min(calls - 1, Math.round(share * (calls - 1))));
    const at = scales(box.width, 280)[0](call);
    cursor.setAttribute("x1", at);
    cursor.setAttribute("x2", at);
    cursor.style.visibility = "visible";
    const sizes = data.policies.map((name, policy) => `${name} ${number(trace.contexts[policy][call])}`);
    reading.textContent = `Call ${call + 1}: ${sizes.join(" · ")} tokens`;
  });
}

function drawAll(into) {
  const grid = element("div", { class: "grid" });
  into.replaceChildren(grid);
  data.traces.forEach((trace, index) => {
    const holder = element("div"), button = element("button", { type: "button" }, trace.name.split("/").pop(), holder);
    button.addEventListener("click", () => choose(index));
    grid.append(button);
    const calls = trace.contexts[0].length, most = Math.max(1, ...trace.contexts.flat());
    chart(holder, 70, (svg, width) => {
      lines(svg, trace, (call) => width * call / Math.max(1, calls - 1), (tokens) => 68 - 66 * tokens / most);
    });
  });
}

function drawContexts() {
  byId("legend").replaceChildren(...data.policies.map((name, policy) => element("span", { style: `--colour: ${colour(policy)}` }, name)));
  if (chosen.trace < 0) drawAll(byId("contexts"));
  else drawTrace(byId("contexts"), data.traces[chosen.trace]);
}

function table(head, rows) {
  const line = (cells, name) => element("tr", {}, ...cells.map((text) => element(name, {}, String(text))));
  return element("div", { class: "wide" }, element("table", {}, element("thead", {}, line(head, "th")), element("tbody", {}, ...rows.map((row) => line(row, "td")))));
}

// What is paged has arrived too long, like what is truncated.
const column = (outcome) => ({ truncated: "truncated", paged: "truncated" })[outcome] || "cleared";

function byTool(traces) {
  const tools = new Map();
  for (const trace of traces) {
    for (const { message, outcome, before, after } of trace.changes[chosen.policy]) {
      const tool = trace.tools[message], sum = tools.get(tool) || { truncated: 0, cleared: 0, saved: 0 };
      sum[column(outcome)] += 1;
      sum.saved += before - after;
      tools.set(tool, sum);
    }
  }
  const rows = [...tools].sort((one, two) => two[1].saved - one[1].saved);
  return table(["tool", "truncated", "cleared", "tokens less"], rows.map(([tool, sum]) => [tool || "(no name)", sum.truncated, sum.cleared, number(sum.saved)]));
}

function drawChanges() {
  const traces = shownTraces();
  const shown = [byTool(traces)];
  if (traces.every((trace) => trace.changes[chosen.policy].length === 0)) {
    byId("changes").replaceChildren(element("p", { class: "lead" }, `Nothing, under ${data.policies[chosen.policy]}.`));
    return;
  }
  if (chosen.trace < 0) {
    shown.push(element("p", { class: "lead" }, "Choose a transcript to see each change, call by call."));
  } else {
    const calls = new Map();
    for (const change of traces[0].changes[chosen.policy]) calls.set(change.call, [...(calls.get(change.call) || []), change]);
    for (const [call, changes] of calls) {
      const saved = changes.reduce((sum, { before, after }) => sum + before - after, 0);
      const rows = changes.map(({ message, outcome, before, after }) => [traces[0].tools[message] || "(no name)", message + 1, outcome, number(before), number(after)]);
      shown.push(element("details", {},
        element("summary", {}, `Before call ${call + 1}: ${changes.length} shorter `, element("small", {}, `${number(saved)} tokens less`)),
        table(["tool", "message", "what", "tokens before", "after"], rows)));
    }
  }
  byId("changes").replaceChildren(...shown);
}

function excerpt([before, after], text) {
  return element("pre", {}, before, element("mark", {}, text), after);
}

// What had become of the result that held something.
function fate(trace, miss) {
  const last = trace.changes[chosen.policy].filter(({ message, call }) => message === miss.result && call <= miss.call).pop();
  if (!last) return "changed";
  return last.outcome === "truncated" ? "truncated on arrival" : `${last.outcome === "lost" ? "lost" : "cleared"} before call ${last.call + 1}`;
}

function drawMoment(trace, moment) {
  const uses = moment.uses.map(({ miss, around, used }) => element("div", { class: "use" },
    element("p", {}, `${miss.is_quote ? "A line" : "A string"} of what ${trace.tools[miss.result] || "a tool"} returned in message ${miss.result + 1}, ${fate(trace, miss)}`
      + (miss.is_reachable ? "; a hint leads to it." : "; nothing leads to it.")),
    excerpt(around, miss.text),
    element("p", {}, "The model wrote:"),
    excerpt(used, miss.text)));
  const more = moment.missed - moment.uses.length;
  if (more > 0) uses.push(element("p", { class: "lead" }, `and ${more} more`));
  return element("details", {},
    element("summary", {}, `${moment.missed} no longer shown at call ${moment.call + 1} `, element("small", {}, trace.name.split("/").pop())),
    ...uses);
}

function drawMoments() {
  const traces = shownTraces();
  const moments = traces.flatMap((trace) => trace.moments[chosen.policy].map((moment) => [trace, moment]));
  moments.sort((one, two) => two[1].missed - one[1].missed);
  const shown = moments.slice(0, 30).map(([trace, moment]) => drawMoment(trace, moment));
  if (shown.length === 0) shown.push(element("p", { class: "lead" }, `None under ${data.policies[chosen.policy]}: the model could still see everything it used.`));
  byId("moments").replaceChildren(...shown);
}

function choose(trace) {
  chosen.trace = trace;
  byId("trace").value = String(trace);
  draw();
}

function draw() {
  drawPlane();
  byId("policies").replaceChildren(...policyTable(chosen.trace < 0 ? data.totals : data.traces[chosen.trace].rows));
  drawContexts();
  drawChanges();
  drawMoments();
}

byId("sentence").textContent = data.sentence;
byId("summary").textContent = `${data.traces.length} transcripts, ${number(none.model_calls)} model calls, ${number(none.tokens)} tokens sent; `
  + `${number(none.uses)} strings and ${number(none.quotes)} lines that the model used from results.`;
byId("columns").append(...columns.flatMap(([name, meaning]) => [element("dt", {}, name), element("dd", {}, meaning)]));
byId("trace").append(element("option", { value: "-1" }, "all of them"), ...data.traces.map((trace, index) => element("option", { value: index }, trace.name)));
byId("policy").append(...data.policies.map((name, index) => element("option", { value: index }, name)));
byId("policy").value = String(chosen.policy);
byId("trace").addEventListener("change", (event) => choose(Number(event.target.value)));
byId("policy").addEventListener("change", (event) => { chosen.policy = Number(event.target.value); draw(); });
let width = innerWidth;
addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; draw(); } });
draw();
