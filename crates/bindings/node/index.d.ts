/** A provider's format of messages. */
export type Format = "openai-chat" | "openai-responses" | "anthropic" | "gemini";

/** Every decision of one truncation or one pass: see docs/reports.md. It never holds content. */
export interface Report {
  phase: "truncate" | "clear";
  decisions: Array<{
    tool: string;
    call_id: string;
    message: number | null;
    subject: string;
    outcome: string;
    reason?: string;
    bytes: { before: number; after: number };
    tokens: { before: number; after: number } | null;
    locations: string[];
    error: string | null;
    error_source: string | null;
  }>;
  tokens: { counted: number; count_kind: string; threshold: number; usage: number | null } | null;
  post_process_error: string | null;
  records_error?: string;
  notice?: string;
}

/** The options of docs/options.md. */
export type Settings = { [option: string]: any };

export interface Options {
  /**
   * Takes the report on each truncation and each pass. An error of its own is a warning of the process; without it, so is
   * each failure of a store.
   */
  onReport?: ((report: Report) => unknown) | undefined;
}

export interface ReduceOptions {
  /** Without it, the messages tell. */
  format?: Format | undefined;
  /** The provider has just refused these messages as too long: all results before the newest round are cleared. */
  isTooLong?: boolean | undefined;
  /** The provider's cache holds nothing of these messages: half of the threshold is enough. */
  isCold?: boolean | undefined;
}

export interface PassOptions extends ReduceOptions {
  /** The definitions that are sent with the messages; they are counted too. */
  tools?: unknown[] | undefined;
  /** The number of input tokens of the last request by the provider's count, cached ones included. */
  lastUsage?: number | undefined;
}

export interface CondenseOptions {
  promptTemplate: string;
  /** By default none. */
  inputKeys?: string[] | undefined;
  /** By default `reduced_output`. */
  outputKey?: string | undefined;
  /** By default true. */
  namesOriginals?: boolean | undefined;
}

/** The outcome of `condense`. */
export interface Condensed {
  output: string;
  deleted: string[];
  /** Pairs of a key and the location of its value. */
  stored: Array<[string, string]>;
  /** Keys whose values only look like hints. */
  leftInPlace: string[];
}

/** The reader's arguments beside the path. */
export interface ReadArguments {
  offset?: number | string | undefined;
  limit?: number | undefined;
  pattern?: string | undefined;
  context?: number | undefined;
  count?: boolean | undefined;
  query?: string | undefined;
}

/** Shortens what an agent's tools return, and stores all of it. */
export class Reduction {
  /** Opens the stores that the settings name. */
  constructor(settings: Settings, options?: Options);

  /**
   * A reduction over a directory, or over the bucket at a URL such as `s3://bucket/prefix`, with the settings that measured
   * best; further options are put over them.
   */
  static inDir(path: string | URL, options?: Options & Settings): Reduction;

  /** The reduction of one conversation: it stores in a folder of its own, and reads nothing else. */
  session(id: string): Reduction;

  /** The reader's name; null if the settings name none. */
  readonly readerName: string | null;

  /** The definition of the reader, for a request's `tools`. Throws a SettingsError if `read_file_tool_name` is false. */
  tool(format: Format): any;

  /**
   * The moment before a model call: clears old results in `messages`, in place, if these are over the threshold. For
   * Anthropic and Gemini, the newest results of parallel calls are joined into one message.
   */
  beforeModel(messages: any[], options?: PassOptions): Promise<Report>;

  /** Does what `beforeModel` does, but joins no messages, so their number stays. */
  clear(messages: any[], options?: PassOptions): Promise<Report>;

  /**
   * The moment of a tool call: returns the message that answers `call`, which is as the provider writes it, or has `id`,
   * `name` and `arguments` and needs the `format`. Reads of stored content are answered; all others are `run`. What `run`
   * throws becomes a result that is marked as an error.
   */
  wrapToolCall(call: any, run: () => unknown, options?: { format?: Format | undefined }): Promise<any>;

  /**
   * What to show in place of `result`: `result` itself if it is short, and otherwise a text, or a list of parts if it is one.
   * Bytes become text.
   */
  truncate<T>(
    result: T,
    call: { tool: string; callId?: string | undefined; args?: unknown; isError?: boolean | undefined },
  ): Promise<T | string>;

  /**
   * Does both moments' work on a whole request: its body, as text or an object, or its list of messages. Returns the body as
   * it was given; an object stays unchanged. What was decided is kept in the store, so that a conversation that comes again,
   * and grows, is given the same texts. Use a `session` for each conversation.
   */
  reduce<T>(body: T, options?: ReduceOptions): Promise<T>;

  /**
   * Has a model condense values of a state into one: Lár's `ReduceNode`. The template's `{key}`s are filled in from `state`,
   * the input keys are stored and deleted, and the answer stands under the output key, with a last line that names what was
   * stored unless `namesOriginals` is false. After an error, `state` is as it was.
   */
  condense(state: Record<string, any>, model: (prompt: string) => string | null | Promise<string | null>, node: CondenseOptions): Promise<Condensed>;

  /** A page of stored content, as the reader shows it to the model. A mistake in the arguments is a TypeError. */
  read(path: string, args?: ReadArguments): Promise<string>;

  /** The reader's answer to a model, which may tell of a mistake. */
  page(args: { path: string } & ReadArguments): Promise<{ text: string; isError: boolean }>;

  /** The reader's answer to a call that names stored content, which may tell of a mistake; undefined for any other call. */
  answer(call: { id?: string | undefined; name: string; args: unknown }): Promise<{ content: any; isError: boolean } | undefined>;

  /** Everything that is stored at a location, byte for byte. */
  original(location: string): Promise<Uint8Array>;

  /** Tries out every store. Call it when a program starts. */
  check(): Promise<void>;
}

/**
 * A state whose fields are merged by the reducers that its schema declares: an object, or YAML as text. docs/state.md has the
 * reducers. An update applies to all of its fields or to none. A mistake in the schema is a SettingsError, one in an update a
 * TypeError; both begin with its code, such as `reducer_error`, unless JSON can't say the
 * value.
 */
export class State<T extends Record<string, any> = Record<string, any>> {
  /** Begins without fields, where reducers start from the schema's defaults, or with the `value` of an earlier state. */
  constructor(schema: Record<string, unknown> | string, value?: T);
  /** Applies the updates in their order, or none of them, and returns the new value. */
  apply(...updates: Partial<T>[]): T;
  /** The fields that were set. */
  readonly value: T;
}

/** Offcut can't do what it was asked to. */
export class OffcutError extends Error {}
/** The settings are wrong, or name a store that can't be opened. */
export class SettingsError extends OffcutError {}
/** The store failed; nothing was changed. */
export class StoreError extends OffcutError {}
