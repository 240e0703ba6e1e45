//! Events as Claude Code 2.1.330 sends them, answered over a real store.

use std::path::Path;

use crate::support::lines;
use offcut::backend::{ErrorKind, Fs};
use offcut::{OnOffloadError, ToolReduction};
use offcut_cli::agents::Agent;
use offcut_cli::agents::hook::{self, Surroundings};
use offcut_cli::failure::Failure;
use offcut_testkit::{Fault, Faulty};
use serde_json::{Value, json};

/// A user with a session of the agent.
struct User(crate::support::User);

impl User {
    fn new() -> Self {
        let user = crate::support::User::new();
        std::fs::create_dir_all(user.home().join("agent/projects/-src/session/tool-results"))
            .unwrap();
        Self(user)
    }

    fn home(&self) -> &Path {
        self.0.home()
    }

    fn store(&self) -> &Path {
        self.0.store()
    }

    async fn answer(&self, event: &Value) -> Option<Value> {
        let answer = self.0.answer(Agent::ClaudeCode, event).await?;
        let output = &answer["hookSpecificOutput"];
        assert_eq!(output["hookEventName"], "PostToolUse");
        Some(output["updatedToolOutput"].clone())
    }

    async fn respond(&self, event: &str) -> Result<hook::Answer, Failure> {
        self.0.respond(Agent::ClaudeCode, event.as_bytes()).await
    }

    fn spill(&self, folder: &str, text: &str) -> String {
        let file = self.0.file(&format!("{folder}/b1.txt"), text);
        file.to_str().unwrap().to_owned()
    }
}

fn event(tool: &str, input: Value, response: Value) -> Value {
    json!({
        "session_id": "s1", "transcript_path": "/home/u/.claude/projects/-src/s1.jsonl",
        "cwd": "/src", "permission_mode": "default", "hook_event_name": "PostToolUse",
        "tool_name": tool, "tool_input": input, "tool_response": response,
        "tool_use_id": "toolu_1", "duration_ms": 12
    })
}

fn bash(stdout: &str) -> Value {
    json!({"stdout": stdout, "stderr": "", "interrupted": false, "isImage": false, "noOutputExpected": false})
}

/// The content that the hint in `text` leads to, which must be in this user's store.
fn read_back(user: &User, text: &str) -> String {
    let path = text.split('"').nth(1).unwrap();
    assert!(!path.contains(".."), "{path}");
    assert!(Path::new(path).starts_with(user.store()), "{path}");
    crate::support::read_back(text)
}

/// `response` with the text at `path` replaced by that of `other`.
fn with_text_of(response: &Value, path: &str, other: &Value) -> Value {
    let mut changed = response.clone();
    *changed.pointer_mut(path).unwrap() = other.pointer(path).unwrap().clone();
    changed
}

#[tokio::test(flavor = "current_thread")]
async fn a_long_text_is_stored_and_its_response_keeps_the_shape() {
    let long = lines(3_000);
    let edit = json!({"filePath": "/a", "oldString": "a", "newString": "b", "originalFile": long, "structuredPatch": []});
    let cases = [
        ("Bash", bash(&long), "/stdout"),
        (
            "Read",
            json!({"type": "text", "file": {"filePath": "/src/a", "content": long, "numLines": 3000}}),
            "/file/content",
        ),
        (
            "Grep",
            json!({"mode": "content", "content": long}),
            "/content",
        ),
        ("WebFetch", json!({"code": 200, "result": long}), "/result"),
        ("mcp__db__query", json!(long), ""),
        (
            "mcp__db__query",
            json!([{"type": "image", "data": long}, {"type": "text", "text": long}]),
            "/1/text",
        ),
        (
            "Task",
            json!({"content": [{"type": "text", "text": long}], "totalTokens": 5}),
            "/content/0/text",
        ),
    ];
    for (tool, response, path) in cases {
        let user = User::new();
        let answer = user
            .answer(&event(tool, json!({}), response.clone()))
            .await
            .unwrap();
        let text = answer.pointer(path).unwrap().as_str().unwrap();
        assert_eq!(read_back(&user, text), long, "{tool}");
        assert!(text.contains("Read it with Read."), "{tool}: {text:.200}");
        assert!(text.len() < long.len() / 4, "{tool}");
        assert_eq!(with_text_of(&answer, path, &response), response, "{tool}");
        // The client shows the answer to no other hook, but a resumed session may send it again.
        assert_eq!(
            user.answer(&event(tool, json!({}), answer)).await,
            None,
            "{tool}"
        );
    }
    let user = User::new();
    assert_eq!(user.answer(&event("Edit", json!({}), edit)).await, None);
}

