//! Puts Offcut around the tools of coding agents that are already there, by their own hooks and
//! settings.

pub mod doctor;
pub mod endpoints;
pub mod gain;
pub mod hook;
pub mod install;
pub mod journal;
pub mod layout;
pub mod log;
pub mod servers;
pub mod transcripts;

use std::fmt;

use clap::ValueEnum;
use clap::builder::PossibleValue;

/// A coding agent that Offcut can be put around.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Agent {
    /// Claude Code by Anthropic.
    ClaudeCode,
    /// Codex CLI by OpenAI.
    Codex,
    /// Gemini CLI by Google.
    GeminiCli,
    /// OpenCode.
    OpenCode,
    /// The coding agent pi.
    Pi,
}

impl Agent {
    /// All agents, in the order of the documentation.
    pub const ALL: [Self; 5] = [
        Self::ClaudeCode,
        Self::Codex,
        Self::GeminiCli,
        Self::OpenCode,
        Self::Pi,
    ];

    /// The agent that is called so on the command line.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let is_one = |agent: &Self| agent.name() == name || agent.program() == name;
        Self::ALL.into_iter().find(is_one)
    }

    /// The agent's own program, such as `claude`.
    pub fn program(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude",
            Self::Codex => "codex",
            Self::GeminiCli => "gemini",
            Self::OpenCode => "opencode",
            Self::Pi => "pi",
        }
    }

    /// The agent's name on the command line, such as `claude-code`.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::GeminiCli => "gemini-cli",
            Self::OpenCode => "opencode",
            Self::Pi => "pi",
        }
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ValueEnum for Agent {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()).alias(self.program()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_found_by_its_name() {
        for agent in Agent::ALL {
            assert_eq!(Agent::named(agent.name()), Some(agent));
        }
        assert_eq!(Agent::named("claude"), Some(Agent::ClaudeCode));
        assert_eq!(Agent::named("Claude"), None);
    }
}
