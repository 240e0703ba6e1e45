//! The parts of a JSON-RPC message that decide about its way.

use std::fmt::Display;
use std::hash::{BuildHasher, RandomState};

use offcut::json::{JsonText, Kind, Node, View};
use serde_json::json;

use super::lines::END;
use crate::result::MAX_VALUES;

/// The key by which requests of revisions without sessions name their revision.
pub(crate) const REVISION: &str = "io.modelcontextprotocol/protocolVersion";
/// The beginning of all such keys.
const PROTOCOL: &str = "io.modelcontextprotocol/";

/// One of the two who send messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Party {
    Client,
    Server,
}

/// A message, as far as it is read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Message<'m> {
    Request {
        id: Node<'m>,
        method: &'m str,
        params: Option<Node<'m>>,
    },
    Notification {
        method: &'m str,
        params: Option<Node<'m>>,
    },
    Response {
        id: Node<'m>,
        /// `None` for an error.
        result: Option<Node<'m>>,
    },
    /// A batch, or no message at all.
    Other,
}

impl<'m> Message<'m> {
    /// Reads a message. Of a key that is there twice, the last counts, as for nearly all readers of JSON.
    pub(crate) fn read(json: &'m JsonText) -> Self {
        let [id, method, params, result, error] =
            Node::root(json).pick(["id", "method", "params", "result", "error"]);
        // Some servers write all of them.
        let method = method.filter(|method| method.kind() != Kind::Null);
        match (id, method, result.or(error)) {
            (id, Some(method), None) => match (id, method.as_str()) {
                (_, None) => Self::Other,
                (Some(id), Some(method)) => Self::Request { id, method, params },
                (None, Some(method)) => Self::Notification { method, params },
            },
            (Some(id), None, Some(_)) => Self::Response { id, result },
            _ => Self::Other,
        }
    }
}

/// Returns true for a message of JSON-RPC, and not for anything else that may be JSON, such as a line of a log.
#[cfg(feature = "http")]
pub(crate) fn is_message(json: &JsonText) -> bool {
    let [version, id, method, result, error] =
        Node::root(json).pick(["jsonrpc", "id", "method", "result", "error"]);
    let has_method = method.is_some_and(|method| method.as_str().is_some());
    let is_answer = id.is_some() && (result.is_some() || error.is_some());
    version.and_then(View::as_str) == Some("2.0") && (has_method || is_answer)
}

/// An id as a key, the same for each of its spellings.
pub(crate) fn key(id: Node<'_>) -> String {
    let spelled = id.json().to_string();
    match id.kind() {
        Kind::String => id.as_str().map_or(spelled, |text| format!("\"{text}")),
        // 1.0 and 1e0 come back as 1 from some servers, 1e15 as 1000000000000000, and -0.0 as 0. Large integers
        // stay exact.
        Kind::Number => match spelled.parse::<f64>() {
            Ok(number)
                if number.abs() < 9e15
                    || number.is_finite() && spelled.contains(['.', 'e', 'E']) =>
            {
                (number + 0.0).to_string()
            }
            _ => spelled,
        },
        _ => spelled,
    }
}

/// Maximum number of bytes of an id, and of a tool's name, that are kept while their request waits.
pub(crate) const MAX_ID: usize = 4096;

/// A new id for a request of the gateway's own: one that no client uses.
pub(crate) fn own_id() -> String {
    format!("offcut-{:016x}", RandomState::new().hash_one(()))
}

/// Some servers write it before their text.
pub(crate) const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// A message as JSON. `None` if it is not, or has more values than are read.
pub(crate) fn parse(message: &[u8]) -> Option<JsonText> {
    let message = message.strip_prefix(BYTE_ORDER_MARK).unwrap_or(message);
    JsonText::parse_within(str::from_utf8(message).ok()?, MAX_VALUES).ok()?
}

