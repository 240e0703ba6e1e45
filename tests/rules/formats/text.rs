//! The formats over text: the same contract and the same results as over values.

use offcut::Part;
use offcut::format::{Format, JsonText, NewPiece, PartRef, Piece, Spelled, WireFormat};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use super::samples;

/// A message as text that serializes like a value, so that clauses about JSON can be tested.
#[derive(Clone, Debug, PartialEq)]
struct Text(JsonText);

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        value(&self.0).serialize(to)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Value::deserialize(from).map(|value| Self(text(&value)))
    }
}

fn text(value: &Value) -> JsonText {
    JsonText::parse(value.to_string()).unwrap()
}

fn value(text: &JsonText) -> Value {
    serde_json::from_str(text.as_str()).unwrap()
}

struct OverText(WireFormat);

impl Format for OverText {
    type Message = Text;

    fn visit<'m>(&self, message: &'m Text, see: &mut dyn FnMut(Piece<'m>)) {
        Spelled(self.0).visit(&message.0, see);
    }

    fn replace(&self, message: &mut Text, index: usize, new: NewPiece) {
        Spelled(self.0).replace(&mut message.0, index, new);
    }

    fn has_text(&self, message: &Text, text: usize) -> bool {
        Spelled(self.0).has_text(&message.0, text)
    }
}

#[test]
fn l5_wire_formats_keep_the_contract_over_text() {
    for format in WireFormat::ALL {
        let messages: Vec<Text> = samples(format)
            .iter()
            .map(|message| Text(text(message)))
            .collect();
        offcut_testkit::format::json_conformance(&OverText(format), &messages);
    }
}

/// The pieces that a format shows, with JSON as its compact text.
fn pieces<F: Format>(format: &F, message: &F::Message) -> Vec<String> {
    let mut seen = Vec::new();
    format.visit(message, &mut |piece| {
        seen.push(match piece {
            Piece::Content(PartRef::Json(json)) => format!("json {json}"),
            Piece::Content(PartRef::Opaque(json)) => format!("opaque {json}"),
            Piece::Call(call) => {
                format!(
                    "call {} {} {} {}",
                    call.id, call.name, call.arguments, call.is_signed
                )
            }
            piece => format!("{piece:?}"),
        });
    });
    seen
}

/// Returns the message and its variants, each with one value replaced by a misplaced one.
fn malformed(message: &Value) -> Vec<Value> {
    fn paths(json: &Value, path: &str, all: &mut Vec<String>) {
        all.push(path.to_owned());
        match json {
            Value::Object(fields) => {
                fields
                    .iter()
                    .for_each(|(name, value)| paths(value, &format!("{path}/{name}"), all));
            }
            Value::Array(items) => {
                items
                    .iter()
                    .enumerate()
                    .for_each(|(at, value)| paths(value, &format!("{path}/{at}"), all));
            }
            _ => {}
        }
    }
    let (mut all, mut messages) = (Vec::new(), vec![message.clone()]);
    paths(message, "", &mut all);
    for path in all {
        for odd in [
            json!(null),
            json!(7),
            json!("x"),
            json!([]),
            json!([{"type": "text", "text": "t"}]),
            json!({}),
        ] {
            let mut changed = message.clone();
            *changed.pointer_mut(&path).unwrap() = odd;
            messages.push(changed);
        }
    }
    messages
}

#[test]
fn l5_text_and_values_show_the_same_and_become_the_same() {
    for format in WireFormat::ALL {
        for message in samples(format).iter().flat_map(malformed) {
            let spelled = text(&message);
            assert_eq!(
                pieces(&Spelled(format), &spelled),
                pieces(&format, &message),
                "{message}"
            );
            for nth in 0..3 {
                for parts in [
                    vec!["hint".into()],
                    vec!["one".into(), "two".into()],
                    vec![],
                    vec![Part::Media {
                        mime: "image/png".into(),
                        data: vec![1, 2].into(),
                    }],
                    vec![
                        Part::Opaque(json!({"type": "new", "x": [1.5]})),
                        "and".into(),
                    ],
                ] {
                    let (mut one, mut other) = (message.clone(), spelled.clone());
                    format.replace(&mut one, nth, NewPiece::Result(parts.clone()));
                    Spelled(format).replace(&mut other, nth, NewPiece::Result(parts));
                    assert_eq!(value(&other), one, "{message}");
                }
                for arguments in ["{\"_cleared\":\"x\"}", "not JSON"] {
                    let (mut one, mut other) = (message.clone(), spelled.clone());
                    format.replace(&mut one, nth, NewPiece::Arguments(arguments.into()));
                    Spelled(format).replace(&mut other, nth, NewPiece::Arguments(arguments.into()));
                    assert_eq!(value(&other), one, "{message}");
                }
            }
        }
    }
}
