import type { StructuredToolInterface } from "@langchain/core/tools";
import type { AgentMiddleware } from "langchain";
import type { Reduction } from "./index.js";

/**
 * Middleware for `createAgent`: shortens what tools return, clears old results in the agent's state before a model call, and
 * adds the reader to the tools.
 */
export function offcutMiddleware(reduction: Reduction): AgentMiddleware;

/** The reader as a tool. */
export function reader(reduction: Reduction): StructuredToolInterface;
