//! The formats, each checked against the contract.

mod own;
mod samples;
mod text;

use offcut::format::{Message, Plain, WireFormat};
use offcut::{Part, ToolCall};
use serde_json::json;

use self::samples::samples;

#[test]
fn wire_formats_keep_the_contract() {
    for format in WireFormat::ALL {
        offcut_testkit::format::json_conformance(&format, &samples(format));
    }
}

#[test]
fn our_own_messages_keep_the_contract() {
    let call = ToolCall::new("a", "grep", "{}");
    let image = Part::Media {
        mime: "image/png".into(),
        data: vec![0, 255].into(),
    };
    let messages = [
        Message::system("be brief"),
        Message::user("go"),
        Message::Assistant {
            content: vec!["x".into()],
            calls: vec![call.clone(), call.clone()],
        },
        Message::tool(
            &call,
            vec!["3 hits".into(), image, Part::Json(json!([1]))],
            true,
        ),
    ];
    offcut_testkit::format::json_conformance(&Plain, &messages);
}

#[test]
fn samples_are_detected() {
    for format in WireFormat::ALL {
        assert_eq!(WireFormat::detect(&samples(format).into()), Some(format));
    }
}