#[tokio::test(flavor = "current_thread")]
async fn texts_of_a_result_share_limit_and_preview() {
    for (number, remain) in [(10, 10), (60, 1)] {
        let texts: Vec<_> = (0..number)
            .map(|n| format!("text {n}\n{}", lines(300)))
            .collect();
        let image = json!({"type": "image", "data": "AAAA"});
        let mut blocks: Vec<_> = texts
            .iter()
            .map(|text| json!({"type": "text", "text": text}))
            .collect();
        blocks.insert(3, image.clone());
        for response in [json!(blocks), json!({"content": blocks, "totalTokens": 5})] {
            let user = User::new();
            let event = event("mcp__db__query", json!({}), response.clone());
            let rows = user.0.rows(Agent::ClaudeCode, &event).await;
            assert_eq!(rows.len(), 1);
            let answer = user.answer(&event).await.unwrap();
            let content = answer.get("content").unwrap_or(&answer).as_array().unwrap();
            assert_eq!(content.len(), remain + 1);
            assert!(content.contains(&image));
            let shown: Vec<_> = content
                .iter()
                .filter_map(|block| block["text"].as_str())
                .collect();
            let length: usize = shown.iter().map(|text| text.len()).sum();
            assert!(length < 9_000, "{length}");
            assert_eq!(rows[0].after, length as u64);
            for (shown, text) in shown.iter().zip(&texts).filter(|_| remain == 10) {
                let is_stored = shown.starts_with("[offcut/1 ");
                assert!(*shown == text || is_stored && read_back(&user, shown) == *text);
            }
            if remain == 1 {
                assert!(read_back(&user, shown[0]).starts_with(&texts.join("\n")));
            }
        }
    }
}

#[tokio::test(flavor = "current_thread")]
async fn short_results_and_other_events_pass() {
    let user = User::new();
    let short = event("Bash", json!({"command": "ls"}), bash("a\nb\n"));
    assert_eq!(user.answer(&short).await, None);
    let mut failure = event("Bash", json!({}), json!(null));
    failure["hook_event_name"] = "PostToolUseFailure".into();
    failure["error"] = lines(3_000).into();
    assert_eq!(user.answer(&failure).await, None);
    let image =
        json!({"type": "image", "file": {"base64": "A".repeat(90_000), "type": "image/png"}});
    assert_eq!(user.answer(&event("Read", json!({}), image)).await, None);
    let mut image = bash(&lines(3_000));
    image["isImage"] = true.into();
    assert_eq!(user.answer(&event("Bash", json!({}), image)).await, None);
    assert_eq!(
        user.answer(&event("NewTool", json!({}), bash(&lines(3_000))))
            .await,
        None
    );
    assert!(!user.home().join("store/s1").exists());
}

#[tokio::test(flavor = "current_thread")]
async fn stdout_and_stderr_are_results_of_their_own() {
    let user = User::new();
    let mut response = bash(&lines(3_000));
    response["stderr"] = lines(2_000).into();
    let answer = user
        .answer(&event("Bash", json!({}), response))
        .await
        .unwrap();
    for (stream, count) in [("stdout", 3_000), ("stderr", 2_000)] {
        let shown = answer[stream].as_str().unwrap();
        assert_eq!(read_back(&user, shown), lines(count), "{stream}");
    }
}

