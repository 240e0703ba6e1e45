//! A request's body as text: it parses exactly if serde_json takes it as JSON, replacing nothing
//! gives the same bytes, and every message in it, however malformed, keeps the contract of a format over text.

use offcut::format::{BodyError, Format, JsonText, NewPiece, RequestBody, Spelled, WireFormat};
use serde::de::IgnoredAny;

pub(crate) fn body(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let is_json = serde_json::from_str::<IgnoredAny>(text).is_ok();
    assert_eq!(JsonText::parse(text).is_ok(), is_json, "what JSON is");
    let body = match RequestBody::parse(text) {
        Ok(body) => body,
        Err(error) => return assert_eq!(matches!(error, BodyError::InvalidJson(_)), !is_json),
    };
    assert_eq!(body.to_string(), text, "nothing is replaced");
    let mut changed = body.clone();
    for message in changed.messages_mut() {
        let format = Spelled(body.format().unwrap_or(WireFormat::OpenAiChat));
        format.replace(message, 0, NewPiece::Result(vec!["one".into()]));
    }
    for format in WireFormat::ALL {
        offcut_testkit::format::malformed_conformance(&Spelled(format), body.messages());
        for message in body.messages() {
            replaced_text_is_known(format, message);
        }
    }
}

/// Checks that after each replacement the text is JSON, and its values are where a new parse finds
/// them.
fn replaced_text_is_known(format: WireFormat, message: &JsonText) {
    let format = Spelled(format);
    let seen = |message: &JsonText| {
        let mut seen = String::new();
        format.visit(message, &mut |piece| seen.push_str(&format!("{piece:?}\n")));
        seen
    };
    let mut changed = message.clone();
    for nth in 0..4 {
        format.replace(
            &mut changed,
            nth,
            NewPiece::Result(vec!["one".into(), "two".into()]),
        );
        format.replace(
            &mut changed,
            nth,
            NewPiece::Arguments("{\"a\":[1.00]}".into()),
        );
        let anew = JsonText::parse(changed.as_str()).expect("JSON");
        assert_eq!(seen(&changed), seen(&anew));
    }
}
