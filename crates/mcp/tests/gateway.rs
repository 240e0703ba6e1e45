//! A client and a server with the gateway between them, over pipes in memory.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::{Ends, LIMIT, gateway, hint_in, log, reduction};
use offcut::ToolReduction;
use offcut::backend::Memory;
use offcut_mcp::FromServer;
use proptest::prelude::*;
use serde_json::{Value, json};

fn call(id: &Value, tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {"a": 1}}})
}

fn answer(id: &Value, text: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}})
}

/// A list of tools by name; one with a schema.
fn list(id: &Value, names: &[&str]) -> Value {
    let tool = |name: &&str| match *name {
        "rows" => {
            json!({"name": name, "inputSchema": {"type": "object"}, "outputSchema": {"type": "object", "properties": {"log": {"type": "string"}}, "required": ["log"], "additionalProperties": false}})
        }
        _ => json!({"name": name, "inputSchema": {"type": "object"}}),
    };
    json!({"jsonrpc": "2.0", "id": id, "result": {"tools": names.iter().map(tool).collect::<Vec<_>>()}})
}

async fn listed(ends: &mut Ends, names: &[&str]) -> Value {
    ends.ask(&json!({"jsonrpc": "2.0", "id": "list", "method": "tools/list"}))
        .await;
    ends.reply(&list(&json!("list"), names)).await
}

#[tokio::test]
async fn a_long_result_is_stored_and_the_reader_reads_it_back() {
    let mut ends = Ends::around(gateway(reduction()));
    let shown = listed(&mut ends, &["log"]).await;
    assert_eq!(shown["result"]["tools"][1]["name"], "read_file");
    assert_eq!(
        shown["result"]["tools"][1]["annotations"]["readOnlyHint"],
        true
    );
    for id in [
        json!(1),
        json!("one"),
        json!(1.5),
        json!(null),
        json!(-7),
        json!({"a": [1]}),
    ] {
        ends.ask(&call(&id, "log")).await;
        let shown = ends.reply(&answer(&id, &log())).await;
        assert_eq!(shown["id"], id);
        let hint = hint_in(&shown).expect("it is long");
        assert!(shown.to_string().len() < LIMIT);
        let read = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "read_file", "arguments": {"path": hint.location.unwrap().to_string(), "pattern": "^00499"}}});
        ends.send(&read).await;
        let page = ends.received().await;
        assert_eq!(
            (&page["id"], &page["result"]["isError"]),
            (&id, &json!(false))
        );
        assert!(hint_in(&page).unwrap().preview.contains("00499 naïve"));
    }
}

#[tokio::test]
async fn a_server_that_first_wants_to_be_read_keeps_no_answer_waiting() {
    let mut ends = Ends::around(gateway(reduction()));
    listed(&mut ends, &["log"]).await;
    ends.ask(&call(&json!(0), "log")).await;
    let shown = ends.reply(&answer(&json!(0), &log())).await;
    let path = hint_in(&shown).unwrap().location.unwrap().to_string();
    // More answers than a pipe holds, and then more for the server than it has read.
    for id in 1..=20 {
        let params = json!({"name": "read_file", "arguments": {"path": path}});
        ends.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
            .await;
    }
    ends.send(&json!({"jsonrpc": "2.0", "method": "x", "params": {"text": "x".repeat(12_000)}}))
        .await;
    let told = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}});
    ends.say(&told).await;
    let mut received = Vec::new();
    for _ in 0..21 {
        received.push(ends.received().await);
    }
    assert!(received.contains(&told));
    assert_eq!(ends.seen().await["method"], "x");
}

