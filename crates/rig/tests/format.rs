//! rig's messages as a format.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use offcut::Part;
use offcut::format::{Data, Format, NewPiece, PartRef, Piece};
use offcut_rig::RigMessages;
use rig::message::{
    AssistantContent, AssistantMessage, CallId, Document, DocumentSourceKind, Image,
    ImageMediaType, Message, Reasoning, ToolCall, ToolFunction, ToolName, ToolResult,
    ToolResultContent, UserContent,
};
use serde_json::{Value, json};

fn seen(message: &Message) -> Vec<String> {
    let mut seen = Vec::new();
    RigMessages.visit(message, &mut |piece| {
        seen.push(match piece {
            Piece::Role(role) => format!("{role:?}"),
            Piece::Call(call) => format!(
                "call {:?} {} {} {}",
                call.id, call.name, call.arguments, call.is_signed
            ),
            Piece::Result(head) => {
                format!("result {:?} {:?} {}", head.id, head.name, head.is_error)
            }
            Piece::Content(PartRef::Text(text)) => format!("text {text}"),
            Piece::Content(PartRef::Json(value)) => format!("json {value}"),
            Piece::Content(PartRef::Media {
                mime,
                data: Data::Base64(data),
            }) => format!("media {mime} {data}"),
            Piece::Content(PartRef::Link { mime, url }) => format!("link {mime:?} {url}"),
            other => format!("{other:?}"),
        });
    });
    seen
}

fn result(id: &str, content: Vec<ToolResultContent>, is_error: bool) -> UserContent {
    let name = ToolName::new("grep").unwrap();
    UserContent::ToolResult(ToolResult {
        call: CallId::from_wire(id),
        name,
        content,
        is_error,
    })
}

fn image(data: DocumentSourceKind) -> ToolResultContent {
    ToolResultContent::Image(Image {
        data,
        media_type: Some(ImageMediaType::PNG),
        ..Image::default()
    })
}

fn text(text: &str) -> ToolResultContent {
    ToolResultContent::text(text)
}

fn results() -> Message {
    Message::User {
        content: vec![
            result(
                "a",
                vec![text("one"), ToolResultContent::json(json!({"n": 1}))],
                false,
            ),
            result(
                "raw",
                vec![image(DocumentSourceKind::Raw(vec![1])), text("kept")],
                false,
            ),
            UserContent::text("and?"),
            result(
                "",
                vec![
                    image(DocumentSourceKind::base64("AA==")),
                    image(DocumentSourceKind::url("http://x/y")),
                ],
                true,
            ),
        ],
    }
}