/// A message, or a part of one, on one line. In JSON, a line break is never a part of a value.
#[cfg(feature = "http")]
pub(crate) fn on_one_line(message: &[u8]) -> impl Iterator<Item = u8> {
    message.iter().map(|byte| match byte {
        b'\n' | b'\r' => b' ',
        byte => *byte,
    })
}

/// A message as JSON; its outline if it may have more values than are read. `None` if it is neither.
#[cfg(feature = "http")]
pub(crate) fn parse_or_outline(message: &[u8]) -> Option<JsonText> {
    parse(message).or_else(|| outline(message).filter(|_| may_be_dense(message)))
}

/// A message that is not read, with null in place of its long field. `None` if it is not one.
pub(crate) fn outline(message: &[u8]) -> Option<JsonText> {
    let message = message.trim_ascii().strip_prefix(b"{")?;
    let message = message.strip_suffix(b"}").unwrap_or(message);
    let length = message.len();
    let (beginning, end) = (
        &message[..length.min(END)],
        &message[length.saturating_sub(END)..],
    );
    let names = ["\"params\"", "\"result\"", "\"error\""];
    let found = |name| Some((memchr::memmem::find(beginning, str::as_bytes(name))?, name));
    let (long, name) = names.into_iter().filter_map(found).min()?;
    let after = end.iter().rposition(|byte| matches!(byte, b'}' | b']'));
    let after = after.map_or(&b""[..], |at| &end[at + 1..]);
    let before = str::from_utf8(&beginning[..long]).ok()?;
    let fields = [before, &format!("{name}:null"), str::from_utf8(after).ok()?];
    let fields =
        fields.map(|part| part.trim_matches(|one: char| one == ',' || one.is_ascii_whitespace()));
    let fields: Vec<&str> = fields.into_iter().filter(|part| !part.is_empty()).collect();
    JsonText::parse(format!("{{{}}}", fields.join(","))).ok()
}

/// JSON-RPC's code for errors inside a program.
pub(crate) const INTERNAL_ERROR: i32 = -32603;

/// An error of the gateway's own, as the answer to the request with this id in JSON.
pub(crate) fn error_text(code: i32, message: &str, id: Option<&str>) -> String {
    let message = format!("offcut: {message}");
    error_answer(id, json!({"code": code, "message": message}))
}

/// The error that answers the request with this id in JSON.
pub(crate) fn error_answer(id: Option<&str>, error: impl Display) -> String {
    let id = id.unwrap_or("null");
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
}

/// Returns false for a message that is too short to be dense: to have so many short values that reading it would
/// take many times its own length.
pub(crate) fn may_be_dense(message: &[u8]) -> bool {
    message.len() > MAX_VALUES
}

