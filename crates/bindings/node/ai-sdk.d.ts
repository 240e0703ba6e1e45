import type { Tool, wrapLanguageModel } from "ai";
import type { Reduction } from "./index.js";

/**
 * Middleware for `wrapLanguageModel`: shortens and clears results in what is sent. The caller's messages stay whole. What was
 * decided about a conversation is kept in its session, so that each of its calls is sent the same texts.
 */
export function offcutMiddleware(
  reduction: Reduction,
): Exclude<Parameters<typeof wrapLanguageModel>[0]["middleware"], unknown[]>;

/** The reader, to be spread into `tools`. */
export function reader(reduction: Reduction): Record<string, Tool>;