#[tokio::test(start_paused = true)]
async fn the_servers_end_stays_open_until_it_has_answered() {
    let mut ends = Ends::around(gateway(reduction()));
    listed(&mut ends, &["log"]).await;
    let other = json!({"jsonrpc": "2.0", "id": "p", "method": "prompts/list"});
    let cancelled = json!({"jsonrpc": "2.0", "id": "c", "method": "resources/list"});
    for asked in [&call(&json!(1), "log"), &other, &cancelled] {
        ends.ask(asked).await;
    }
    ends.ask(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "c"}})).await;
    ends.client_closes();
    let error = json!({"jsonrpc": "2.0", "id": "p", "error": {"code": 1, "message": "no"}});
    assert_eq!(ends.reply(&error).await, error);
    assert!(ends.is_server_open().await, "a call is open");
    assert!(hint_in(&ends.reply(&answer(&json!(1), &log())).await).is_some());
    ends.client_leaves().await;
    ends.server_ends().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_servers_end_is_closed_if_no_answer_comes_or_the_server_ends() {
    let mut ends = Ends::around(gateway(reduction()));
    listed(&mut ends, &["log"]).await;
    ends.ask(&call(&json!(1), "log")).await;
    let before = tokio::time::Instant::now();
    // Waits for the end of the server's stdin.
    ends.client_leaves().await;
    assert_eq!(before.elapsed().as_secs(), 60);
    ends.server_ends().await.unwrap();

    let mut ends = Ends::around(gateway(reduction()));
    listed(&mut ends, &["log"]).await;
    ends.ask(&call(&json!(1), "log")).await;
    ends.client_closes();
    let before = tokio::time::Instant::now();
    ends.server_ends().await.unwrap();
    assert_eq!(before.elapsed().as_secs(), 0);
}

#[tokio::test]
async fn the_models_own_call_id_names_the_result() {
    let mut ends = Ends::around(gateway(reduction()));
    listed(&mut ends, &["log"]).await;
    let mut asked = call(&json!(1), "log");
    asked["params"]["_meta"] = json!({"claudecode/toolUseId": "toolu_01"});
    ends.ask(&asked).await;
    let shown = ends.reply(&answer(&json!(1), &log())).await;
    assert_eq!(
        hint_in(&shown).unwrap().location.unwrap().as_str(),
        "memory://t/trunc/toolu_01"
    );
    asked["params"]["_meta"] = json!({"claudecode/toolUseId": "../../etc/passwd"});
    ends.ask(&asked).await;
    let shown = ends.reply(&answer(&json!(1), &log())).await;
    let location = hint_in(&shown).unwrap().location.unwrap();
    assert!(
        location.as_str().starts_with("memory://t/trunc/") && !location.as_str().contains(".."),
        "{location}"
    );
}

#[tokio::test]
async fn m2_answers_out_of_order_find_their_calls() {
    let mut ends = Ends::around(gateway(reduction()));
    listed(&mut ends, &["log", "exact"]).await;
    for (id, tool) in [(1, "log"), (2, "exact"), (3, "log")] {
        ends.ask(&call(&json!(id), tool)).await;
    }
    for (id, is_long) in [(3, false), (2, true), (1, false)] {
        let shown = ends.reply(&answer(&json!(id), &log())).await;
        assert_eq!(
            (&shown["id"], hint_in(&shown).is_none()),
            (&json!(id), is_long)
        );
    }
    // An answer to no request passes as it is.
    let stray = answer(&json!(1), &log());
    assert_eq!(ends.reply(&stray).await, stray);
    // Few clients would read a message after a byte-order mark.
    let marked = ends.reply_line(&format!("\u{feff}{stray}")).await;
    assert_eq!(marked, stray.to_string());
}

#[tokio::test]
async fn errors_and_requests_of_the_server_pass_as_they_are() {
    let mut ends = Ends::around(gateway(reduction()));
    listed(&mut ends, &["log"]).await;
    ends.ask(&call(&json!(1), "log")).await;
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {"messages": [], "x": log()}}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {"message": log()}}),
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "message": log()}}),
        json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": log()}}),
    ] {
        assert_eq!(ends.reply(&message).await, message);
    }
    let sampled = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": log()}]}});
    ends.send(&sampled).await;
    assert_eq!(ends.seen().await, sampled);
}

#[tokio::test]
async fn m4_the_reader_takes_another_name_if_the_server_has_its_own() {
    let mut ends = Ends::around(gateway(reduction()));
    let shown = listed(&mut ends, &["read_file", "read_stored_result", "log"]).await;
    assert_eq!(shown["result"]["tools"][3]["name"], "read_stored_result_2");
    ends.ask(&call(&json!(1), "read_file")).await;
    let shown = ends.reply(&answer(&json!(1), &log())).await;
    assert!(
        hint_in(&shown)
            .unwrap()
            .prose
            .contains("read_stored_result_2")
    );
}