/// The fields of a request's `_meta` with which each request says what it is about.
pub(crate) fn kept(meta: Option<Node<'_>>) -> Option<String> {
    let fields = meta?
        .fields()
        .filter(|(name, _)| name.starts_with(PROTOCOL));
    let fields = fields.map(|(name, value)| format!("{}:{}", json!(name), value.json()));
    let fields: Vec<String> = fields.collect();
    (!fields.is_empty()).then(|| format!("{{{}}}", fields.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> &'static str {
        match Message::read(&parse(text.as_bytes()).unwrap()) {
            Message::Request { .. } => "request",
            Message::Notification { .. } => "notification",
            Message::Response { result: None, .. } => "error",
            Message::Response { .. } => "response",
            Message::Other => "other",
        }
    }

    #[test]
    fn messages_are_told_apart() {
        for (text, expected) in [
            (r#"{"id":1,"method":"a"}"#, "request"),
            (r#"{"id":null,"method":"a"}"#, "request"),
            (r#"{"method":"a","params":{}}"#, "notification"),
            (r#"{"id":[1],"result":null}"#, "response"),
            (r#"{"id":"x","error":{}}"#, "error"),
            (r#"{"id":1,"id":2,"method":1,"method":"a"}"#, "request"),
            (r#"{"id":1,"result":{},"result":{}}"#, "response"),
            (r#"{"id":1,"method":"a","result":1}"#, "other"),
            (r#"{"method":1}"#, "other"),
            (
                r#"{"id":1,"method":null,"params":null,"result":{},"error":null}"#,
                "response",
            ),
            ("\u{feff}{\"method\":\"a\"}", "notification"),
            (r#"[{"id":1,"method":"a"}]"#, "other"),
            ("1", "other"),
        ] {
            assert_eq!(kind(text), expected, "{text}");
        }
    }

    #[cfg(feature = "http")]
    #[test]
    fn a_log_in_json_is_not_a_message() {
        let is = |text: &str| is_message(&JsonText::parse(text).unwrap());
        for message in [
            r#"{"jsonrpc":"2.0","method":"a"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{}}"#,
            r#"{"id":null,"error":{"code":1,"message":"x"},"jsonrpc":"2.0"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"result":{}}"#,
        ] {
            assert!(is(message), "{message}");
        }
        for other in [
            "{}",
            "null",
            "[]",
            r#"[{"jsonrpc":"2.0","method":"a"}]"#,
            r#"{"jsonrpc":"2.0"}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"1.0","method":"a"}"#,
            r#"{"method":"GET","path":"/","id":7}"#,
            r#"{"level":"error","id":7,"error":"no"}"#,
            r#"{"jsonrpc":"2.0","method":1}"#,
        ] {
            assert!(!is(other), "{other}");
        }
    }

    #[test]
    fn the_ends_of_a_long_message_tell_whose_it_is() {
        let long =
            "{\"name\": \"x\", \"id\": 3, \"all\": [".to_owned() + &"7,".repeat(1_000) + "7]}";
        for (before, after, id) in [
            (
                r#"{"jsonrpc": "2.0", "id": 12, "result": "#,
                "}",
                Some("12"),
            ),
            (
                "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 4,\n  \"result\": ",
                "\n}",
                Some("4"),
            ),
            (
                r#"{"method":"x","params":"#,
                r#","jsonrpc":"2.0","id":"a"}"#,
                Some("\"a\""),
            ),
            (r#" {"params":"#, r#", "id" : 1.0 } "#, Some("1.0")),
            (r#"{"method":"x","params":"#, "}\r\n", None),
            ("[LOG] ", "", None),
            ("", "", None),
        ] {
            let outline = outline(format!("{before}{long}{after}").as_bytes());
            let found = outline.as_ref().and_then(|json| Node::root(json).get("id"));
            assert_eq!(
                found.map(|id| id.json().to_string()).as_deref(),
                id,
                "{before}"
            );
        }
    }

    #[test]
    fn a_long_message_of_many_short_values_is_dense() {
        let list = |item: &str, count: usize| format!("[{}1]", item.repeat(count)).into_bytes();
        for dense in [
            list("1,", MAX_VALUES),
            list("{},", MAX_VALUES),
            "[".repeat(2 * MAX_VALUES).into(),
        ] {
            assert!(may_be_dense(&dense) && parse(&dense).is_none());
        }
        for body in [
            list("1,", MAX_VALUES / 2),
            list("\"1,1,1,1,1\",", MAX_VALUES / 4),
        ] {
            assert!(may_be_dense(&body) && parse(&body).is_some());
        }
    }

    #[test]
    fn m2_ids_are_compared_by_meaning_and_types_differ() {
        let key = |text: &str| {
            let json = JsonText::parse(text).unwrap();
            key(Node::root(&json))
        };
        assert_eq!(key("1"), key("1.0"));
        assert_eq!(key("1e15"), key("1000000000000000.0"));
        assert_eq!(key(r#""a""#), key(r#""\u0061""#));
        assert_ne!(key("1"), key(r#""1""#));
        assert_ne!(key("null"), key(r#""null""#));
        assert_ne!(
            key("12345678901234567890123"),
            key("12345678901234567890124")
        );
        assert_ne!(key("1e15"), key("1e16"));
        assert_ne!(key("1e400"), key("1e401"));
    }
}
