//! The results that each agent lets a hook shorten, and the versions that do.

use crate::agents::Agent;

/// A kind of result, and whether the agent lets a hook shorten it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Coverage {
    /// The results.
    pub results: &'static str,
    /// Their treatment.
    pub treatment: &'static str,
}

/// The results that `agent` lets a hook shorten, and those that it does not.
#[must_use]
pub fn coverage(agent: Agent) -> &'static [Coverage] {
    match agent {
        Agent::ClaudeCode => CLAUDE_CODE,
        Agent::Codex => CODEX,
        Agent::GeminiCli => GEMINI_CLI,
        Agent::OpenCode => OPENCODE,
        Agent::Pi => PI,
    }
}

/// The agent's own program, and the oldest version that is known to work.
pub(super) fn oldest(agent: Agent) -> (&'static str, [u64; 3]) {
    match agent {
        Agent::ClaudeCode => ("claude", [2, 1, 121]),
        Agent::Codex => ("codex", [0, 169, 0]),
        Agent::GeminiCli => ("gemini", [0, 61, 0]),
        Agent::OpenCode => ("opencode", [1, 18, 0]),
        Agent::Pi => ("pi", [0, 73, 0]),
    }
}

const CLAUDE_CODE: &[Coverage] = &[
    row(
        "shell commands",
        "shortened; over 30 kB too, where the agent keeps a file",
    ),
    row(
        "commands that fail",
        "unchanged, as no hook can replace them; shortened with --shell-lines",
    ),
    row("reads, searches, web pages", "shortened"),
    row(
        "MCP tools, subagents",
        "text is shortened; structured content is unchanged",
    ),
    row("edits, images, notebooks", "unchanged"),
    READS,
];

const CODEX: &[Coverage] = &[
    row("MCP tools", "shortened; errors are unchanged"),
    row(
        "shell commands",
        "unchanged: hooks see output that is cut already; use `offcut run`",
    ),
    row(
        "calls from a program of the model",
        "unchanged: a replaced result would end the program",
    ),
    READS,
];

const GEMINI_CLI: &[Coverage] = &[
    row("shell commands", "shortened, also if they fail"),
    row("reads, searches, web pages", "shortened"),
    row("MCP tools", "text is shortened; errors are unchanged"),
    row(
        "lines over 2 000 characters",
        "unchanged: the agent's reader would cut them",
    ),
    READS,
];

const OPENCODE: &[Coverage] = &[
    row("shell commands", "shortened, also if they fail"),
    row("reads, searches, web pages", "shortened"),
    row("MCP tools", "text is shortened; errors are unchanged"),
    READS,
];

const PI: &[Coverage] = &[
    row("shell commands", "shortened, also if they fail"),
    row("reads, searches", "shortened"),
    row("images", "unchanged"),
    READS,
];

const READS: Coverage = row("stored results that it reads", "unchanged");

const fn row(results: &'static str, treatment: &'static str) -> Coverage {
    Coverage { results, treatment }
}
