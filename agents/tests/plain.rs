//! Events as our plug-ins send them, answered over a real store.

#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a test that can't be set up has failed"
)]

use std::fs;
use std::path::PathBuf;

use offcut::ToolReduction;
use offcut::backend::Fs;
use offcut_agents::Agent;
use offcut_agents::hook::{self, Surroundings};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A user's folder with a store, an agent's folder and one for temporary files.
struct User {
    home: TempDir,
    reduction: ToolReduction,
    surroundings: Surroundings,
}

impl User {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let in_home = |name| Some(home.path().join(name));
        let surroundings = Surroundings {
            store: in_home("store"),
            agent_home: in_home("agent"),
            temporary: in_home("tmp"),
        };
        let store = Fs::open(surroundings.store.as_ref().unwrap()).unwrap();
        Self {
            reduction: ToolReduction::recommended(store).build().unwrap(),
            surroundings,
            home,
        }
    }

    async fn answer(&self, agent: Agent, event: &Value) -> Option<String> {
        let event = event.to_string();
        let answer = hook::answer(agent, event.as_bytes(), &self.reduction, &self.surroundings);
        let answer: Value = serde_json::from_str(&answer.await.unwrap().output?).unwrap();
        Some(answer["output"].as_str().unwrap().to_owned())
    }

    fn file(&self, path: &str, text: &str) -> PathBuf {
        let file = self.home.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        file
    }
}

fn event(output: &str) -> Value {
    json!({"session": "s1", "directory": "/src", "call_id": "c1", "tool": "bash", "input": {"command": "make"}, "output": output})
}

fn lines(count: usize) -> String {
    (1..=count).map(|n| format!("line {n} of many\n")).collect()
}

/// The content that the hint in `text` leads to.
fn read_back(text: &str) -> String {
    fs::read_to_string(text.split('"').nth(1).unwrap()).unwrap()
}

#[tokio::test(flavor = "current_thread")]
async fn our_own_extensions_get_a_text_and_a_call() {
    for agent in [Agent::OpenCode, Agent::Pi] {
        let user = User::new();
        let mut event = event(&lines(3_000));
        let shown = user.answer(agent, &event).await.unwrap();
        assert!(shown.contains("/s1/trunc/c1\"]"), "{shown:.200}");
        assert_eq!(read_back(&shown), lines(3_000));
        event["input"] = json!({"filePath": user.home.path().join("store/s1/trunc/c1")});
        assert_eq!(user.answer(agent, &event).await, None);
    }
}

#[tokio::test(flavor = "current_thread")]
async fn spilled_output_is_taken_whole_from_where_the_agent_spills() {
    let cases = [
        (Agent::OpenCode, "agent/tool-output/tool_2079ab24"),
        (Agent::Pi, "tmp/pi-bash-adc28f12.log"),
    ];
    for (agent, path) in cases {
        let user = User::new();
        let mut event = event(&lines(2_000));
        event["spilled"] = json!(user.file(path, &lines(9_000)));
        let shown = user.answer(agent, &event).await.unwrap();
        assert_eq!(read_back(&shown), lines(9_000), "{agent}");
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_spilled_file_elsewhere_is_not_opened() {
    let secret = "secret\n".repeat(9_000);
    for agent in [Agent::OpenCode, Agent::Pi] {
        let user = User::new();
        user.file("tmp/inner/x", "");
        let mut files = vec![
            user.file("agent/tool-output/auth.json", &secret),
            user.file("agent/auth/tool_1", &secret),
            user.file("tmp/inner/pi-bash-1.log", &secret),
            user.file("tmp/secret.log", &secret),
            user.file("pi-bash-2.log", &secret),
            user.home.path().join("tmp/inner/../../pi-bash-2.log"),
            user.home.path().join("tmp/pi-bash-missing.log"),
            PathBuf::from("pi-bash-3.log"),
            PathBuf::from("/dev/zero"),
        ];
        #[cfg(unix)]
        for link in ["agent/tool-output/tool_link", "tmp/pi-bash-link.log"] {
            let link = user.home.path().join(link);
            std::os::unix::fs::symlink(&files[3], &link).unwrap();
            files.push(link);
        }
        for file in files {
            let mut event = event(&lines(3_000));
            event["spilled"] = json!(file);
            let shown = user.answer(agent, &event).await.unwrap();
            assert!(!shown.contains("secret"), "{agent}: {file:?}");
            assert_eq!(read_back(&shown), lines(3_000), "{agent}: {file:?}");
        }
    }
}

#[tokio::test(flavor = "current_thread")]
async fn what_the_agent_has_cut_shorter_than_a_preview_stays() {
    let user = User::new();
    let mut event = event("the last lines\n");
    event["spilled"] = json!(user.file("tmp/pi-bash-1.log", &lines(9_000)));
    assert_eq!(user.answer(Agent::Pi, &event).await, None);
}
