//! Puts Offcut around the tools of coding agents that are already there, by their own hooks and
//! settings.

pub mod doctor;
#[cfg(all(feature = "serve", unix))]
pub(crate) mod endpoints;
pub mod hook;
pub mod install;
pub mod journal;
pub mod layout;
pub(crate) mod log;
pub(crate) mod transcripts;

use std::fmt;
use std::path::PathBuf;

use clap::ValueEnum;

/// A coding agent that Offcut can be put around.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum Agent {
    /// Claude Code by Anthropic.
    #[value(alias = "claude")]
    ClaudeCode,
    /// Codex CLI by OpenAI.
    Codex,
    /// Gemini CLI by Google.
    #[value(alias = "gemini")]
    GeminiCli,
    /// OpenCode.
    #[value(name = "opencode")]
    OpenCode,
    /// The coding agent pi.
    Pi,
}

/// The names and places of an agent, which are the same for all users.
#[derive(Debug)]
pub struct AgentFacts {
    /// Name on the command line.
    pub name: &'static str,
    /// The agent's own program.
    pub program: &'static str,
    /// The oldest version that is known to work.
    pub oldest: [u64; 3],
    /// The tool by which it reads files, for hints. `None` if it only has a shell.
    pub reader: Option<&'static str>,
    /// Its event for a result. Empty for an agent whose extension is ours, which sends no other.
    pub event: &'static str,
    /// Of a result that `offcut doctor` makes up: its tool, the field of the event's response that has its text (empty
    /// if the response is the text), and a JSON pointer to the shortened text in the answer.
    pub(crate) probe: [&'static str; 3],
    /// The setting or variable in which it has a base URL.
    pub base_url: &'static str,
    /// The folder in which it keeps its own files.
    pub home: AgentPlace,
    /// The folder of its settings.
    pub settings: AgentPlace,
    /// The file that an installation changes, in its settings and in a project: settings, or a plug-in of ours.
    pub installed: [&'static str; 2],
    /// The folders of transcripts in its settings.
    pub transcripts: &'static [&'static str],
}

/// The place of an agent's files: a variable that names a folder, the path in it, and the one in the home directory if
/// the variable is not set.
#[derive(Debug, Clone, Copy)]
pub struct AgentPlace(&'static str, &'static str, &'static str);

impl AgentPlace {
    /// The path; `None` if there is no home directory.
    pub fn path(self) -> Option<PathBuf> {
        let Self(variable, below, in_home) = self;
        let path = match layout::folder(variable) {
            Some(folder) => folder.join(below),
            None => layout::folder("HOME")?.join(in_home),
        };
        // Without the slash that joining nothing leaves at the end.
        Some(path.components().collect())
    }

    /// A path in it.
    pub(crate) fn join(self, path: &str) -> Option<PathBuf> {
        Some(self.path()?.join(path))
    }
}

const CLAUDE_CODE: AgentPlace = AgentPlace("CLAUDE_CONFIG_DIR", "", ".claude");
const CODEX: AgentPlace = AgentPlace("CODEX_HOME", "", ".codex");
const GEMINI_CLI: AgentPlace = AgentPlace("GEMINI_CLI_HOME", ".gemini", ".gemini");
const OPENCODE: AgentPlace = AgentPlace("XDG_CONFIG_HOME", "opencode", ".config/opencode");

/// In the order of [`Agent`].
static FACTS: [AgentFacts; 5] = [
    AgentFacts {
        name: "claude-code",
        program: "claude",
        oldest: [2, 1, 121],
        reader: Some("Read"),
        event: "PostToolUse",
        probe: [
            "Bash",
            "stdout",
            "/hookSpecificOutput/updatedToolOutput/stdout",
        ],
        base_url: "ANTHROPIC_BASE_URL",
        home: CLAUDE_CODE,
        settings: CLAUDE_CODE,
        // Not the project's `settings.json`: others would get a program and a store that only this user has.
        installed: ["settings.json", ".claude/settings.local.json"],
        transcripts: &["projects"],
    },
    AgentFacts {
        name: "codex",
        program: "codex",
        oldest: [0, 169, 0],
        reader: None,
        event: "PostToolUse",
        probe: ["mcp__offcut__probe", "", "/reason"],
        base_url: "openai_base_url",
        home: CODEX,
        settings: CODEX,
        // Not `config.toml`, which holds other things too, and which the agent itself writes to.
        installed: ["hooks.json", ".codex/hooks.json"],
        transcripts: &["sessions", "archived_sessions"],
    },
    AgentFacts {
        name: "gemini-cli",
        program: "gemini",
        oldest: [0, 61, 0],
        reader: Some("read_file"),
        event: "AfterTool",
        probe: ["run_shell_command", "llmContent", "/reason"],
        base_url: "GOOGLE_GEMINI_BASE_URL",
        home: GEMINI_CLI,
        settings: GEMINI_CLI,
        installed: ["settings.json", ".gemini/settings.json"],
        // They are in the folder of each project.
        transcripts: &[],
    },
    AgentFacts {
        name: "opencode",
        program: "opencode",
        oldest: [1, 18, 0],
        reader: Some("read"),
        event: "",
        probe: ["bash", "", "/output"],
        base_url: "baseURL",
        home: AgentPlace("XDG_DATA_HOME", "opencode", ".local/share/opencode"),
        settings: OPENCODE,
        installed: ["plugins/offcut.js", ".opencode/plugins/offcut.js"],
        // They are in a database.
        transcripts: &[],
    },
    AgentFacts {
        name: "pi",
        program: "pi",
        oldest: [0, 73, 0],
        reader: Some("read"),
        event: "",
        probe: ["bash", "", "/output"],
        base_url: "baseUrl",
        home: AgentPlace("", "", ".pi"),
        settings: AgentPlace("PI_CODING_AGENT_DIR", "", ".pi/agent"),
        installed: ["extensions/offcut.js", ".pi/extensions/offcut.js"],
        transcripts: &["sessions"],
    },
];

impl Agent {
    /// Its names and places.
    pub fn facts(self) -> &'static AgentFacts {
        &FACTS[self as usize]
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.facts().name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_found_by_its_name() {
        let named = |name| Agent::from_str(name, false).ok();
        for &agent in Agent::value_variants() {
            assert_eq!(named(agent.facts().name), Some(agent));
        }
        assert_eq!(named("claude"), Some(Agent::ClaudeCode));
        assert_eq!(named("Claude"), None);
    }
}
