import type { ProcessInputStepArgs, ProcessLLMRequestArgs, ProcessLLMRequestResult } from "@mastra/core/processors";
import type { Tool } from "@mastra/core/tools";
import type { Reduction } from "./index.js";

/**
 * An input processor of an `Agent`: shortens and clears results in what is sent. The messages of the agent's memory stay whole.
 * Each thread of the memory has a session of its own.
 */
export function offcutProcessor(reduction: Reduction): {
  readonly id: "offcut";
  processInputStep(args: ProcessInputStepArgs): void;
  processLLMRequest(args: ProcessLLMRequestArgs): Promise<ProcessLLMRequestResult>;
};

/** The reader, to be spread into `tools`. */
export function reader(reduction: Reduction): Record<string, Tool>;