#[tokio::test(flavor = "current_thread")]
async fn line_numbers_of_a_truncated_read_are_those_of_the_file() {
    let user = User::new();
    let read = |start: usize| {
        let file = json!({"filePath": "/src/a", "content": lines(3_000), "numLines": 3000, "startLine": start, "totalLines": 9000});
        let input = json!({"file_path": "/src/a", "offset": start});
        event("Read", input, json!({"type": "text", "file": file}))
    };
    // A preview would number the lines from 1.
    assert_eq!(user.answer(&read(11)).await, None);
    let answer = user.answer(&read(1)).await.unwrap();
    // The client numbers the hint as line 0 and the first line of the text as line 1.
    assert_eq!(answer["file"]["startLine"], 0);
    let text = answer["file"]["content"].as_str().unwrap();
    assert!(
        text.lines().nth(1).unwrap() == "1|line 1 of many",
        "{text:.300}"
    );
}

#[tokio::test(flavor = "current_thread")]
async fn what_our_program_has_shortened_passes() {
    let user = User::new();
    let shown = |n: usize| {
        let file = user.0.file(&format!("store/trunc/{n}"), &lines(2_000));
        let preview = format!("2|line 2 of many\n[… {} B …]", lines(1_900).len());
        let beginning = lines(250);
        format!(
            "{beginning}[offcut/1 truncated {}B/2000L 39+99 {file:?}] Stored in full. Read it with read_file.\n{preview}\n",
            lines(2_000).len()
        )
    };
    let one = shown(1);
    assert_eq!(
        user.answer(&event("Bash", json!({}), bash(&one))).await,
        None
    );
    let all: String = (1..=6).map(shown).collect();
    assert!(all.len() > 16 * 1024);
    assert_eq!(
        user.answer(&event("Bash", json!({}), bash(&all))).await,
        None
    );
    let padded = one + &lines(3_000);
    assert!(
        user.answer(&event("Bash", json!({}), bash(&padded)))
            .await
            .is_some()
    );
}

#[tokio::test(flavor = "current_thread")]
async fn spilled_output_is_taken_whole_from_the_agents_own_folder() {
    let user = User::new();
    let whole = lines(9_000);
    let mut response = bash(&whole[..30_000]);
    response["persistedOutputPath"] = user
        .spill("agent/projects/-src/session/tool-results", &whole)
        .into();
    response["persistedOutputSize"] = whole.len().into();
    let answer = user
        .answer(&event("Bash", json!({}), response))
        .await
        .unwrap();
    let shown = answer["stdout"].as_str().unwrap();
    assert_eq!(read_back(&user, shown), whole);
    // The client would have shown about as much.
    assert!((1_500..2_300).contains(&shown.len()), "{shown}");
    let keys: Vec<_> = answer.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "stdout",
            "stderr",
            "interrupted",
            "isImage",
            "noOutputExpected"
        ]
    );
}

#[tokio::test(flavor = "current_thread")]
async fn only_spilled_output_is_measured_against_the_clients_preview() {
    let user = User::new();
    let mut response = bash(&lines(2_000));
    response["stderr"] = "s".repeat(5_000).into();
    response["persistedOutputPath"] = user
        .spill("agent/projects/-src/session/tool-results", &lines(9_000))
        .into();
    let event = event("Bash", json!({}), response);
    let rows = user.0.rows(Agent::ClaudeCode, &event).await;
    let before: Vec<_> = rows.iter().map(|row| row.before).collect();
    assert_eq!(before, [7_300]);
}

