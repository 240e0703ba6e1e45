// Offcut in the process: the class Reduction, over the module of this platform.
"use strict";

const { fileURLToPath } = require("node:url");
const { isDeepStrictEqual } = require("node:util");
const { spelled } = require("./json.js");

const platform = `offcut-${process.platform}-${process.arch}`;

class OffcutError extends Error {
  get name() {
    return this.constructor.name;
  }
}
class SettingsError extends OffcutError {}
class StoreError extends OffcutError {}
const classes = { SettingsError, StoreError, TypeError };

function load() {
  const hasMusl = process.platform === "linux" && !process.report.getReport().header.glibcVersionRuntime;
  const own = process.env.OFFCUT_MODULE;
  try {
    return require(own ?? `${platform}/${hasMusl ? "offcut.musl.node" : "offcut.node"}`);
  } catch (error) {
    const message =
      `the package ${platform} can't be loaded: reinstall offcut without --omit=optional, and have a bundler leave it ` +
      "external; if this platform has no package, use the program beside your agent (`cargo install offcut-cli`)";
    throw new OffcutError(own === undefined ? message : `OFFCUT_MODULE names no module of Offcut: ${own}`, { cause: error });
  }
}

const { Core, apply, areParts } = load();

function named(error) {
  const [, name, text] = /^(SettingsError|StoreError|TypeError): ([^]*)$/.exec(error?.message) ?? [];
  if (name) return new classes[name](text);
  // The module was given a value of another type.
  return /Expected$|^InvalidArg$/.test(error?.code) ? new TypeError(error.message.replace("rust type ", "")) : error;
}

/** Calls the core; its errors get their classes. */
async function later(answer) {
  try {
    return await answer();
  } catch (error) {
    throw named(error);
  }
}

function now(answer) {
  try {
    return answer();
  } catch (error) {
    throw named(error);
  }
}

/** The name of a value's kind, such as `Map`. */
const kindOf = (value) => Object.prototype.toString.call(value).slice(8, -1);

/** Refuses an option, or a field of a state, which JSON can't say as it is. One that is undefined is absent. */
function check(value, what, name = "", around = []) {
  if (typeof value === "function" && what === "option") {
    const cure = "handlers, previews and counters are for Rust, and here only `onReport` is one";
    throw new TypeError(`the option \`${name}\` is a function: ${cure}`);
  }
  if (value === undefined || typeof value?.toJSON === "function") return;
  if (typeof value === "string" && /\p{Surrogate}/u.test(value)) {
    throw new TypeError("a text has half of a surrogate pair: replace it");
  }
  if (around.includes(value)) throw new TypeError(`the ${what} \`${name}\` can't be circular: give what JSON can say`);
  if (Array.isArray(value)) return value.forEach((one) => check(one, what, name, [...around, value]));
  if (kindOf(value) === "Object") {
    for (const [key, one] of Object.entries(value)) {
      check(key, what);
      check(one, what, name ? `${name}.${key}` : key, [...around, value]);
    }
  } else if (value !== null && !["string", "boolean"].includes(typeof value) && !Number.isFinite(value)) {
    const kind = Number.isNaN(value) ? "NaN" : kindOf(value);
    throw new TypeError(`the ${what} \`${name}\` can't be ${kind}: give what JSON can say`);
  }
}

const checkFunction = (value, name) => {
  if (typeof value !== "function") throw new TypeError(`\`${name}\` must be a function, not ${kindOf(value)}`);
};

/** What was thrown, as text: it may be anything. */
function told(error) {
  try {
    return error instanceof Error ? `${error.name}: ${error.message}` : asText(error);
  } catch {}
  try {
    return String(error);
  } catch {
    return "an error that has no text";
  }
}

/** Kinds of objects that JSON says, even without fields. */
const sayable = new Set(["Object", "Array", "Number", "String", "Boolean", "Arguments"]);

/** What stands for a value of a result in JSON. */
function plain(key, value) {
  if (typeof value === "bigint") return value.toString();
  if (value instanceof Error) return told(value);
  if (value instanceof Map || value instanceof Set) return [...value];
  if (typeof value !== "object" || value === null) return value;
  const mayBeBare = value[Symbol.asyncIterator] || !sayable.has(kindOf(value));
  const isBare = mayBeBare && Object.keys(value).length === 0;
  if (isBare || typeof value.pipe === "function" || ArrayBuffer.isView(this[key])) throw unsaid(this[key]);
  return value;
}

function unsaid(value) {
  const kind = value?.constructor?.name || kindOf(value);
  return new TypeError(`no JSON says a ${kind}: a tool may return text, bytes, content parts, or what JSON can say`);
}

/** A result as text. */
function asText(result) {
  if (typeof result === "string") return result;
  if (result === undefined || result === null) return "";
  if (result instanceof Error) return told(result);
  const text = spelled(result, plain);
  if (text === undefined) throw unsaid(result);
  return text;
}

/** JSON of what may be a part; that of none if it can't be said. */
function spelledPart(one) {
  try {
    return spelled(one);
  } catch {
    return "null";
  }
}

