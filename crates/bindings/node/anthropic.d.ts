import type { Middleware } from "@anthropic-ai/sdk";
import type { Tool } from "@anthropic-ai/sdk/resources/messages";
import type { BetaRunnableTool } from "@anthropic-ai/sdk/lib/tools/BetaRunnableTool";
import type { Reduction } from "./index.js";

/**
 * Middleware of a client: shortens and clears results in what is sent. The caller's messages stay whole. What was decided about
 * a conversation is kept in its session, so that each of its requests is sent the same texts.
 */
export function offcutMiddleware(reduction: Reduction): Middleware;

/** The reader as a tool of `toolRunner` or `messages.create`. */
export function reader(reduction: Reduction): BetaRunnableTool & Tool;
