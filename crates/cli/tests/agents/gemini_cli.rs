//! Events as Gemini CLI 0.61 sends them, answered over a real store.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::lines;
use offcut::hint::Hint;
use offcut_cli::agents::Agent;
use serde_json::{Value, json};

/// A user with the temporary folder of a project.
struct User(crate::support::User);

impl User {
    fn new() -> Self {
        let user = crate::support::User::new();
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

    /// The text that takes the place of the result.
    async fn answer(&self, event: &Value) -> Option<String> {
        let answer = self.0.answer(Agent::GeminiCli, event).await?;
        assert_eq!(answer["decision"], "deny");
        Some(answer["reason"].as_str().unwrap().to_owned())
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_result_is_replaced_in_its_place() {
    let long = lines(3_000);
    for content in [json!(long), json!({"text": long}), json!([{"text": long}])] {
        let user = User::new();
        let event = user.event("run_shell_command", json!({"command": "make"}), content);
        let shown = user.answer(&event).await.unwrap();
        assert_eq!(crate::support::read_back(&shown), long);
        let stored = user.project().join("offcut/store/s1/trunc/085335796");
        assert_eq!(fs::read_to_string(stored).unwrap(), long);
    }
    let user = User::new();
    let parts = json!([{"text": "head"}, {"text": long}]);
    let event = user.event("mcp_db_query", json!({}), parts);
    let shown = user.answer(&event).await.unwrap();
    assert_eq!(crate::support::read_back(&shown), format!("head\n{long}"));
}

#[tokio::test(flavor = "current_thread")]
async fn what_is_not_trusted_stays_between_its_tags() {
    let untrusted = |text: &str| format!("<untrusted_context>\n{text}\n</untrusted_context>");
    let long = lines(3_000);
    let parts = json!([{"text": untrusted("head")}, {"text": untrusted(&long)}]);
    let cases = [
        (json!(untrusted(&long)), untrusted(&long)),
        (parts, untrusted(&format!("head\n{long}"))),
    ];
    for (content, expected) in cases {
        let user = User::new();
        let event = user.event("mcp_db_query", json!({}), content);
        let shown = user.answer(&event).await.unwrap();
        assert_eq!(crate::support::read_back(&shown), expected);
        let hint = Hint::parse(&shown).unwrap();
        let inner = hint.preview.strip_prefix("<untrusted_context>\n").unwrap();
        let inner = inner.strip_suffix("\n</untrusted_context>").unwrap();
        assert!(
            inner.len() > 1_000 && !inner.contains("untrusted"),
            "{inner:.200}"
        );
        assert!(!hint.prose.contains("untrusted"), "{shown:.200}");
        let row = &user.0.rows(Agent::GeminiCli, &event).await[0];
        assert_eq!(row.after, shown.len() as u64);
    }
    // JSON is shown in its shape.
    let user = User::new();
    let row = |n: usize| json!({"id": n, "name": format!("name {n}"), "state": "ok"});
    let rows = json!((0..600).map(row).collect::<Vec<_>>()).to_string();
    let event = user.event("mcp_db_query", json!({}), json!(untrusted(&rows)));
    let shown = user.answer(&event).await.unwrap();
    assert_eq!(crate::support::read_back(&shown), rows);
    let preview = Hint::parse(&shown).unwrap().preview;
    assert!(preview.contains("[600 records]"), "{preview:.200}");
    assert!(
        preview.ends_with("\n</untrusted_context>"),
        "{preview:.200}"
    );
    // Text outside of them is not enclosed.
    let user = User::new();
    let parts = json!([{"text": untrusted("head")}, {"text": long}]);
    let event = user.event("mcp_db_query", json!({}), parts);
    let shown = user.answer(&event).await.unwrap();
    assert_eq!(
        crate::support::read_back(&shown),
        format!("{}\n{long}", untrusted("head"))
    );
}

#[tokio::test(flavor = "current_thread")]
async fn results_that_a_denial_would_change_stay() {
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
        skill,
    ];
    for event in cases {
        assert_eq!(user.answer(&event).await, None, "{event:.300}");
    }
    let mut before = user.event("mcp_db_query", json!({}), json!(long));
    before["hook_event_name"] = "BeforeTool".into();
    assert_eq!(user.answer(&before).await, None);
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