#[tokio::test]
async fn only_the_first_page_of_the_list_has_the_reader_and_other_fields_keep_their_spelling() {
    let mut ends = Ends::around(gateway(reduction()));
    let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let first = r#"{"jsonrpc":"2.0","id":1, "result":{ "tools":[{"name":"log","x":1.00} ],"nextCursor":"2","ttlMs":1E2}}"#;
    // Also when it is asked for again.
    for _ in 0..2 {
        ends.ask(&ask).await;
        let shown = ends.reply_line(first).await;
        let (before, after) = first.split_once(" ],").unwrap();
        assert!(shown.starts_with(&format!("{before},{{")), "{shown}");
        assert!(shown.ends_with(&format!("}}],{after}")), "{shown}");
        for last in [first, r#"{"jsonrpc":"2.0","id":1,"result":{ "tools":[ ]}}"#] {
            let mut next = ask.clone();
            next["params"] = json!({"cursor": "2"});
            ends.ask(&next).await;
            assert_eq!(ends.reply_line(last).await, last);
        }
    }
}

#[tokio::test]
async fn a_dense_message_of_a_server_passes_unread_and_the_log_says_so() {
    let (gateway, lines) = common::logged(offcut_mcp::McpGateway::new(reduction()));
    let mut ends = Ends::around(gateway);
    listed(&mut ends, &["log"]).await;
    for (id, values, is_read) in [(1, 1 << 20, false), (2, 1 << 18, true)] {
        ends.ask(&call(&json!(id), "log")).await;
        let list = "1,".repeat(values);
        let answer = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"structuredContent":{{"a":[{list}1]}}}}}}"#
        );
        let shown = ends.reply_line(&answer).await;
        assert_eq!(shown.len() < answer.len(), is_read);
        assert!(is_read || shown == answer);
    }
    let lines = lines.lock().unwrap();
    assert!(
        lines.len() == 1 && lines[0].contains("the server"),
        "{lines:?}"
    );
}

#[tokio::test]
async fn schemas_of_tools_are_asked_for_before_the_first_call() {
    let mut ends = Ends::around(gateway(reduction()));
    let mut asked = call(&json!(1), "rows");
    asked["params"]["_meta"] =
        json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "progressToken": 1});
    ends.send(&asked).await;
    let own = ends.seen().await;
    assert_eq!(own["method"], "tools/list");
    assert_eq!(
        own["params"],
        json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}})
    );
    assert_eq!(ends.seen().await, asked);
    // The client does not see the page, and no other is asked for.
    let mut page = list(&own["id"], &["rows"]);
    page["result"]["nextCursor"] = json!("2");
    ends.say(&page).await;
    let document = json!({"log": log()});
    let result = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": document.to_string()}], "structuredContent": document}});
    let shown = ends.reply(&result).await;
    let shown = &shown["result"]["structuredContent"];
    assert!(hint_in(shown).is_some() && shown.as_object().unwrap().len() == 1);
    // It asks once.
    ends.ask(&call(&json!(2), "log")).await;
}

#[tokio::test]
async fn a_list_of_tools_that_fails_is_asked_for_again_before_the_next_call() {
    let mut ends = Ends::around(gateway(reduction()));
    let refused = |id: &Value| json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": "not yet"}});
    let nonsense = |id: &Value| json!({"jsonrpc": "2.0", "id": id, "result": {"tools": "none"}});
    for (nth, fails) in [refused, nonsense].into_iter().enumerate() {
        ends.send(&call(&json!(nth), "log")).await;
        let own = ends.seen().await;
        assert_eq!(own["method"], "tools/list", "{nth}");
        ends.seen().await;
        ends.say(&fails(&own["id"])).await;
        ends.reply(&answer(&json!(nth), &log())).await;
    }
    // The client's own counts too.
    let asked = json!({"jsonrpc": "2.0", "id": "list", "method": "tools/list"});
    ends.ask(&asked).await;
    let failed = refused(&json!("list"));
    assert_eq!(ends.reply(&failed).await, failed);
    ends.ask(&asked).await;
    ends.ask(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "list"}}))
        .await;
    ends.send(&call(&json!(9), "log")).await;
    let own = ends.seen().await;
    assert_eq!(own["method"], "tools/list");
    ends.seen().await;
    ends.say(&list(&own["id"], &["log"])).await;
    let document = json!({"log": log()});
    let result = json!({"jsonrpc": "2.0", "id": 9, "result": {"content": [], "structuredContent": document}});
    let shown = ends.reply(&result).await;
    assert!(hint_in(&shown["result"]["structuredContent"]).is_some());
    ends.ask(&call(&json!(10), "log")).await;
}

