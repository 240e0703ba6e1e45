//! The status of an answer in revisions without sessions, which say it by HTTP too that a request is refused.

use http::StatusCode;
use offcut_json::{Node, View as _};

use super::events::message;
use crate::gateway::message::{Message, parse};

/// The message of an event that refuses a request, and its status. `None` for any other event.
pub(super) fn refusal(event: &[u8]) -> Option<(StatusCode, String)> {
    let json = parse(&message(event)?)?;
    if !matches!(Message::read(&json), Message::Response { result: None, .. }) {
        return None;
    }
    let code = Node::root(&json).get("error")?.get("code")?;
    let status = match code.json().to_string().as_str() {
        // There is no such method.
        "-32601" => StatusCode::NOT_FOUND,
        // It is not a message or a request, or has wrong parameters, headers, capabilities or a wrong revision.
        "-32700" | "-32600" | "-32602" | "-32020" | "-32021" | "-32022" => StatusCode::BAD_REQUEST,
        _ => return None,
    };
    Some((status, json.into_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_errors_about_the_request_have_a_status() {
        let of = |message: &str| {
            let found = refusal(format!("id: 1-0\ndata: {message}\n\n").as_bytes());
            found.map(|(status, said)| {
                assert_eq!(said, message);
                status.as_u16()
            })
        };
        assert_eq!(
            of(r#"{"id":1,"error":{"code":-32601,"message":"x"}}"#),
            Some(404)
        );
        assert_eq!(
            of(r#"{"id":1,"error":{"message":"x","code": -32602}}"#),
            Some(400)
        );
        for other in [
            r#"{"id":1,"error":{"code":-32603}}"#,
            r#"{"id":1,"error":{"code":"-32601"}}"#,
            r#"{"id":1,"result":{"error":{"code":-32601}}}"#,
            r#"{"method":"x","params":{}}"#,
            r#"{"id":1,"error":{"code":-32601"#,
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