#[tokio::test(flavor = "current_thread")]
async fn a_spilled_file_elsewhere_is_not_opened() {
    let part = &lines(9_000)[..30_000];
    let check = async |user: &User, tool: &str, path: &str| {
        let mut response = bash(part);
        response["persistedOutputPath"] = path.into();
        let response = if tool == "Bash" {
            response
        } else {
            json!([{"type": "text", "text": part, "persistedOutputPath": path}])
        };
        let answer = user.answer(&event(tool, json!({}), response)).await;
        // A part of stdout would be stored as if it were all.
        assert_eq!(answer.is_none(), tool == "Bash", "{path}");
        let text = answer.unwrap_or_default().to_string();
        assert!(!text.contains("secret"), "{path}");
    };
    let user = User::new();
    let secret = "secret\n".repeat(9_000);
    for folder in [
        "elsewhere",
        "agent",
        "agent/projects/-src",
        "agent/projects/x/../../tool-results",
    ] {
        std::fs::create_dir_all(user.home().join("agent/projects/x")).unwrap();
        check(&user, "Bash", &user.spill(folder, &secret)).await;
    }
    check(
        &user,
        "mcp__a__b",
        &user.spill("agent/projects/-src/session/tool-results", &secret),
    )
    .await;
    check(&user, "Bash", "tool-results/b1.txt").await;
    check(&user, "Bash", "/dev/zero").await;
    #[cfg(unix)]
    {
        let outside = user.spill("elsewhere", &secret);
        let link = user
            .home()
            .join("agent/projects/-src/session/tool-results/link.txt");
        std::os::unix::fs::symlink(outside, &link).unwrap();
        check(&user, "Bash", link.to_str().unwrap()).await;
    }
}