fn calls() -> Message {
    let function = |arguments: &str| ToolFunction::parse(ToolName::new("grep").unwrap(), arguments);
    Message::Assistant(AssistantMessage::new(vec![
        AssistantContent::Reasoning(Reasoning::new("hm")),
        AssistantContent::text("Looking."),
        call(
            "a",
            function(r#"{"q":"größe","n":[1]}"#),
            Some(json!({"id": "a", "type": "function"})),
        ),
        call("b", function(r#"{"q": "brok"#), None),
        call(
            "c",
            function("{}"),
            Some(json!({"functionCall": {}, "thoughtSignature": "x"})),
        ),
        call("d", function("{}"), Some(json!({"extra_content": {}}))),
    ]))
}

#[test]
fn the_format_keeps_the_contract() {
    let said = [
        Message::system("be kind"),
        Message::user("go"),
        Message::assistant("yes"),
        Message::User { content: vec![] },
    ];
    let messages = [&said[..], &[calls(), results()]].concat();
    offcut_testkit::format::json_conformance(&RigMessages, &messages);
}

#[test]
fn several_results_of_one_message_are_slots() {
    let expected = [
        "Tool",
        r#"result "a" Some("grep") false"#,
        "text one",
        r#"json {"n":1}"#,
        // A result that can't be stored is not a slot, and its text belongs to none.
        "Tool",
        "text kept",
        "User",
        "text and?",
        "Tool",
        r#"result "" Some("grep") true"#,
        "media image/png AA==",
        r#"link Some("image/png") http://x/y"#,
    ];
    assert_eq!(seen(&results()), expected);
}

#[test]
fn l5_a_slot_is_replaced_and_nothing_else() {
    let original = results();
    let mut message = original.clone();
    RigMessages.replace(&mut message, 1, NewPiece::Result(vec!["hint".into()]));
    let (Message::User { content: was }, Message::User { content }) = (&original, &message) else {
        panic!()
    };
    assert_eq!(content[..3], was[..3]);
    let (UserContent::ToolResult(was), UserContent::ToolResult(is)) = (&was[3], &content[3]) else {
        panic!()
    };
    assert_eq!(
        is,
        &ToolResult {
            content: vec![text("hint")],
            ..was.clone()
        }
    );

    for slot in [2, 9] {
        let mut message = original.clone();
        RigMessages.replace(&mut message, slot, NewPiece::Result(vec!["hint".into()]));
        assert_eq!(message, original);
    }
}

#[test]
fn replaced_parts_are_visited_as_written() {
    let mut message = results();
    let parts = vec![
        Part::Text("t".into()),
        Part::Json(json!([1])),
        Part::Media {
            mime: "image/png".into(),
            data: vec![0].into(),
        },
        Part::Link {
            mime: None,
            url: "http://x".into(),
        },
    ];
    RigMessages.replace(&mut message, 0, NewPiece::Result(parts));
    assert_eq!(
        seen(&message)[2..6],
        [
            "text t",
            "json [1]",
            "media image/png AA==",
            "link None http://x"
        ]
    );
}

fn call(id: &str, function: ToolFunction, item: Option<Value>) -> AssistantContent {
    let call = AssistantContent::ToolCall(ToolCall::new(CallId::from_wire(id), function));
    match item {
        Some(item) => call.with_native(item),
        None => call,
    }
}

#[test]
fn calls_are_seen_with_their_arguments_and_signatures() {
    let original = calls();
    let expected = [
        "Assistant",
        "text hm",
        "text Looking.",
        r#"call "a" grep {"q":"größe","n":[1]} false"#,
        r#"call "b" grep {"q": "brok false"#,
        r#"call "c" grep {} true"#,
        r#"call "d" grep {} true"#,
    ];
    assert_eq!(seen(&original), expected);

    let mut message = original.clone();
    RigMessages.replace(
        &mut message,
        0,
        NewPiece::Arguments(r#"{"_cleared":"hint"}"#.into()),
    );
    RigMessages.replace(&mut message, 1, NewPiece::Arguments("{}".into()));
    RigMessages.replace(&mut message, 4, NewPiece::Arguments("{}".into()));
    let now = seen(&message);
    assert_eq!(
        now[3..5],
        [
            r#"call "a" grep {"_cleared":"hint"} false"#,
            r#"call "b" grep {} false"#
        ]
    );
    assert_eq!(
        (&now[..3], &now[5..]),
        (&seen(&original)[..3], &seen(&original)[5..])
    );
    // rig sends an item unchanged only if it still matches the call.
    let Message::Assistant(message) = &message else {
        panic!()
    };
    assert!(
        message.content[2].native_item().is_none() && message.content[4].native_item().is_some()
    );
}

#[test]
fn other_messages_are_counted() {
    assert_eq!(
        seen(&Message::system("be kind")),
        ["System", "text be kind"]
    );
    assert_eq!(seen(&Message::User { content: vec![] }), ["User"]);
    let document = |data| {
        UserContent::Document(Document {
            data,
            ..Document::default()
        })
    };
    let content = vec![
        document(DocumentSourceKind::string("# Title")),
        document(DocumentSourceKind::base64("AA==")),
        document(DocumentSourceKind::file_id("f")),
    ];
    let expected = [
        "User",
        "text # Title",
        "media application/octet-stream AA==",
    ];
    assert_eq!(seen(&Message::User { content }), expected);
}
