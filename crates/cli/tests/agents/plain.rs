//! Events as our plug-ins send them, answered over a real store.

use std::path::PathBuf;

use crate::support::{User, lines, read_back};
use offcut_cli::agents::Agent;
use serde_json::{Value, json};

/// The text in place of the event's own.
async fn output(user: &User, agent: Agent, event: &Value) -> Option<String> {
    let answer = user.answer(agent, event).await?;
    Some(answer["output"].as_str().unwrap().to_owned())
}

fn event(output: &str) -> Value {
    json!({
        "session_id": "s1", "cwd": "/src", "tool_use_id": "c1", "tool_name": "bash", "tool_input": {"command": "make"},
        "tool_response": output,
    })
}

#[tokio::test(flavor = "current_thread")]
async fn our_own_extensions_get_a_text_and_a_call() {
    for agent in [Agent::OpenCode, Agent::Pi] {
        let user = User::new();
        let mut event = event(&lines(3_000));
        let shown = output(&user, agent, &event).await.unwrap();
        assert!(shown.contains("/s1/trunc/c1\"]"), "{shown:.200}");
        assert_eq!(read_back(&shown), lines(3_000));
        event["tool_input"] = json!({"filePath": user.home().join("store/s1/trunc/c1")});
        assert_eq!(output(&user, agent, &event).await, None);
    }
}

#[tokio::test(flavor = "current_thread")]
async fn texts_of_a_result_are_answered_together() {
    for (number, remain) in [(1, 1), (2, 2), (60, 1)] {
        let user = User::new();
        let mut event = event("");
        event["tool_response"] = json!(vec![lines(300); number]);
        let answer = user.answer(Agent::OpenCode, &event).await.unwrap();
        let texts = answer["output"].as_array().unwrap();
        assert_eq!(texts.len(), remain);
        let length: usize = texts.iter().map(|text| text.as_str().unwrap().len()).sum();
        assert!(length < 9_000, "{length}");
        assert_eq!(user.rows(Agent::OpenCode, &event).await.len(), 1);
    }
    let user = User::new();
    let mut event = event("");
    event["tool_response"] = json!(["a", 1]);
    let event = event.to_string();
    user.respond(Agent::OpenCode, event.as_bytes())
        .await
        .unwrap_err();
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
        let shown = output(&user, agent, &event).await.unwrap();
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
            user.home().join("tmp/inner/../../pi-bash-2.log"),
            user.home().join("tmp/pi-bash-missing.log"),
            PathBuf::from("pi-bash-3.log"),
            PathBuf::from("/dev/zero"),
        ];
        #[cfg(unix)]
        for link in ["agent/tool-output/tool_link", "tmp/pi-bash-link.log"] {
            let link = user.home().join(link);
            std::os::unix::fs::symlink(&files[3], &link).unwrap();
            files.push(link);
        }
        for file in files {
            let mut event = event(&lines(3_000));
            event["spilled"] = json!(file);
            // The part that is in the event is not stored either, as if it were all.
            let shown = output(&user, agent, &event).await;
            assert_eq!(shown, None, "{agent}: {file:?}");
            assert!(!user.store().join("s1").exists(), "{agent}: {file:?}");
        }
    }
}

#[tokio::test(flavor = "current_thread")]
async fn what_the_agent_has_cut_shorter_than_a_preview_stays() {
    let user = User::new();
    let mut event = event("the last lines\n");
    event["spilled"] = json!(user.file("tmp/pi-bash-1.log", &lines(9_000)));
    assert_eq!(output(&user, Agent::Pi, &event).await, None);
}