/** A tool's result as the core takes it. */
function given(result) {
  if (result instanceof ArrayBuffer) return new Uint8Array(result);
  if (ArrayBuffer.isView(result)) return new Uint8Array(result.buffer, result.byteOffset, result.byteLength);
  if (Array.isArray(result) && result.length > 0 && result.every((one) => kindOf(one) === "Object")) {
    const parts = result.map(spelledPart);
    if (areParts(`[${parts.join(",")}]`)) return parts;
  }
  return asText(result);
}

/** The caller's own value with what has changed in its JSON: the rest may hold what JSON can't say. */
function kept(own, before, after) {
  if (isDeepStrictEqual(before, after)) return own;
  const areLists = Array.isArray(own) && Array.isArray(after) && own.length === after.length;
  if (areLists) return own.map((one, nth) => kept(one, before[nth], after[nth]));
  if (kindOf(own) !== "Object" || kindOf(after) !== "Object" || typeof own.toJSON === "function") return after;
  const staying = Object.entries(own).filter(([name]) => name in after || !(name in before));
  const isNew = ([name, one]) => !isDeepStrictEqual(before[name], one);
  const changed = Object.entries(after).filter(isNew).map(([name, one]) => [name, kept(own[name], before[name], one)]);
  return Object.fromEntries([...staying, ...changed]);
}

/** The messages after a pass; each is the caller's own where it has not changed. */
function placed(own, before, passed) {
  // A join changes their number. It is of those after the model's last one; the others are at their place.
  const isModels = (one) => one?.role === "assistant" || one?.role === "model";
  const start = passed.length === own.length ? own.length : before.findLastIndex(isModels) + 1;
  let at = start;
  return passed.map((one, nth) => {
    if (typeof one === "number") return own[one];
    const message = JSON.parse(one);
    if (nth < start) return kept(own[nth], before[nth], message);
    const same = before.findIndex((other, from) => from >= at && isDeepStrictEqual(other, message));
    if (same < 0) return message;
    at = same + 1;
    return own[same];
  });
}

/** Refuses an array that can't be changed in place. */
function checkOpen(messages, isClosed) {
  if (!Array.isArray(messages) || isClosed(messages)) {
    throw new TypeError("`messages` must be an array that is not frozen or sealed, since it is changed in place: pass a copy");
  }
}

/** A turn as the core takes it. */
function turnOf({ tools = [], lastUsage, isTooLong = false, isCold = false, repeatsOnly = false, joins = false }) {
  if (lastUsage != null && !(Number.isSafeInteger(lastUsage) && lastUsage >= 0)) {
    throw new TypeError("`lastUsage` must be the number of tokens that the provider counted");
  }
  const is = { is_too_long: !!isTooLong, is_cold: !!isCold, repeats_only: !!repeatsOnly };
  return spelled({ tools, last_usage: lastUsage, ...is, joins });
}

/** Settings as the core takes them, which has paths of directories and no URLs. */
function settingsOf(settings) {
  return spelled(settings, function (key, value) {
    const url = this[key];
    return url instanceof URL && url.protocol === "file:" ? fileURLToPath(url) : value;
  });
}

class Reduction {
  #core;
  #onReport;

  constructor(settings = null, { onReport } = {}) {
    if (!(settings instanceof Core)) check(settings, "option");
    if (onReport != null) checkFunction(onReport, "onReport");
    this.#core = settings instanceof Core ? settings : now(() => new Core(settingsOf(settings)));
    this.#onReport = onReport;
  }

  static inDir(path, { onReport, preset = "recommended", ...settings } = {}) {
    if (typeof path !== "string" && !(path instanceof URL)) throw new TypeError("the path must be a text or a URL");
    if (settings.backend !== undefined) throw new TypeError("`inDir` takes no `backend`: its path is one");
    return new Reduction({ preset, ...settings, backend: path }, { onReport });
  }

