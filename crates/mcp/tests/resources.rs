//! Stored results as resources: links in results, and the gateway's answers about them.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::{Ends, LIMIT, gateway, hint_in, log, reduction};
use offcut::hint::Hint;
use offcut_mcp::McpGateway;
use serde_json::{Value, json};

fn linking() -> Ends {
    Ends::around(McpGateway::new(reduction()).resource_links().into())
}

fn request(id: u32, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn answer(id: u32, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// Begins a session. Returns what the client is told.
async fn open(ends: &mut Ends, revision: &str, capabilities: &Value) -> Value {
    ends.ask(&request(0, "initialize", &json!({}))).await;
    let agreed = json!({"protocolVersion": revision, "capabilities": capabilities});
    let told = ends.reply(&answer(0, &agreed)).await;
    ends.ask(&request(1, "tools/list", &json!({}))).await;
    let tools = json!({"tools": [{"name": "log", "inputSchema": {"type": "object"}}]});
    ends.reply(&answer(1, &tools)).await;
    told["result"]["capabilities"].clone()
}

/// Calls a tool. Returns the blocks of its result.
async fn blocks(ends: &mut Ends, params: &Value, result: &Value) -> Vec<Value> {
    ends.ask(&request(2, "tools/call", params)).await;
    let shown = ends.reply(&answer(2, result)).await;
    shown["result"]["content"].as_array().unwrap().clone()
}

fn long() -> Value {
    json!({"content": [{"type": "text", "text": log()}], "isError": false})
}

/// Asks the gateway, without the server.
async fn asked(ends: &mut Ends, method: &str, params: &Value) -> Value {
    ends.send(&request(3, method, params)).await;
    let answer = ends.received().await;
    assert_eq!(answer["id"], 3);
    answer
}

/// The page that the gateway answers.
async fn page(ends: &mut Ends, uri: &str) -> Hint {
    let answer = asked(ends, "resources/read", &json!({"uri": uri})).await;
    let contents = answer["result"]["contents"].as_array().unwrap();
    assert_eq!(
        (contents.len(), &contents[0]["uri"]),
        (1, &json!(uri)),
        "{answer}"
    );
    assert_eq!(contents[0]["mimeType"], "text/plain");
    let text = contents[0]["text"].as_str().unwrap();
    assert!(text.len() < LIMIT, "a page is within the limit");
    Hint::parse(text).unwrap()
}

#[tokio::test]
async fn a_shortened_result_has_a_link_whose_pages_are_the_whole_result() {
    let mut ends = linking();
    open(&mut ends, "2025-06-18", &json!({"resources": {}})).await;
    let shown = blocks(&mut ends, &json!({"name": "log"}), &long()).await;
    assert!(hint_in(&shown[0]).is_some());
    let [_, link] = &shown[..] else {
        panic!("{shown:?}")
    };
    assert_eq!(
        (&link["type"], &link["name"]),
        (&json!("resource_link"), &json!("stored result of log"))
    );
    let uri = link["uri"].as_str().unwrap();
    let (mut all, mut next) = (String::new(), Some(uri.to_owned()));
    while let Some(uri) = next {
        let Hint { preview, prose, .. } = page(&mut ends, &uri).await;
        all += &preview;
        let offset = prose
            .rsplit_once("offset ")
            .map(|(_, offset)| offset.trim_end_matches('.'));
        next = offset.map(|offset| format!("{}?offset={offset}", uri.split('?').next().unwrap()));
    }
    assert_eq!(all, log());
    let found = page(&mut ends, &format!("{uri}?pattern=%5E00499%20na%C3%AFve")).await;
    assert!(found.preview.contains("00499 naïve"), "{found:?}");
}

#[tokio::test]
async fn short_results_and_clients_that_do_not_know_links_get_none() {
    let mut ends = linking();
    open(&mut ends, "2025-11-25", &json!({})).await;
    let short = json!({"content": [{"type": "text", "text": "short"}]});
    assert_eq!(
        blocks(&mut ends, &json!({"name": "log"}), &short)
            .await
            .len(),
        1
    );
    let whole = blocks(&mut ends, &json!({"name": "exact"}), &long()).await;
    assert_eq!(whole.len(), 1);
    for revision in ["2025-03-26", ""] {
        let mut ends = linking();
        open(&mut ends, revision, &json!({})).await;
        let shown = blocks(&mut ends, &json!({"name": "log"}), &long()).await;
        assert!(
            shown.len() == 1 && hint_in(&shown[0]).is_some(),
            "{shown:?}"
        );
    }
    // Nor does anybody without the setting.
    let mut ends = Ends::around(gateway(reduction()));
    assert_eq!(open(&mut ends, "2025-11-25", &json!({})).await, json!({}));
    let shown = blocks(&mut ends, &json!({"name": "log"}), &long()).await;
    assert_eq!(shown.len(), 1);
    let read = request(3, "resources/read", &json!({"uri": "offcut://result/x"}));
    ends.ask(&read).await;
}

#[tokio::test]
async fn each_stored_text_has_a_link_and_structured_content_keeps_its_shape() {
    let mut ends = linking();
    open(&mut ends, "2025-11-25", &json!({})).await;
    let document = json!({"rows": [{"log": log()}]});
    let result =
        json!({"content": [{"type": "text", "text": "short"}], "structuredContent": document});
    ends.ask(&request(2, "tools/call", &json!({"name": "log"})))
        .await;
    let shown = ends.reply(&answer(2, &result)).await;
    let result = &shown["result"];
    assert!(hint_in(&result["structuredContent"]).is_some(), "{shown}");
    let uri = result["content"][1]["uri"].as_str().unwrap();
    let found = page(&mut ends, &format!("{uri}?pattern=00499")).await;
    assert!(found.preview.contains("00499"));
}

#[tokio::test]
async fn a_server_without_resources_has_some_and_its_lists_are_empty() {
    let mut ends = linking();
    let told = open(&mut ends, "2025-11-25", &json!({"tools": {}})).await;
    assert_eq!(told, json!({"tools": {}, "resources": {}}));
    let list = asked(&mut ends, "resources/list", &json!({})).await;
    assert_eq!(list["result"], json!({"resources": []}));
    let list = asked(&mut ends, "resources/templates/list", &json!({})).await;
    assert_eq!(list["result"], json!({"resourceTemplates": []}));
    let other = request(4, "resources/subscribe", &json!({"uri": "a"}));
    ends.ask(&other).await;

    // One that has its own answers for itself.
    let mut ends = linking();
    let own = json!({"resources": {"subscribe": true}});
    assert_eq!(open(&mut ends, "2025-11-25", &own).await, own);
    ends.ask(&request(3, "resources/list", &json!({}))).await;
    let listed = answer(3, &json!({"resources": [{"uri": "a", "name": "a"}]}));
    assert_eq!(ends.reply(&listed).await, listed);
}

#[tokio::test]
async fn m6_only_what_this_session_has_stored_can_be_read() {
    let mut ends = linking();
    open(&mut ends, "2025-11-25", &json!({"resources": {}})).await;
    let shown = blocks(&mut ends, &json!({"name": "log"}), &long()).await;
    let uri = shown[1]["uri"].as_str().unwrap();
    for hostile in [
        "offcut://result/",
        "offcut://result//etc/passwd",
        "offcut://result/..%2F..%2Fetc%2Fpasswd",
        "offcut://result/memory%3A//t/trunc/../../x",
        "offcut://result/%FF%00",
        &format!("{uri}/../8"),
        &format!("{uri}%00"),
        &format!("{uri}?ofset=3"),
        &format!("{uri}?offset=soon"),
        &format!("{uri}?pattern=("),
        &format!("offcut://result/{}", "a/".repeat(50_000)),
    ] {
        let refused = asked(&mut ends, "resources/read", &json!({"uri": hostile})).await;
        assert_eq!(refused["error"]["code"], -32002, "{hostile}");
        let said = refused["error"]["message"].as_str().unwrap();
        assert!(!said.is_empty() && said.len() < LIMIT, "{said}");
    }
    // All others are for the server, which sees them as they are.
    for other in [
        "file:///etc/passwd",
        "offcut://other/x",
        " offcut://result/x",
        "",
        "%",
    ] {
        ends.ask(&request(5, "resources/read", &json!({"uri": other})))
            .await;
        let said = answer(5, &json!({"contents": [{"uri": other, "text": log()}]}));
        assert_eq!(ends.reply(&said).await, said);
    }
    for garbled in [json!({}), json!({"uri": 7}), json!([]), json!(null)] {
        ends.ask(&request(6, "resources/read", &garbled)).await;
    }
    // Another session of the same store.
    let linking = McpGateway::new(reduction()).resource_links();
    let other = std::sync::Arc::new(linking).conversation_in("other");
    let read = request(7, "resources/read", &json!({"uri": uri})).to_string();
    let offcut_mcp::FromClient::Answer(read) = other.from_client(read.as_bytes()) else {
        panic!("it is the gateway's");
    };
    let refused: Value = serde_json::from_str(&other.answer(read).await.unwrap()).unwrap();
    assert_eq!(refused["error"]["code"], -32002, "{refused}");
}

#[tokio::test]
async fn requests_without_a_session_get_what_their_revision_wants() {
    let mut ends = linking();
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    ends.ask(&request(0, "server/discover", &json!({"_meta": meta})))
        .await;
    let found = json!({"supportedVersions": ["2026-07-28"], "capabilities": {}});
    let told = ends.reply(&answer(0, &found)).await;
    assert_eq!(told["result"]["capabilities"], json!({"resources": {}}));
    ends.ask(&request(1, "tools/list", &json!({"_meta": meta})))
        .await;
    ends.reply(&answer(1, &json!({"tools": []}))).await;
    let shown = blocks(&mut ends, &json!({"name": "log", "_meta": meta}), &long()).await;
    let params = json!({"uri": shown[1]["uri"], "_meta": meta});
    let read = asked(&mut ends, "resources/read", &params).await;
    let result = &read["result"];
    assert_eq!(
        (
            &result["resultType"],
            &result["ttlMs"],
            &result["cacheScope"]
        ),
        (&json!("complete"), &json!(0), &json!("private"))
    );
    let params = json!({"uri": "offcut://result/x", "_meta": meta});
    let refused = asked(&mut ends, "resources/read", &params).await;
    assert_eq!(refused["error"]["code"], -32602);
    let list = asked(&mut ends, "resources/list", &json!({"_meta": meta})).await;
    assert_eq!(list["result"]["cacheScope"], "private");
}
