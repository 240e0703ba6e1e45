//! Our plug-ins, run by Node.js with events as their hosts send them. Skipped without Node.js.

#![cfg(unix)]
use std::fs;
use std::process::Command;

use serde_json::{Value, json};

/// Answers each event by what it was, so that a test sees what was sent.
const ECHO: &str = r#"node -e '
let event = ""; process.stdin.on("data", (part) => event += part).on("end", () => {
  const { tool_response, ...rest } = JSON.parse(event);
  const output = (text) => `${text.length} of ${JSON.stringify(rest)}`;
  const texts = [tool_response].flat().map(output);
  if (texts.length > 1) texts.length = 1;
  console.log(JSON.stringify({ output: Array.isArray(tool_response) ? texts : texts[0] }));
});'"#;
const OPENCODE: &str = include_str!("../../src/agents/plugins/opencode.js");
const PI: &str = include_str!("../../src/agents/plugins/pi.js");

/// Runs `script` beside a plug-in that asks `command`, and returns the JSON that it prints.
fn run(plugin: &str, command: &[&str], script: &str) -> Option<Value> {
    if Command::new("node").arg("--version").output().is_err() {
        eprintln!("skipped: there is no Node.js");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let plugin = plugin
        .replacen("__OFFCUT_COMMAND__", &json!(command).to_string(), 1)
        .replacen("__OFFCUT_STORES__", r#"["/home/u/store"]"#, 1);
    assert!(!plugin.contains("__OFFCUT"));
    fs::write(folder.path().join("plugin.mjs"), plugin).unwrap();
    fs::write(folder.path().join("script.mjs"), script).unwrap();
    let ran = Command::new("node")
        .arg(folder.path().join("script.mjs"))
        .output()
        .unwrap();
    let problem = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{problem}");
    Some(serde_json::from_slice(&ran.stdout).unwrap())
}

/// Commands that can't answer: missing, failing, and answering something else.
const BROKEN: [&[&str]; 5] = [
    &["/nonexistent/offcut"],
    &["sh", "-c", "exit 3"],
    &["sh", "-c", "cat >/dev/null; echo no JSON"],
    &["sh", "-c", "cat >/dev/null; echo '{\"output\": 5}'"],
    &[
        "sh",
        "-c",
        "cat >/dev/null; echo '{\"output\": [\"a\", \"b\"]}'",
    ],
];

const IN_OPENCODE: &str = r#"
import { Offcut } from "./plugin.mjs";
const long = "x".repeat(2000);
const lines = Array.from({ length: 300 }, (_, at) => `line ${at}`);
const numbered = lines.map((line, at) => `${at + 11}: ${line}`).join("\n");
const hooks = await Offcut({ directory: "/src" });
const config = { permission: { edit: "ask", external_directory: "deny" } };
await hooks.config(config);
const results = [
  ["bash", { output: long, metadata: { truncated: true, outputPath: "/spilled" } }],
  ["bash", { output: "short", metadata: { truncated: false } }],
  ["skill", { output: long, metadata: {} }],
  ["srv_a", { content: [{ type: "text", text: long }, { type: "image", data: long }] }],
  ["read", { output: `<content>\n${numbered}\n\n(End)\n</content>`,
             metadata: { display: { type: "file", text: lines.join("\n"), lineStart: 11 }, loaded: [] } }],
  ["task", undefined],
  ["srv_b", { content: [1, 2, 3].map(() => ({ type: "resource", resource: { text: long } })) }],
];
// The user and the project may have a plug-in each.
const twice = await import("./plugin.mjs?twice");
const others = await twice.Offcut({ directory: "/src" });
for (const [tool, result] of results) {
  await hooks["tool.execute.after"]({ tool, sessionID: "s", callID: "c", args: { a: 1 } }, result);
  await others["tool.execute.after"]({ tool, sessionID: "twice", callID: "c", args: { a: 1 } }, result);
}
console.log(JSON.stringify([config.permission, ...results.map(([, result]) => result?.output ?? result?.content ?? null)]));
"#;

#[test]
fn opencodes_results_are_replaced() {
    let Some(answer) = run(OPENCODE, &["sh", "-c", ECHO], IN_OPENCODE) else {
        return;
    };
    assert_eq!(
        answer[0].to_string(),
        r#"{"edit":"ask","external_directory":{"*":"deny","/home/u/store/*":"allow"}}"#
    );
    let event = |call: &str, tool: &str| {
        format!(
            r#"{{"session_id":"s","cwd":"/src","tool_use_id":"{call}","tool_name":"{tool}","tool_input":{{"a":1}}"#
        )
    };
    assert_eq!(
        answer[1],
        format!(r#"2000 of {},"spilled":"/spilled"}}"#, event("c", "bash"))
    );
    assert_eq!(answer[2], "short");
    assert_eq!(answer[3].as_str().unwrap().len(), 2_000);
    assert_eq!(
        answer[4][0]["text"],
        format!("2000 of {}}}", event("c", "srv_a"))
    );
    let resource = json!({"type": "resource", "resource": {"text": format!("2000 of {}}}", event("c", "srv_b"))}});
    assert_eq!(answer[7], json!([resource]));
    assert_eq!(answer[4][1]["data"].as_str().unwrap().len(), 2_000);
    let page = answer[5].as_str().unwrap();
    assert_eq!(
        page,
        format!(
            "<content>\n4000 of {}}}\n\n(End)\n</content>",
            event("c", "read")
        )
    );
}

#[test]
fn opencodes_results_stay_if_nothing_answers() {
    for command in BROKEN {
        let Some(answer) = run(OPENCODE, command, IN_OPENCODE) else {
            return;
        };
        assert_eq!(answer[1], "x".repeat(2_000), "{command:?}");
        assert_eq!(answer[4][0]["text"], "x".repeat(2_000), "{command:?}");
        assert_eq!(answer[7].as_array().unwrap().len(), 3);
        assert!(answer[5].as_str().unwrap().contains("\n310: line 299\n"));
    }
}

const IN_PI: &str = r#"
import extension from "./plugin.mjs";
const on = {};
extension({ on: (name, handler) => (on[name] = handler) });
// The user and the project may have an extension each.
const twice = await import("./plugin.mjs?twice");
const others = {};
twice.default({ on: (name, handler) => (others[name] = handler) });
const ctx = { cwd: "/src", sessionManager: { getSessionId: () => "s" }, signal: new AbortController().signal };
const text = (text) => ({ type: "text", text });
const long = "x".repeat(2000);
const ask = async (more) => {
  const event = { toolCallId: "c", input: { a: 1 }, isError: false, ...more };
  const answer = (await on.tool_result(event, ctx)) ?? null;
  if (await others.tool_result(event, ctx)) throw new Error("answered twice");
  return answer;
};
const answers = [
  await ask({ toolName: "bash", content: [text(long)], details: { fullOutputPath: "/spilled" } }),
  await ask({ toolName: "bash", content: [text("short")], details: {} }),
  await ask({ toolName: "read", content: [text("a picture"), { type: "image", data: long }], details: undefined }),
];
on.tool_execution_update({ toolCallId: "c", partialResult: { content: [], details: { fullOutputPath: "/spilled" } } });
const failed = { toolName: "bash", isError: true, content: [text(`${long}\n\nCommand exited with code 3`)], details: {} };
answers.push(await ask(failed));
on.tool_execution_end({ toolCallId: "c" });
answers.push(await ask(failed));
const image = { type: "image", data: long };
answers.push(await ask({ toolName: "bash", content: [text(long), image, text(long), text("x")] }));
console.log(JSON.stringify(answers));
"#;

#[test]
fn pis_results_are_replaced() {
    let Some(answer) = run(PI, &["sh", "-c", ECHO], IN_PI) else {
        return;
    };
    let event = r#"{"session_id":"s","cwd":"/src","tool_use_id":"c","tool_name":"bash","tool_input":{"a":1}"#;
    let content = |text: String| json!({"content": [{"type": "text", "text": text}]});
    let spilled = format!(r#"2000 of {event},"spilled":"/spilled"}}"#);
    let status = "\n\nCommand exited with code 3";
    assert_eq!(answer[0], content(spilled.clone()));
    assert_eq!(answer[1], json!(null));
    assert_eq!(answer[2], json!(null));
    assert_eq!(answer[3], content(spilled + status));
    assert_eq!(
        answer[4],
        content(format!("{} of {event}}}", 2_000 + status.len()))
    );
    let together = answer[5]["content"].as_array().unwrap();
    assert_eq!(together[0]["text"], format!("2000 of {event}}}"));
    assert_eq!((together.len(), &together[1]["type"]), (2, &json!("image")));
}

#[test]
fn pis_results_stay_if_nothing_answers() {
    for command in BROKEN {
        let Some(answer) = run(PI, command, IN_PI) else {
            return;
        };
        assert_eq!(
            answer,
            json!([null, null, null, null, null, null]),
            "{command:?}"
        );
    }
}

/// The answers of a script whose plug-in asks this program for an `agent`, over results of 20 kB.
fn asking_offcut(plugin: &str, agent: &str, script: &str) -> Option<Value> {
    let home = tempfile::tempdir().unwrap();
    let home = format!("OFFCUT_HOME={}", home.path().display());
    let program = env!("CARGO_BIN_EXE_offcut");
    let command = ["env", &home, "OFFCUT_NO_SWEEP=1", program, "hook", agent];
    let script = script.replace(r#""x".repeat(2000)"#, r#""some line\n".repeat(2000)"#);
    run(plugin, &command, &script)
}

#[test]
fn a_part_of_a_file_that_cant_be_read_stays() {
    let is_hint = |text: &Value| text.as_str().unwrap().starts_with("[offcut/1 ");
    let Some(answer) = asking_offcut(OPENCODE, "opencode", IN_OPENCODE) else {
        return;
    };
    assert_eq!(answer[1], "some line\n".repeat(2_000));
    assert!(is_hint(&answer[4][0]["text"]), "{}", answer[4]);
    let answer = asking_offcut(PI, "pi", IN_PI).unwrap();
    assert_eq!(answer[0], json!(null));
    // Of a failed result, an update has named the file.
    assert_eq!(answer[3], json!(null));
    assert!(is_hint(&answer[4]["content"][0]["text"]), "{}", answer[4]);
}