  session(id) {
    return new Reduction(now(() => this.#core.session(id)), { onReport: this.#onReport });
  }

  get readerName() {
    return this.#core.readerName ?? null;
  }

  tool(format) {
    return JSON.parse(now(() => this.#core.tool(format)));
  }

  async beforeModel(messages, options = {}) {
    return this.#clear(messages, options, true);
  }

  async clear(messages, options = {}) {
    return this.#clear(messages, options, false);
  }

  /** Asks the core by the name of its method, with `options` in JSON. */
  async #ask(method, format, options, given) {
    return JSON.parse(await later(() => this.#core.ask(method, format, options, given)));
  }

  async #clear(messages, { format, ...turn }, joins) {
    checkOpen(messages, Object.isFrozen);
    const before = [...messages];
    const text = spelled(before);
    const passed = await this.#ask("clear", format, turnOf({ ...turn, joins }), text);
    if (passed.messages && spelled(messages.slice(0, before.length)) !== text) {
      process.emitWarning("offcut: the messages were changed during the pass, so they stay as they are");
    } else if (passed.messages) {
      if (passed.messages.length !== before.length) checkOpen(messages, Object.isSealed);
      // Others may have been pushed in the meantime.
      messages.splice(0, before.length, ...placed(before, JSON.parse(text), passed.messages));
    }
    return this.#tell(passed.report);
  }

  async wrapToolCall(call, run, { format } = {}) {
    checkFunction(run, "run");
    const text = spelled(call ?? null);
    const page = await this.#ask("answer", format, text);
    if (page) return this.#message(page);
    let [result, isError, hasRun] = [undefined, false, false];
    try {
      const returned = await run();
      hasRun = true;
      result = given(returned);
    } catch (error) {
      [result, isError] = [told(error), true];
      // It is a mistake of the program, and not one that the model should work around.
      if (hasRun) process.emitWarning(`offcut: a result was refused: ${result}`);
    }
    return this.#message(await this.#ask("message", format, `{"call":${text},"is_error":${isError}}`, result));
  }

  async truncate(result, { tool, callId = "", args = {}, isError = false } = {}) {
    if (typeof tool !== "string") throw new TypeError("`truncate` needs the tool's name: `{ tool, callId, args }`");
    const call = { id: callId, name: tool, arguments: args };
    const shown = await this.#ask("truncate", null, spelled({ call, is_error: !!isError }), given(result));
    this.#tell(shown.report);
    return shown.new ?? result;
  }

  /** With `repeatsOnly`, of adapters, what was decided before is done again, and nothing else. */
  async reduce(body, { format, isTooLong, isCold, repeatsOnly } = {}) {
    const isText = typeof body === "string";
    const turn = turnOf({ isTooLong, isCold, repeatsOnly });
    const text = isText ? body : spelled(body);
    const reduced = await this.#ask("reduce", format, turn, text);
    this.#tell(reduced.report);
    if (reduced.new == null) return body;
    if (isText) return reduced.new;
    const after = JSON.parse(reduced.new);
    // It may have been changed in the meantime.
    return spelled(body) === text ? kept(body, JSON.parse(text), after) : after;
  }

  async condense(state, model, { promptTemplate, inputKeys = [], outputKey = "reduced_output", namesOriginals = true } = {}) {
    if (typeof promptTemplate !== "string") throw new TypeError("`condense` needs a `promptTemplate` of text");
    const named = { prompt_template: promptTemplate, input_keys: inputKeys, output_key: outputKey, names_originals: namesOriginals };
    // Other values may be anything.
    const isNeeded = ([key]) => inputKeys.includes(key) || promptTemplate.includes(`{${key}`);
    const needed = () => Object.fromEntries(Object.entries(state).filter(isNeeded));
    check(needed(), "field");
    const [node, before] = [spelled(named), spelled(needed())];
    const options = `{"node":${node},"state":${before}}`;
    const { prompt } = await this.#ask("condense", null, options);
    const answer = (await model(prompt)) ?? "";
    if (spelled(needed()) !== before) {
      throw new TypeError("the state was changed while the model wrote: nothing was deleted, so condense it again");
    }
    const { left_in_place: leftInPlace, ...done } = await this.#ask("condense", null, options, answer);
    for (const key of done.deleted) delete state[key];
    state[outputKey] = done.output;
    return { ...done, leftInPlace };
  }

  async read(path, args = {}) {
    const page = await this.page({ path, ...args });
    if (page.isError) throw new TypeError(page.text);
    return page.text;
  }

  async page(args) {
    const { text, is_error: isError } = await this.#ask("read", null, "null", spelled(args));
    return { text, isError };
  }

  /** The reader's answer to a call with `id`, `name` and `args`; undefined for any other call. Adapters use it. */
  async answer(call) {
    const answered = await this.#ask("answer", "openai-chat", spelled({ ...call, id: call.id ?? "" }));
    return answered ? { content: this.#message(answered).content, isError: answered.is_error } : undefined;
  }

  async original(location) {
    return later(() => this.#core.original(location));
  }

  async check() {
    await this.#ask("check", null, "null");
  }

  #message(answered) {
    this.#tell(answered.report);
    return answered.message;
  }

  #tell(report) {
    if (!this.#onReport) {
      const failures = [...report.decisions.map((one) => one.error), report.records_error, report.notice];
      for (const failure of failures) if (failure) process.emitWarning(`offcut: ${failure}`);
    }
    // What it is about has been done.
    const warn = (error) => process.emitWarning(`offcut: onReport has thrown ${told(error)}`);
    try {
      Promise.resolve(this.#onReport?.(report)).catch(warn);
    } catch (error) {
      warn(error);
    }
    return report;
  }
}

class State {
  #schema;
  #text;

  constructor(schema, value) {
    check(schema, "field");
    check(value, "field");
    this.#schema = typeof schema === "string" ? schema : spelled(schema);
    this.#text = now(() => apply(this.#schema, spelled(value), "[]"));
  }

  apply(...updates) {
    check(updates, "field");
    this.#text = now(() => apply(this.#schema, this.#text, spelled(updates)));
    return this.value;
  }

  get value() {
    return JSON.parse(this.#text);
  }
}

exports.Reduction = Reduction;
exports.State = State;
exports.OffcutError = OffcutError;
exports.SettingsError = SettingsError;
exports.StoreError = StoreError;
