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
use std::str::FromStr;

/// A coding agent that Offcut can be put around.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
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

    /// The agent's name on the command line, such as `claude-code`.
    #[must_use]
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

/// A name that belongs to no known agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownAgent(String);

impl fmt::Display for UnknownAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Agent::ALL.map(Agent::name);
        write!(f, "no agent is called `{}`", self.0)?;
        let is_meant = |name: &&&str| name.starts_with(&self.0) || self.0.starts_with(**name);
        match names.iter().find(is_meant).filter(|_| !self.0.is_empty()) {
            Some(name) => write!(f, "; did you mean {name}?"),
            None => write!(f, "; known are {}", names.join(", ")),
        }
    }
}

impl std::error::Error for UnknownAgent {}

impl FromStr for Agent {
    type Err = UnknownAgent;

    fn from_str(name: &str) -> Result<Self, UnknownAgent> {
        let found = Self::ALL.into_iter().find(|agent| agent.name() == name);
        found.ok_or_else(|| UnknownAgent(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_found_by_its_name() {
        for agent in Agent::ALL {
            assert_eq!(agent.name().parse(), Ok(agent));
        }
        let unknown = "claude".parse::<Agent>().unwrap_err();
        assert_eq!(
            unknown.to_string(),
            "no agent is called `claude`; did you mean claude-code?"
        );
        let unknown = "cursor".parse::<Agent>().unwrap_err();
        assert_eq!(
            unknown.to_string(),
            "no agent is called `cursor`; known are claude-code, codex, gemini-cli, opencode, pi"
        );
    }
}
