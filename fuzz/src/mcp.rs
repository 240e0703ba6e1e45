//! MCP: messages that are not about tools pass as they are, in both directions; a shortened result is
//! shorter, valid and leads to its original.

use std::sync::{Arc, OnceLock};

use offcut::backend::Memory;
use offcut::hint::Hint;
use offcut::{ToolCall, ToolReduction};
use offcut_mcp::{FromClient, FromServer, McpGateway, OutputSchema, reduce};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

/// Limit in bytes, low so that small inputs are over it.
const LIMIT: usize = 700;

fn reduction() -> ToolReduction {
    static REDUCTION: OnceLock<ToolReduction> = OnceLock::new();
    let new = || {
        let builder = ToolReduction::builder().backend(Memory::named("fuzz").unwrap());
        let builder = builder.max_length_for_trunc(LIMIT).preview_length(100);
        builder.build().unwrap()
    };
    REDUCTION.get_or_init(new).clone()
}

/// An answer of the reader. It has the client's own id, which may hold half a surrogate pair.
#[derive(Deserialize)]
#[expect(dead_code, reason = "it is only read")]
struct Answer {
    result: Content,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "it is only read")]
struct Content {
    content: Vec<IgnoredAny>,
}

/// Lines of both sides in turn: the first byte of each says whose it is.
pub(crate) fn mcp(data: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(async {
        messages(data).await;
        result(data).await;
    });
}

async fn messages(data: &[u8]) {
    let conversation = Arc::new(McpGateway::new(reduction())).conversation();
    for line in data.split_inclusive(|byte| *byte == b'\n') {
        let Some((side, line)) = line.split_first() else {
            continue;
        };
        if *side == b'>' {
            match conversation.from_client(line) {
                FromClient::Answer(asked) => {
                    let answer = asked.await;
                    serde_json::from_str::<Answer>(&answer).expect("an answer has content");
                }
                FromClient::Pass { first: Some(first) } => {
                    // It has the client's own `_meta`, whose strings may hold half a surrogate pair.
                    let is_json = serde_json::from_str::<IgnoredAny>(&first).is_ok();
                    assert!(is_json && !first.contains('\n'), "{first}");
                }
                FromClient::Pass { first: None } => {}
                _ => unreachable!("a kind of destination that is not there"),
            }
        } else if let FromServer::Replace(new) = conversation.from_server(line).await {
            let own = std::str::from_utf8(line).expect("it was read");
            let ending =
                |text: &str| text.len() - text.trim_end_matches(['\r', '\n', ' ', '\t']).len();
            assert_eq!(ending(&new), ending(own), "the whitespace around it stays");
            assert_eq!(
                new.matches('\n').count(),
                own.matches('\n').count(),
                "it is one line"
            );
            let (new, own): (Result<Value, _>, Result<Value, _>) =
                (serde_json::from_str(&new), serde_json::from_str(own));
            if let (Ok(new), Ok(own)) = (new, own) {
                assert_eq!((&new["id"], &new["jsonrpc"]), (&own["id"], &own["jsonrpc"]));
            }
        }
    }
}

/// Reads the input as structured content and its schema, in two lines.
async fn result(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (document, schema) = text.split_once('\n').unwrap_or((text, "{}"));
    let Ok(schema) = serde_json::from_str::<Value>(schema) else {
        return;
    };
    if serde_json::from_str::<Value>(document).is_err() {
        // It could close the result.
        return;
    }
    let result = format!(r#"{{"content":[],"structuredContent":{document}}}"#);
    let compiled = OutputSchema::new(&schema);
    let (reduction, call) = (reduction(), ToolCall::new("", "fuzz", "{}"));
    let Ok(Some(new)) = reduce(&reduction, &call, result.clone(), &compiled).await else {
        return;
    };
    let new: Value = serde_json::from_str(&new).expect("it is JSON");
    let short = &new["structuredContent"];
    assert!(short.to_string().len() < result.len(), "it is shorter");
    assert!(
        jsonschema::is_valid(&schema, short),
        "{short} violates {schema}"
    );
    let hint = hint_in(short).expect("it carries a hint");
    let stored = reduction
        .read_original(&hint.location.expect("it is stored"))
        .await;
    let stored = stored.expect("its own").expect("it is there");
    if stored != document.trim().as_bytes() {
        // One string makes up nearly all of it, and only that left.
        let text = String::from_utf8(stored.to_vec()).expect("it is a string of the document");
        let mut whole = short.clone();
        put_back(&mut whole, &text);
        let document: Value = serde_json::from_str(document).expect("it is JSON");
        assert_eq!(whole, document);
    }
}

/// Puts a text in the place of its hint.
fn put_back(value: &mut Value, text: &str) {
    match value {
        Value::String(_) if hint_in(value).is_some() => *value = text.into(),
        Value::Array(items) => items.iter_mut().for_each(|item| put_back(item, text)),
        Value::Object(fields) => fields.values_mut().for_each(|field| put_back(field, text)),
        _ => {}
    }
}

/// The hint in any string of `value`.
fn hint_in(value: &Value) -> Option<Hint> {
    match value {
        Value::String(text) => Hint::parse(text).filter(|hint| {
            hint.location
                .as_ref()
                .is_some_and(|location| location.as_str().starts_with("memory://fuzz/"))
        }),
        Value::Array(items) => items.iter().find_map(hint_in),
        Value::Object(fields) => fields.values().find_map(hint_in),
        _ => None,
    }
}