#[tokio::test(flavor = "current_thread")]
async fn content_of_the_store_is_never_truncated_again() {
    let user = User::new();
    let long = lines(3_000);
    user.answer(&event("Bash", json!({}), bash(&long)))
        .await
        .unwrap();
    let path = user.home().join("store/s1/trunc/toolu_1");
    let path = path.to_str().unwrap();
    let file = json!({"type": "text", "file": {"content": long}});
    let mut again = event("Read", json!({"file_path": path}), file.clone());
    assert_eq!(user.answer(&again).await, None);
    again["session_id"] = "resumed".into();
    assert_eq!(
        user.answer(&again).await,
        None,
        "hints of another session lead there too"
    );
    let cat = event(
        "Bash",
        json!({"command": format!("sed -n 1,900p '{path}'")}),
        bash(&long),
    );
    assert_eq!(user.answer(&cat).await, None);
    let grep = event(
        "Grep",
        json!({"path": path}),
        json!({"mode": "content", "content": long}),
    );
    assert_eq!(user.answer(&grep).await, None);
    let tilde = json!({"file_path": format!("file://{path}")});
    assert_eq!(user.answer(&event("Read", tilde, file.clone())).await, None);
    // Other spellings, relative to the directory of the event or of a `cd`.
    let link = user.home().join("link");
    std::os::unix::fs::symlink(user.home().join("store/s1"), &link).unwrap();
    for (directory, command) in [
        ("", "cat store/s1/trunc/toolu_1".to_owned()),
        ("store/s1/trunc", "cat toolu_1".to_owned()),
        ("store/s1", "cat 'trunc/toolu_1'".to_owned()),
        ("agent", "cat <../link/trunc/toolu_1 | head -900".to_owned()),
        ("agent", "cd ../link/trunc; cat toolu_1".to_owned()),
        ("/", format!("curl -s file://{path}")),
    ] {
        std::fs::create_dir_all(user.home().join("agent")).unwrap();
        let mut cat = event("Bash", json!({"command": command}), bash(&long));
        cat["cwd"] = user.home().join(directory).to_str().unwrap().into();
        assert_eq!(user.answer(&cat).await, None, "{command}");
    }
    // A file that only has such a name is not stored content.
    for path in [
        "/src/store/s1/trunc/toolu_1",
        "../store/x",
        &format!("{path}/../../../../a"),
    ] {
        std::fs::write(user.home().join("a"), "").unwrap();
        let mut other = event("Read", json!({"file_path": path}), file.clone());
        other["tool_use_id"] = format!("toolu_{}", path.len()).into();
        assert!(user.answer(&other).await.is_some(), "{path}");
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_page_stands_below_what_its_reader_says() {
    let user = User::new();
    let long = lines(3_000);
    let stored = event("Bash", json!({}), bash(&long));
    user.answer(&stored).await.unwrap();
    let path = user.store().join("s1/trunc/toolu_1");
    let text = format!("{}:\n{long}", path.display());
    for response in [json!(text), json!([{"type": "text", "text": text}])] {
        let input = json!({"paths": [path]});
        let event = event("mcp__fs__read_multiple_files", input, response);
        let answer = user.answer(&event).await.unwrap();
        let shown = answer.pointer("/0/text").unwrap_or(&answer);
        let (said, page) = shown.as_str().unwrap().split_once(":\n").unwrap();
        assert_eq!(said, path.to_str().unwrap());
        let page = offcut::hint::Hint::parse(page).unwrap();
        assert_eq!(page.location.unwrap().as_str(), said);
        assert!(page.preview.starts_with("line 1 of many\nline 2 of many\n"));
    }
}

#[tokio::test(flavor = "current_thread")]
async fn subagents_and_hostile_ids_have_places_of_their_own() {
    let user = User::new();
    let mut first = event("Bash", json!({}), bash(&lines(3_000)));
    let mut second = event("Bash", json!({}), bash(&lines(4_000)));
    second["agent_id"] = "a7".into();
    let texts = [
        user.answer(&first).await.unwrap(),
        user.answer(&second).await.unwrap(),
    ];
    assert_ne!(texts[0], texts[1]);
    let of_subagent = read_back(&user, texts[1]["stdout"].as_str().unwrap());
    assert_eq!(of_subagent, lines(4_000));
    first["session_id"] = "../../etc".into();
    first["tool_use_id"] = "../../passwd\n".into();
    let answer = user.answer(&first).await.unwrap();
    assert_eq!(
        read_back(&user, answer["stdout"].as_str().unwrap()),
        lines(3_000)
    );
}

#[tokio::test(flavor = "current_thread")]
async fn a_store_that_fails_changes_nothing_and_says_why() {
    for on_failure in [OnOffloadError::KeepOriginal, OnOffloadError::Fail] {
        let home = tempfile::tempdir().unwrap();
        let store = Faulty::new(Fs::open(home.path()).unwrap());
        store.fault_on_every_write(Fault::Fail(ErrorKind::Other));
        let reduction = ToolReduction::recommended(store)
            .on_offload_error(on_failure)
            .build()
            .unwrap();
        let event = event("Bash", json!({}), bash(&lines(3_000))).to_string();
        let error = hook::answer(
            Agent::ClaudeCode,
            event.as_bytes(),
            &reduction,
            &Surroundings::default(),
        )
        .await
        .unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("a result could not be stored"),
            "{error}"
        );
    }
}

#[tokio::test(flavor = "current_thread")]
async fn an_event_that_is_not_one_is_refused() {
    let user = User::new();
    for event in [
        "",
        "null",
        "[]",
        "{}",
        "{\"hook_event_name\": 5}",
        "\u{fffd}",
        "{\"hook_event_name\":\"PostToolUse\"",
    ] {
        user.respond(event).await.unwrap_err();
    }
    let empty = json!({"hook_event_name": "PostToolUse"});
    assert_eq!(user.answer(&empty).await, None);
}

#[tokio::test(flavor = "current_thread")]
async fn text_that_was_cut_in_the_middle_of_a_character_is_truncated_too() {
    let user = User::new();
    let event = event("Bash", json!({}), bash(&lines(3_000))).to_string();
    let event = event.replace("line 2999 of many", r"half \ud83d");
    let answer = user.respond(&event).await.unwrap();
    assert!(answer.output.unwrap().contains("half \u{fffd}"));
}
