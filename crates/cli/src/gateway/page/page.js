const PAGE = 20, EVERY = 2000;
const state = { token: location.hash.slice(1), since: 0, seconds: 0, most: 1000, shown: PAGE, chosen: null, drawn: "" };
const conversations = new Map(), rows = new Map();

const size = (bytes) => (bytes < 1000 ? `${bytes} B` : bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB`
  : bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(1)} GB`);
const tokens = (bytes) => "≈ " + (bytes < 4e6 ? kilo(Math.round(bytes / 4)) : (bytes / 4e6).toFixed(1) + "M");
const billed = (bytes, fresh, card) => (card.cached * (bytes - fresh) + card.fresh * fresh) / 4e6;
const money = (amount, card) => `${card.currency} ${amount.toFixed(amount < 100 ? 2 : 0)}`;
const share = (before, after) => (before > 0 ? percent(1 - after / before) : "–");
const ago = (seconds) => (seconds < 60 ? `${seconds} s ago` : seconds < 3600 ? `${Math.floor(seconds / 60)} min ago` : `${Math.floor(seconds / 3600)} h ago`);

/** Sets a text only where it has changed, so that nothing is drawn or read out for nothing. */
function set(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

async function ask(path) {
  const reply = await fetch("/page" + path, { headers: { authorization: "Bearer " + state.token }, cache: "no-store" });
  if (!reply.ok) throw Object.assign(new Error(), { status: reply.status });
  return reply.json();
}

function tiles(figures) {
  const card = figures.card, before = billed(figures.before, figures.before_fresh, card), after = billed(figures.after, figures.after_fresh, card);
  const shown = {
    "conversations": number(figures.known), "calls": number(figures.calls), "before": size(figures.before), "after": size(figures.after),
    "saved": share(figures.before, figures.after), "tokens saved": tokens(Math.max(0, figures.before - figures.after)),
    ...(card.currency ? { "cost before": money(before, card), "cost after": money(after, card) } : {}), "bill saved": share(before, after),
    "results cut": number(figures.cut), "cleared": number(figures.cleared), "read back": number(figures.reads),
    "passed open": number(figures.passed.reduce((sum, one) => sum + one.count, 0)),
  };
  const into = byId("tiles");
  for (const [name, text] of Object.entries(shown)) {
    let tile = document.getElementById("tile " + name);
    if (!tile) {
      tile = element("dd", { id: "tile " + name });
      into.append(element("div", {}, element("dt", {}, name), tile));
    }
    set(tile, text);
  }
}

/** The prices that the bill is an estimate by. */
function prices(card) {
  return card.currency ? `Costs are an estimate: ${card.currency} ${card.cached} for a million cached tokens, ${card.fresh} for fresh ones (${card.source}).`
    : `The bill is an estimate: a cached token weighs ${card.cached}, a fresh one ${card.fresh}.`;
}

const orders = {
  last: (one, two) => two.last - one.last || two.number - one.number,
  saved: (one, two) => (two.before - two.after) - (one.before - one.after),
  before: (one, two) => two.before - one.before,
};

function row(one) {
  let made = rows.get(one.number);
  if (!made) {
    const open = element("button", { type: "button", "aria-label": `Conversation ${one.number}` }, String(one.number));
    open.addEventListener("click", () => choose(one.number));
    made = element("tr", {}, element("td", {}, open), ...Array.from({ length: 10 }, () => element("td")));
    rows.set(one.number, made);
  }
  const texts = [one.upstream, number(one.calls), size(one.before), size(one.after), share(one.before, one.after), number(one.cut), number(one.cleared),
    number(one.reads), number(one.passed), ago(Math.max(0, state.seconds - one.last))];
  texts.forEach((text, at) => set(made.cells[at + 1], text));
  if (state.chosen === one.number) made.setAttribute("aria-current", "true");
  else made.removeAttribute("aria-current");
  return made;
}

function list() {
  const sorted = [...conversations.values()].sort(orders[byId("order").value]);
  for (const gone of sorted.slice(state.most)) {
    conversations.delete(gone.number);
    rows.delete(gone.number);
  }
  const into = byId("rows"), made = sorted.slice(0, state.shown).map(row);
  // A row that has the focus must not move under it.
  const isHeld = into.contains(document.activeElement) && made.length === into.children.length;
  if (!isHeld && made.some((one, at) => into.children[at] !== one) || made.length !== into.children.length) into.replaceChildren(...made);
  const left = Math.min(sorted.length, state.most) - made.length;
  set(byId("shown"), sorted.length ? `${made.length} of ${sorted.length} shown; the newest ${state.most} are kept.` : "None yet: an agent's conversation is listed after its first call of a tool.");
  byId("more").hidden = left <= 0;
}

/** Fills the table of a name, or shows that there is nothing to list. */
function fill(name, all) {
  byId("no-" + name).hidden = all.length > 0;
  byId("all-" + name).hidden = all.length === 0;
  const text = JSON.stringify(all);
  if (state[name] === text) return;
  state[name] = text;
  byId(name).replaceChildren(...all.map((cells) => element("tr", {}, ...cells.map((cell) => element("td", {}, cell)))));
}

function draw(one) {
  const text = JSON.stringify(one) + byId("sizes").clientWidth;
  if (state.drawn === text) return;
  state.drawn = text;
  const count = one.sizes.length, most = Math.max(1, ...one.sizes.flat()), first = one.calls - count + 1;
  const svg = chart(byId("sizes"), 240, (svg, width, height) => {
    const left = 60, right = 10, top = 10, bottom = 24;
    const x = (at) => left + (width - left - right) * at / Math.max(1, count - 1);
    const y = (bytes) => height - bottom - (height - top - bottom) * bytes / most;
    for (let step = 0; step <= 4; step += 1) {
      const bytes = most * step / 4;
      svg.append(element("svg:line", { class: "axis", x1: left, x2: width - right, y1: y(bytes), y2: y(bytes) }),
        element("svg:text", { x: left - 6, y: y(bytes) + 4, "text-anchor": "end" }, size(Math.round(bytes))));
    }
    svg.append(element("svg:text", { x: width - right, y: height - 4, "text-anchor": "end" }, `calls ${first} to ${one.calls} →`));
    for (const which of [0, 1]) {
      const points = one.sizes.map((call, at) => `${x(at).toFixed(1)},${y(call[which]).toFixed(1)}`).join(" ");
      svg.append(element("svg:polyline", { points, style: `stroke: var(--c${which})` }));
      if (count === 1) svg.append(element("svg:circle", { cx: x(0), cy: y(one.sizes[0][which]), r: 4, style: `fill: var(--c${which})` }));
    }
  });
  svg.setAttribute("aria-label", `Bytes of each call: the last was ${size(one.sizes.at(-1)[0])} before and ${size(one.sizes.at(-1)[1])} after.`);
  fill("changes", [...one.changes].reverse().map((change) =>
    [String(change.call), change.what, change.tool || "–", change.why, size(change.before), size(change.after)]));
  fill("missed", [...one.misses].reverse().map((miss) => [String(miss.call), miss.kind, miss.part, tokens(4 * miss.tokens), miss.meaning]));
}

async function details() {
  if (state.chosen === null) return;
  const number = state.chosen;
  try {
    const one = await ask("/conversations/" + number);
    if (number !== state.chosen) return;
    byId("one").hidden = false;
    set(byId("title"), [`Conversation ${number}`, one.upstream, ...Object.values(one.whose ?? {})].join(", "));
    draw(one);
  } catch (error) {
    if (error.status === 404) { state.chosen = null; byId("one").hidden = true; } else throw error;
  }
}

async function choose(number) {
  state.chosen = number;
  list();
  try { await details(); byId("title").focus(); } catch { set(byId("state"), "The server does not answer."); }
}

async function look() {
  try {
    const figures = await ask("/figures?since=" + state.since);
    if (figures.seconds < state.seconds) { conversations.clear(); rows.clear(); }
    Object.assign(state, { since: figures.changed, seconds: figures.seconds, most: figures.most });
    for (const one of figures.conversations) conversations.set(one.number, one);
    tiles(figures);
    list();
    fill("passed", figures.passed.map((one) => [one.reason, number(one.count), one.meaning]));
    const bySize = [...figures.senders].sort((one, other) => other.after - one.after);
    fill("senders", bySize.map((one) => [one.tenant, one.model, one.client, number(one.calls), size(one.after), share(one.before, one.after),
      number(one.fresh_tokens), one.cached_tokens === null ? "–" : number(one.cached_tokens)]));
    fill("misses", figures.misses.map((one) => [one.kind, number(one.count), tokens(4 * one.tokens), one.meaning, one.cure]));
    await details();
    byId("ask").hidden = true;
    set(byId("state"), "Live. No content is shown; tokens are bytes divided by four. " + prices(figures.card));
  } catch (error) {
    byId("ask").hidden = error.status !== 401;
    set(byId("state"), error.status === 401 ? "The server asks for the token that it has printed at its start." : "The server does not answer. Trying again.");
  }
}

byId("order").addEventListener("change", list);
byId("more").addEventListener("click", () => { state.shown += PAGE; list(); });
byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  state.token = byId("token").value.trim();
  look();
});
(async () => {
  for (;;) {
    if (!document.hidden) await look();
    await new Promise((resolve) => setTimeout(resolve, EVERY));
  }
})();