#[tokio::test]
async fn a_cancelled_request_is_forgotten() {
    let mut ends = Ends::around(gateway(reduction()));
    listed(&mut ends, &["log"]).await;
    ends.ask(&call(&json!(1), "log")).await;
    ends.ask(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
    )
    .await;
    let late = answer(&json!(1), &log());
    assert_eq!(ends.reply(&late).await, late);
}

#[tokio::test]
async fn the_result_of_a_task_passes() {
    let mut ends = Ends::around(gateway(reduction()));
    listed(&mut ends, &["log"]).await;
    ends.ask(&call(&json!(1), "log")).await;
    let made = json!({"jsonrpc": "2.0", "id": 1, "result": {"task": {"taskId": "t-1", "status": "working"}}});
    assert_eq!(ends.reply(&made).await, made);
    ends.ask(
        &json!({"jsonrpc": "2.0", "id": 2, "method": "tasks/result", "params": {"taskId": "t-1"}}),
    )
    .await;
    let result = answer(&json!(2), &log());
    assert_eq!(ends.reply(&result).await, result);
}

#[tokio::test]
async fn a_message_over_the_maximum_is_refused_with_an_error_that_names_it() {
    let (gateway, lines) =
        common::logged(offcut_mcp::McpGateway::new(reduction()).max_message(5_000));
    let mut ends = Ends::around(gateway);
    listed(&mut ends, &["log"]).await;
    let text = "x".repeat(300_000);
    ends.ask(&call(&json!(1), "log")).await;
    let refused = |error: &Value, id: &Value| {
        let text = error["error"]["message"].as_str().unwrap();
        assert!(
            text.contains("--max-message") && text.contains("5000 bytes"),
            "{text}"
        );
        assert_eq!(
            (&error["id"], &error["error"]["code"]),
            (id, &json!(-32603))
        );
    };
    refused(&ends.reply(&answer(&json!(1), &text)).await, &json!(1));
    // Some write the id at the end.
    ends.ask(&call(&json!(1), "log")).await;
    let long =
        format!(r#"{{"result":{{"content":[{{"text":"{text}"}}]}},"jsonrpc":"2.0","id":1}}"#);
    refused(
        &serde_json::from_str(&ends.reply_line(&long).await).unwrap(),
        &json!(1),
    );
    for long in [
        format!(r#"{{"jsonrpc":"2.0","id":"a","method":"x","params":{{"id":2,"a":"{text}"}}}}"#),
        format!(r#"{{"method":"x","params":{{"id":2,"a":"{text}"}},"jsonrpc":"2.0","id":"a"}}"#),
    ] {
        let error = ends.answered_here(&long).await;
        refused(&serde_json::from_str(&error).unwrap(), &json!("a"));
    }
    // The server waits too: for the answer to a request of its own.
    ends.send(&answer(&json!(9), &text)).await;
    refused(&ends.seen().await, &json!(9));
    ends.say(&json!({"jsonrpc": "2.0", "id": 4, "method": "x", "params": {"a": text}}))
        .await;
    refused(&ends.seen().await, &json!(4));
    // Nobody waits for an answer to these, and what comes after them passes.
    ends.send(&json!({"jsonrpc": "2.0", "method": "x", "params": {"a": text}}))
        .await;
    ends.ask(&call(&json!(3), "log")).await;
    ends.say(&json!({"jsonrpc": "2.0", "method": "x", "params": {"a": text}}))
        .await;
    ends.say(&answer(&json!(9), &text)).await;
    ends.say_line(&text).await;
    let short = answer(&json!(3), "short");
    assert_eq!(ends.reply(&short).await, short);
    let lines = lines.lock().unwrap();
    let from = |from: &str| lines.iter().filter(|line| line.contains(from)).count();
    assert_eq!(
        (from("of the client is"), from("of the server is")),
        (4, 5),
        "{lines:?}"
    );
    assert_eq!(
        (from("what is not a message: \"xxx"), lines.len()),
        (1, 10),
        "{lines:?}"
    );
}

#[tokio::test]
async fn a_failing_store_lets_results_pass_and_the_log_says_so() {
    let store = offcut_testkit::Faulty::new(Memory::new());
    store.fault_on_every_write(offcut_testkit::Fault::Fail(
        offcut::backend::ErrorKind::Unavailable,
    ));
    let broken = ToolReduction::recommended(store)
        .max_length_for_trunc(LIMIT)
        .build()
        .unwrap();
    let (gateway, lines) = common::logged(offcut_mcp::McpGateway::new(broken));
    let mut ends = Ends::around(gateway);
    listed(&mut ends, &["log"]).await;
    ends.ask(&call(&json!(1), "log")).await;
    assert_eq!(
        ends.reply(&answer(&json!(1), &log())).await,
        answer(&json!(1), &log())
    );
    assert!(lines.lock().unwrap()[0].starts_with("the result of \"log\": "));
}

#[tokio::test]
async fn what_the_client_asked_before_it_left_is_answered() {
    let mut ends = Ends::around(gateway(reduction()));
    listed(&mut ends, &["log"]).await;
    ends.send(&call(&json!(7), "read_file")).await;
    ends.client_leaves().await;
    assert_eq!(ends.received().await["id"], 7);
    ends.say(&json!({"jsonrpc": "2.0", "method": "last"})).await;
    assert_eq!(ends.received().await["method"], "last");
    assert!(ends.server_ends().await.is_ok());
}

#[tokio::test]
async fn m1_of_a_key_that_is_there_twice_the_last_counts() {
    let mut ends = Ends::around(gateway(reduction()));
    ends.send(&call(&json!(1), "log")).await;
    let own = ends.seen().await["id"].to_string();
    ends.seen().await;
    // The gateway's own list, which is not for the client.
    let dropped = r#"{"tools":[],"tools":[{"name":"log"}]}"#;
    let page = format!(r#"{{"jsonrpc":"2.0","id":7,"id":{own},"result":{{}},"result":{dropped}}}"#);
    ends.say_line(&page).await;
    let [first, last] = ["first", &log()].map(|text| answer(&json!(1), text)["result"].clone());
    let twice = format!(r#"{{"id":2,"id":1,"result":{first},"result":{last},"jsonrpc":"2.0"}}"#);
    let shown = ends.reply_line(&twice).await;
    assert!(
        shown.starts_with(&format!(r#"{{"id":2,"id":1,"result":{first},"result":"#)),
        "{shown}"
    );
    assert!(
        hint_in(&serde_json::from_str(&shown).unwrap()).is_some(),
        "{shown}"
    );
}

#[tokio::test]
async fn a_list_that_is_not_plain_has_the_reader_too() {
    let mut ends = Ends::around(gateway(reduction()));
    for odd in [
        // Half of a character, where a server has cut a text.
        r#""name":"log","description":"\ud83d""#,
        r#""name":"log","title":"a","title":"b""#,
        r#""name":"rows","outputSchema":{},"outputSchema":{"a":1}"#,
    ] {
        let asked = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        ends.ask(&asked).await;
        let list = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{{{odd}}}]}}}}"#);
        let received = ends.reply_line(&list).await;
        let expected = format!(r#"{{"tools":[{{{odd}}},{{"#);
        assert!(received.contains(&expected), "{received}");
        assert!(received.contains(r#""name":"read_file""#), "{received}");
    }
}

#[tokio::test]
async fn m2_a_client_may_use_any_id_while_the_gateway_asks() {
    let mut ends = Ends::around(gateway(reduction()));
    ends.send(&call(&json!(1), "log")).await;
    let own = ends.seen().await;
    ends.seen().await;
    for nth in 0..3 {
        let id = json!(format!("offcut-{nth}"));
        ends.ask(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"}))
            .await;
        let pong = json!({"jsonrpc": "2.0", "id": id, "result": {}});
        ends.say(&pong).await;
        ends.say(&json!({"jsonrpc": "2.0", "method": "x"})).await;
        assert_eq!(ends.received().await, pong);
        ends.received().await;
    }
    ends.say(&list(&own["id"], &["log"])).await;
    let shown = ends.reply(&answer(&json!(1), &log())).await;
    assert!(hint_in(&shown).is_some(), "{shown}");
}

#[tokio::test]
async fn m2_ids_may_be_large_numbers() {
    let mut ends = Ends::around(gateway(reduction()));
    listed(&mut ends, &["log"]).await;
    for (asked, answered) in [
        ("1e15", "1000000000000000"),
        ("1000000000000000.0", "1000000000000000"),
        ("1000000000000000", "1e+15"),
        ("9007199254740993.0", "9007199254740992"),
        ("1e21", "1e+21"),
        ("1e23", "1E23"),
        ("-0.0", "0"),
        ("1.50", "1.5"),
    ] {
        let message = call(&json!("ID"), "log")
            .to_string()
            .replace("\"ID\"", asked);
        ends.ask_line(&message).await;
        let message = answer(&json!("ID"), &log()).to_string();
        let shown = ends.reply_line(&message.replace("\"ID\"", answered)).await;
        assert!(
            hint_in(&serde_json::from_str(&shown).unwrap()).is_some(),
            "{asked}"
        );
        assert!(shown.contains(&format!("\"id\":{answered}")), "{shown}");
        // The gateway's own answer has the id as the client wrote it.
        let read = call(&json!("ID"), "read_file").to_string();
        let page = ends.answered_here(&read.replace("\"ID\"", asked)).await;
        assert!(page.contains(&format!("\"id\":{asked},")), "{page}");
    }
}

#[tokio::test]
async fn schemas_of_all_clients_take_bounded_memory() {
    let gateway = gateway(reduction());
    let document = json!({"log": log()});
    let result = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": [], "structuredContent": document}});
    let asked = json!({"jsonrpc": "2.0", "id": "list", "method": "tools/list"});
    let mut page = list(&json!("list"), &["rows"]);
    page["result"]["tools"][0]["outputSchema"]["description"] = "x".repeat(12 << 20).into();
    let (asked, page) = (asked.to_string(), page.to_string());
    let is_short = async || {
        let conversation = gateway.conversation();
        conversation.from_client(asked.as_bytes());
        conversation.from_server(page.as_bytes()).await;
        conversation.from_client(call(&json!(1), "rows").to_string().as_bytes());
        let decided = conversation
            .from_server(result.to_string().as_bytes())
            .await;
        (conversation, matches!(decided, FromServer::Replace(_)))
    };
    let (first, second) = (is_short().await, is_short().await);
    assert!(first.1 && !second.1, "there is room for one");
    drop((first, second));
    assert!(is_short().await.1, "there is room again");
}

/// Lines of a client or a server, of which none is about a tool.
fn lines() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let method = prop_oneof![
        Just("initialize"),
        Just("x/y"),
        Just("notifications/progress"),
        Just("resources/read")
    ];
    let id = prop_oneof![
        Just("1"),
        Just("\"a\""),
        Just("null"),
        Just("1.00"),
        Just("[{}]")
    ];
    let message = (method, id.clone(), "[ a-z\\\\\"{}:,0-9é]{0,40}", any::<bool>()).prop_map(|(method, id, extra, spaced)| {
        let extra = Value::from(extra);
        let space = if spaced { "  " } else { "" };
        format!("{{\"id\":{space}{id},\"method\":\"{method}\",\"params\":{{\"_meta\":{extra},\"n\":1.00}}}}{space}").into_bytes()
    });
    let result = (id, "[ a-z]{0,20}").prop_map(|(id, text)| {
        format!(
            "{{\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}},\"id\":{id}}}"
        )
        .into_bytes()
    });
    let noise = prop::collection::vec(
        any::<u8>().prop_filter("line feeds end lines", |byte| *byte != b'\n'),
        0..80,
    );
    prop::collection::vec(prop_oneof![message, result, noise], 0..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn m1_any_bytes_pass_in_both_directions(
        up in lines(),
        down in lines(),
        is_cut in any::<bool>(),
        max in prop_oneof![Just(20_usize), Just(64 << 20)],
    ) {
        let joined = |lines: Vec<Vec<u8>>| {
            let mut all = lines.join(&b"\r\n"[..]);
            if !is_cut || max == 20 {
                all.push(b'\n');
            }
            all
        };
        // But for those over the maximum.
        let short = |all: &[u8]| {
            let lines = all.split_inclusive(|byte| *byte == b'\n');
            lines.filter(|line| line.len() <= max).collect::<Vec<_>>().concat()
        };
        let without_refusals = |all: Vec<u8>| {
            let lines = all.split_inclusive(|byte| *byte == b'\n');
            let others = lines.filter(|line| !String::from_utf8_lossy(line).contains("--max-message"));
            others.collect::<Vec<_>>().concat()
        };
        let (up, down) = (joined(up), joined(down));
        // A request of the noise is never answered.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let gateway = offcut_mcp::McpGateway::new(reduction()).max_message(max);
        let (seen, received) = runtime.block_on(common::exchange(gateway.into(), &up, &down));
        prop_assert_eq!(without_refusals(seen), short(&up));
        prop_assert_eq!(without_refusals(received), short(&down));
    }
}
