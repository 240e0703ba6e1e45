//! Hints across conversations: within one user's store they are ours, and no two users share one.

use std::path::Path;

use crate::support::{User, lines, read_back};
use offcut_cli::agents::Agent;
use proptest::prelude::*;
use serde_json::{Value, json};

const AGENTS: [Agent; 4] = [Agent::ClaudeCode, Agent::Codex, Agent::OpenCode, Agent::Pi];

/// An event of `agent` about a result that a tool has read from `path`.
fn event(agent: Agent, session: &str, call: &str, path: &Path, result: &str) -> Value {
    let blocks = json!([{"type": "text", "text": result}]);
    match agent {
        Agent::ClaudeCode | Agent::Codex => json!({
            "hook_event_name": "PostToolUse", "session_id": session, "cwd": "/src", "tool_use_id": call,
            "tool_name": "mcp__fs__read", "tool_input": {"path": path}, "tool_response": {"content": blocks},
        }),
        _ => json!({
            "session_id": session, "cwd": "/src", "tool_use_id": call, "tool_name": "read",
            "tool_input": {"path": path}, "tool_response": result,
        }),
    }
}

/// The text that the model is shown instead of the result.
fn shown(agent: Agent, answer: &Value) -> String {
    let text = match agent {
        Agent::ClaudeCode => {
            &answer["hookSpecificOutput"]["updatedToolOutput"]["content"][0]["text"]
        }
        Agent::Codex => &answer["reason"],
        _ => &answer["output"],
    };
    text.as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "current_thread")]
async fn r1_a_hint_of_another_conversation_of_the_user_is_ours() {
    for agent in AGENTS {
        let user = User::new();
        let first = event(agent, "s1", "c1", Path::new("/src/a"), &lines(3_000));
        let hint = shown(agent, &user.answer(agent, &first).await.unwrap());
        let stored = Path::new(hint.split('"').nth(1).unwrap());
        // The conversation was forked: it has a new id and the old hint.
        let again = event(agent, "s2", "c1", Path::new("/src/a"), &hint);
        assert_eq!(user.answer(agent, &again).await, None, "{agent}");
        let read = event(agent, "s2", "c2", stored, &lines(3_000));
        assert_eq!(user.rows(agent, &read).await[0].reads, 1, "{agent}");
        assert_eq!(user.answer(agent, &read).await, None, "{agent}");
        assert_eq!(read_back(&hint), lines(3_000));
        assert!(
            !user.store().join("s2").exists(),
            "{agent}: stored as an original"
        );
    }
}

#[tokio::test(flavor = "current_thread")]
async fn r1_a_hint_of_another_user_is_not_ours() {
    for agent in AGENTS {
        let (one, two) = (User::new(), User::new());
        let first = event(agent, "s1", "c1", Path::new("/src/a"), &lines(3_000));
        let hint = shown(agent, &one.answer(agent, &first).await.unwrap());
        // Their hint is text here, and what they have stored is like any other file.
        let stored = Path::new(hint.split('"').nth(1).unwrap());
        let read = event(agent, "s1", "c1", stored, &lines(3_000));
        let hint = shown(agent, &two.answer(agent, &read).await.unwrap());
        assert_eq!(read_back(&hint), lines(3_000));
        let path = hint.split('"').nth(1).unwrap();
        assert!(Path::new(path).starts_with(two.store()), "{agent}: {path}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn l6_no_two_users_share_a_prefix(
        session in "[a-zA-Z0-9./_-]{0,24}|\\PC{0,12}",
        call in "[a-zA-Z0-9./_-]{0,24}|\\PC{0,12}",
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let paths = [User::new(), User::new()].map(|user| {
            let event = event(Agent::Pi, &session, &call, Path::new("/src/a"), &lines(3_000));
            let answer = runtime.block_on(user.answer(Agent::Pi, &event)).unwrap();
            let hint = shown(Agent::Pi, &answer);
            let path = Path::new(hint.split('"').nth(1).unwrap()).to_owned();
            assert!(path.canonicalize().unwrap().starts_with(user.store().canonicalize().unwrap()));
            path
        });
        prop_assert_ne!(&paths[0], &paths[1]);
    }
}
