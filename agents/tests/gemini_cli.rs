//! Events as Gemini CLI 0.61 sends them, answered over a real store.

#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    unreachable_pub,
    dead_code,
    missing_docs,
    reason = "a test that can't be set up has failed; JSON is written where it is used; helpers are shared"
)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use offcut_agents::Agent;
use serde_json::{Value, json};
use support::lines;

/// A user with the temporary folder of a project.
struct User(support::User);

impl User {
    fn new() -> Self {
        let user = support::User::new();
        fs::create_dir_all(user.home().join("agent/tmp/src/chats")).unwrap();
        Self(user)
    }

    fn home(&self) -> &Path {
        self.0.home()
    }

    fn project(&self) -> PathBuf {
        self.home().join("agent/tmp/src")
    }

    fn event(&self, tool: &str, input: Value, content: Value) -> Value {
        json!({
            "session_id": "s1", "transcript_path": self.project().join("chats/session-s1.jsonl"), "cwd": "/src",
            "hook_event_name": "AfterTool", "timestamp": "2026-11-23T08:53:35.796Z", "tool_name": tool,
            "tool_input": input, "tool_response": {"llmContent": content, "returnDisplay": "…"}
        })
    }

    /// The file that the answer makes the client read in place of the result.
    async fn answer(&self, event: &Value) -> Option<PathBuf> {
        let answer = self.0.answer(Agent::GeminiCli, event).await?;
        let output = &answer["hookSpecificOutput"];
        assert_eq!(output["hookEventName"], "AfterTool");
        assert_eq!(output["tailToolCallRequest"]["name"], "read_file");
        let file = &output["tailToolCallRequest"]["args"]["file_path"];
        Some(file.as_str().unwrap().into())
    }
}

/// The content that the hint in `file` leads to.
fn read_back(file: &Path) -> String {
    support::read_back(&fs::read_to_string(file).unwrap())
}

#[tokio::test(flavor = "current_thread")]
async fn a_result_is_replaced_by_that_of_a_second_call() {
    let long = lines(3_000);
    for content in [json!(long), json!({"text": long}), json!([{"text": long}])] {
        let user = User::new();
        let event = user.event("run_shell_command", json!({"command": "make"}), content);
        let file = user.answer(&event).await.unwrap();
        assert!(file.starts_with(user.project().join("offcut/previews")));
        assert_eq!(read_back(&file), long);
        let stored = user.project().join("offcut/store/s1/trunc/085335796");
        assert_eq!(fs::read_to_string(stored).unwrap(), long);
    }
    let user = User::new();
    let parts = json!([{"text": "head"}, {"text": long}]);
    let event = user.event("mcp_db_query", json!({}), parts);
    let file = user.answer(&event).await.unwrap();
    assert_eq!(read_back(&file), format!("head\n{long}"));
}

#[tokio::test(flavor = "current_thread")]
async fn the_preview_goes_after_it_was_read() {
    let user = User::new();
    let event = user.event("run_shell_command", json!({}), json!(lines(3_000)));
    let file = user.answer(&event).await.unwrap();
    let shown = fs::read_to_string(&file).unwrap();
    let mut second = user.event("read_file", json!({"file_path": file}), json!(shown));
    second["original_request_name"] = "run_shell_command".into();
    assert_eq!(user.answer(&second).await, None);
    assert!(!file.exists());
    let other = user.home().join("notes");
    fs::write(&other, "mine").unwrap();
    second["tool_input"] = json!({"file_path": other});
    assert_eq!(user.answer(&second).await, None);
    assert!(other.exists());
}

#[tokio::test(flavor = "current_thread")]
async fn results_that_a_second_call_would_change_stay() {
    let user = User::new();
    let long = lines(3_000);
    let mut failed = user.event("mcp_db_query", json!({}), json!(long));
    failed["tool_response"]["error"] = json!({"message": "…", "type": "mcp_tool_error"});
    assert_eq!(user.answer(&failed).await, None);
    let picture = json!([{"text": long}, {"inlineData": {"data": "AAAA"}}]);
    let skill = user.event("activate_skill", json!({}), json!(long));
    let cases = [
        user.event("mcp_db_query", json!({}), picture),
        user.event("mcp_db_query", json!({}), json!(null)),
        user.event("mcp_db_query", json!({}), json!("short")),
        user.event("mcp_db_query", json!({}), json!("x".repeat(90_000))),
        skill,
    ];
    for event in cases {
        assert_eq!(user.answer(&event).await, None, "{event:.300}");
    }
    let mut before = user.event("mcp_db_query", json!({}), json!(long));
    before["hook_event_name"] = "BeforeTool".into();
    assert_eq!(user.answer(&before).await, None);
    assert!(!user.project().join("offcut/previews").exists());
}

#[tokio::test(flavor = "current_thread")]
async fn content_of_the_store_is_never_truncated_again() {
    let user = User::new();
    let long = lines(3_000);
    let event = user.event("run_shell_command", json!({}), json!(long));
    user.answer(&event).await.unwrap();
    let stored = user.project().join("offcut/store/s1/trunc/085335796");
    for (tool, input) in [
        ("read_file", json!({"file_path": stored})),
        ("grep_search", json!({"dir_path": stored.parent()})),
        (
            "run_shell_command",
            json!({"command": format!("cat {}", stored.display())}),
        ),
    ] {
        let event = user.event(tool, input, json!(long));
        assert_eq!(user.answer(&event).await, None, "{tool}");
    }
}

#[tokio::test(flavor = "current_thread")]
async fn nothing_is_written_outside_the_clients_own_folder() {
    let user = User::new();
    for path in [
        user.home().join("elsewhere/chats/session.jsonl"),
        user.project().join("logs/session.jsonl"),
        user.project()
            .join("../../../elsewhere/chats/session.jsonl"),
        PathBuf::from("src/chats/session.jsonl"),
        PathBuf::new(),
    ] {
        fs::create_dir_all(user.home().join("elsewhere/chats")).unwrap();
        let mut event = user.event("run_shell_command", json!({}), json!(lines(3_000)));
        event["transcript_path"] = json!(path);
        assert_eq!(user.answer(&event).await, None, "{path:?}");
    }
    assert!(!user.home().join("elsewhere/offcut").exists());
}
