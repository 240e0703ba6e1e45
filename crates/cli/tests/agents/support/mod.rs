//! A user whose agents' events are answered over a real store.

use std::fs;
use std::path::{Path, PathBuf};

use offcut::ToolReduction;
use offcut::backend::Fs;
use offcut_cli::agents::Agent;
use offcut_cli::agents::hook::{self, Answer, Surroundings};
use offcut_cli::agents::journal::Row;
use offcut_cli::failure::Failure;
use serde_json::Value;
use tempfile::TempDir;

/// A user's folder with a store, an agent's folder and one for temporary files.
pub(crate) struct User {
    home: TempDir,
    pub surroundings: Surroundings,
}

impl User {
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let in_home = |name| Some(home.path().join(name));
        let surroundings = Surroundings {
            user_store: None,
            store: in_home("store"),
            agent_home: in_home("agent"),
            temporary: in_home("tmp"),
        };
        Self { home, surroundings }
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn store(&self) -> &Path {
        self.surroundings.store.as_deref().unwrap()
    }

    /// Writes a file of the user's folder, with the folders around it.
    pub(crate) fn file(&self, path: &str, text: &str) -> PathBuf {
        let file = self.home().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        file
    }

    /// Answers the bytes of an event, over the store that the agent wants.
    pub(crate) async fn respond(&self, agent: Agent, event: &[u8]) -> Result<Answer, Failure> {
        let wanted = hook::store(agent, event, &self.surroundings);
        let surroundings = Surroundings {
            store: wanted.or_else(|| self.surroundings.store.clone()),
            ..self.surroundings.clone()
        };
        let store = Fs::open(surroundings.store.as_ref().unwrap()).unwrap();
        let reduction = ToolReduction::recommended(store)
            .read_file_tool_name(agent.facts().reader)
            .build()
            .unwrap();
        hook::answer(agent, event, &reduction, &surroundings).await
    }

    /// The answer to an event; `None` if it passes unchanged.
    pub(crate) async fn answer(&self, agent: Agent, event: &Value) -> Option<Value> {
        let answer = self.respond(agent, event.to_string().as_bytes()).await;
        Some(serde_json::from_str(&answer.unwrap().output?).unwrap())
    }

    /// The journal's rows about an event.
    pub(crate) async fn rows(&self, agent: Agent, event: &Value) -> Vec<Row> {
        let answer = self.respond(agent, event.to_string().as_bytes()).await;
        answer.unwrap().row.into_iter().collect()
    }
}

pub(crate) fn lines(count: usize) -> String {
    (1..=count).map(|n| format!("line {n} of many\n")).collect()
}

/// The content that the hint in `text` leads to.
pub(crate) fn read_back(text: &str) -> String {
    fs::read_to_string(text.split('"').nth(1).unwrap()).unwrap()
}
