//! Messages as text: everything that is not replaced stays the same, byte for byte.

mod generate;
mod left_alone;

use generate::{joined, json, number, space, string};
use offcut::format::{
    BodyError, Format, JsonText, NewPiece, PartRef, Piece, RequestBody, Spelled, WireFormat,
};
use proptest::prelude::*;
use serde::de::IgnoredAny;

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// The pieces that a format shows of a message, as text that is equal for equal bytes.
pub(crate) fn pieces(format: WireFormat, message: &JsonText) -> String {
    let mut seen = String::new();
    Spelled(format).visit(message, &mut |piece| seen.push_str(&format!("{piece:?}\n")));
    seen
}

proptest! {
    #[test]
    fn l5_a_text_is_json_if_serde_json_accepts_it(text in json(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        prop_assert!(is_json(&text));
        prop_assert_eq!(JsonText::parse(text.as_str()).unwrap().into_string(), text.as_str());
        // Once with a byte changed, once with a byte removed.
        let at = at.index(text.len());
        let mut bytes = text.clone().into_bytes();
        let odd = b"\"\\{}[],:-+.eE0123456789ntfu \n\x00\x1f\x7f";
        bytes[at] = odd[usize::from(byte) % odd.len()];
        let exchanged = bytes.clone();
        bytes.remove(at);
        for bytes in [exchanged, bytes] {
            let Ok(text) = String::from_utf8(bytes) else { continue };
            prop_assert_eq!(JsonText::parse(text.as_str()).is_ok(), is_json(&text), "{:?}", text);
        }
    }

    #[test]
    fn l5_strings_are_read_as_serde_json_reads_them(text in string()) {
        let message = JsonText::parse(format!(r#"{{"role":"user","content":{text}}}"#)).unwrap();
        let mut shown = None;
        Spelled(WireFormat::OpenAiChat).visit(&message, &mut |piece| match piece {
            Piece::Content(PartRef::Text(text)) => shown = Some(text.to_owned()),
            Piece::Content(PartRef::Json(json)) => assert_eq!(json.to_string(), text),
            _ => {}
        });
        prop_assert_eq!(shown, serde_json::from_str::<String>(&text).ok());
    }

    #[test]
    fn l5_replacing_nothing_gives_the_same_bytes(
        messages in prop::collection::vec(json(), 0..4), around in json(), spaces in prop::collection::vec(space(), 3), which in 0..4,
    ) {
        let list = joined('[', &messages, &spaces, ']');
        let field = ["messages", "input", "contents", ""][which as usize];
        let text = if field.is_empty() { list } else {
            let members = [format!("\"x\":{around}"), format!("\"{field}\" :{list}"), format!("\"x\" : {around}")];
            joined('{', &members, &spaces, '}')
        };
        let mut body = RequestBody::parse(text.as_str()).unwrap();
        prop_assert_eq!(body.messages().iter().map(JsonText::as_str).collect::<Vec<_>>(), messages);
        for format in WireFormat::ALL {
            for message in body.messages_mut() {
                // These slots do not exist.
                Spelled(format).replace(message, 1000, NewPiece::Result(vec!["x".into()]));
                Spelled(format).replace(message, 1000, NewPiece::Arguments("{}".into()));
                // Every format sees every message, even an odd one.
                prop_assert!(pieces(format, message).starts_with("Role("));
            }
        }
        prop_assert_eq!(body.to_string(), text);
    }

    #[test]
    fn l5_replacing_some_gives_the_same_bytes_outside_of_them(
        format in proptest::sample::select(WireFormat::ALL.to_vec()),
        parts in prop::collection::vec((json(), json(), string(), number()), 1..4),
        spaces in prop::collection::vec(space(), 5),
        seed in any::<u8>(),
    ) {
        let rounds: Vec<Round> = parts.iter().enumerate().map(|(nth, parts)| Round::of(format, nth, parts, &spaces, seed)).collect();
        let mut messages: Vec<JsonText> =
            rounds.iter().flat_map(|round| &round.0).map(|message| JsonText::parse(message.with(&[])).unwrap()).collect();
        let all: Vec<&Template> = rounds.iter().flat_map(|round| &round.0).collect();
        for (message, template) in messages.iter_mut().zip(all) {
            // Fills one hole after the other, so that each change is made to a text changed before.
            let (mut filled, is_plain) = (Vec::new(), message.is_plain());
            for hole in template.0.iter().filter_map(|piece| match piece { Bit::Hole(hole) => Some(hole), Bit::Text(_) => None }) {
                match hole.of {
                    Of::Result(slot) => Spelled(format).replace(message, slot, NewPiece::Result(vec!["a \"hint\"\n".into()])),
                    Of::Arguments(call) => Spelled(format).replace(message, call, NewPiece::Arguments("{\"_cleared\":1.00}".into())),
                }
                if is_plain {
                    filled.push(hole.becomes.as_str());
                }
                prop_assert_eq!(message.as_str(), template.with(&filled));
                let anew = JsonText::parse(message.as_str()).unwrap();
                prop_assert_eq!(pieces(format, message), pieces(format, &anew), "where its values stand is known");
            }
        }
    }
}

enum Of {
    Result(usize),
    Arguments(usize),
}

/// A value to be replaced.
struct Hole {
    of: Of,
    is: String,
    becomes: String,
}

enum Bit {
    Text(String),
    Hole(Hole),
}

/// The text of a message, with its holes. It is built with them, so no test has to find them.
struct Template(Vec<Bit>);

impl Template {
    /// The text with the first holes filled.
    fn with(&self, filled: &[&str]) -> String {
        let mut filled = filled.iter();
        let text = |bit: &Bit| match bit {
            Bit::Text(text) => text.clone(),
            Bit::Hole(hole) => filled
                .next()
                .map_or_else(|| hole.is.clone(), |new| (*new).to_owned()),
        };
        self.0.iter().map(text).collect()
    }

    /// In `text`, `§` stands for a hole and `~` for whitespace.
    fn of(text: &str, spaces: &[String], holes: Vec<Hole>) -> Self {
        let mut spaces = spaces.iter().cycle();
        let text: String = text
            .split('~')
            .flat_map(|text| [text.to_owned(), spaces.next().cloned().unwrap()])
            .collect();
        let mut bits = Vec::new();
        let mut holes = holes.into_iter();
        for text in text.split('§') {
            bits.push(Bit::Text(text.to_owned()));
            bits.extend(holes.next().map(Bit::Hole));
        }
        Self(bits)
    }
}

/// A call and its result.
struct Round([Template; 2]);

impl Round {
    fn of(
        format: WireFormat,
        nth: usize,
        (any, other, text, number): &(String, String, String, String),
        spaces: &[String],
        seed: u8,
    ) -> Self {
        let is = |bit: u8| seed >> bit & 1 == 1;
        // Only valid Unicode is replaced.
        let text = if serde_json::from_str::<String>(text).is_ok() {
            text.clone()
        } else {
            "\"\\u0061\"".to_owned()
        };
        let any = if serde_json::from_str::<serde_json::Value>(any).is_ok() {
            any
        } else {
            number
        };
        let hole = |of, is: &str, becomes: &str| Hole {
            of,
            is: is.to_owned(),
            becomes: becomes.to_owned(),
        };
        let (hint, hints) = (
            r#""a \"hint\"\n""#,
            r#"[{"type":"text","text":"a \"hint\"\n"}]"#,
        );
        let arguments = || hole(Of::Arguments(0), &text, r#""{\"_cleared\":1.00}""#);
        let object = || hole(Of::Arguments(0), any, r#"{"_cleared":1.00}"#);
        let content = |slot| match is(0) {
            true => hole(
                Of::Result(slot),
                &format!("[{{\"type\" :\"text\", \"text\":{text}}} ]"),
                hints,
            ),
            false => hole(Of::Result(slot), &text, hint),
        };
        let content_key = if is(1) {
            "\"content\""
        } else {
            "\"c\\u006Fntent\""
        };
        let extra = format!("\"x\":{other},~\"x\"~:{number}");
        let (ask, answer, holes) = match format {
            WireFormat::OpenAiChat => (
                format!(
                    "{{~\"role\":\"assistant\",{extra},\"tool_calls\"~:[~{{\"id\":\"c{nth}\",\"function\":{{~\"name\":\"f\",\"arguments\":§~}}~,{extra}}}]~}}"
                ),
                format!(
                    "~{{{content_key}~:~§~,\"role\"~:\"tool\",{extra},\"tool_call_id\":\"c{nth}\"~}}~"
                ),
                [vec![arguments()], vec![content(0)]],
            ),
            WireFormat::Responses => (
                format!(
                    "{{\"type\":\"function_call\",{extra},\"call_id\":\"c{nth}\",\"arguments\"~:§,\"name\":\"f\"}}"
                ),
                format!(
                    "{{\"type\":\"function_call_output\",\"call_id\":\"c{nth}\",{extra}~,\"output\":~§~}}"
                ),
                [
                    vec![arguments()],
                    vec![match is(0) {
                        true => hole(
                            Of::Result(0),
                            &format!("[{{\"type\":\"input_text\",\"text\":{text}}}]"),
                            &hints.replace("\"text\",", "\"input_text\","),
                        ),
                        false => content(0),
                    }],
                ],
            ),
            WireFormat::Anthropic => (
                format!(
                    "{{\"role\":\"assistant\",\"content\":[~{{\"type\":\"tool_use\",\"id\":\"c{nth}\",\"name\":\"f\",\"input\":~§,{extra}}}]}}"
                ),
                format!(
                    "{{\"role\":\"user\",\"content\":[{{\"type\":\"tool_result\",{content_key}~:§~,\"tool_use_id\":\"c{nth}\"}}~,~{{\"type\":\"tool_result\",{extra},\"content\":§}},~{{\"type\":\"text\",\"text\":\"x\"}}]}}"
                ),
                [vec![object()], vec![content(0), content(1)]],
            ),
            _ => (
                format!(
                    "{{\"role\":\"model\",\"parts\":[~{{\"functionCall\":{{\"name\":\"f\",\"args\":~§,{extra}}}}}]}}"
                ),
                format!(
                    "{{\"role\":\"user\",\"parts\":[{{\"functionResponse\":{{\"name\":\"f\",{extra},\"response\"~:~{{~\"result\"~:~§~}}~}}}}~,{{\"function_response\":{{\"response\":§,\"name\":\"g\"}},{extra}}}]}}"
                ),
                [
                    vec![object()],
                    vec![
                        hole(Of::Result(0), &text, hint),
                        hole(
                            Of::Result(1),
                            &format!("{{\"a\":{number},\"b\":{text}}}"),
                            r#"{"output":"a \"hint\"\n"}"#,
                        ),
                    ],
                ],
            ),
        };
        let [asked, answered] = holes;
        Self([
            Template::of(&ask, spaces, asked),
            Template::of(&answer, spaces, answered),
        ])
    }
}

#[test]
fn l7_any_depth_is_read_and_left_unchanged() {
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let deeper = format!("{}1{}", "{\"a\":".repeat(10_000), "}".repeat(10_000));
    for deep in [deep, deeper] {
        let before =
            format!(r#"{{"messages":[{{"role":"tool","x":{deep},"content":"long"}}],"y":{deep}}}"#);
        let mut body = RequestBody::parse(before.as_str()).unwrap();
        Spelled(WireFormat::OpenAiChat).replace(
            &mut body.messages_mut()[0],
            0,
            NewPiece::Result(vec!["short".into()]),
        );
        assert_eq!(body.to_string(), before.replace("long", "short"));
    }
}

#[test]
fn l5_a_field_is_added_with_the_least_bytes_and_removed_with_its_comma() {
    let part = "{\"inlineData\":{\"mimeType\":\"image/png\",\"data\":\"AAAA\"}}";
    for (before, after) in [
        (
            "{ \"parts\" : [P] , \"name\":\"f\" }",
            "{ \"name\":\"f\",\"response\":{\"output\":\"x\"} }",
        ),
        (
            "{ \"name\":\"f\" , \"parts\":[P] }",
            "{ \"name\":\"f\",\"response\":{\"output\":\"x\"} }",
        ),
        ("{ \"parts\" : [P] }", "{ \"response\":{\"output\":\"x\"} }"),
        ("{ }", "{\"response\":{\"output\":\"x\"} }"),
        (
            "{\"a\":1, \"parts\":[] ,\"response\": {} }",
            "{\"a\":1 ,\"response\": {\"output\":\"x\"} }",
        ),
        (
            "{\"response\":{ \"error\" : \"long\" },\"parts\":[P]}",
            "{\"response\":{ \"error\" : \"x\" }}",
        ),
    ] {
        let wrap = |response: &str| {
            format!("{{\"role\":\"user\",\"parts\":[ {{\"functionResponse\":{response} }}] }}")
                .replace('P', part)
        };
        let mut message = JsonText::parse(wrap(before)).unwrap();
        Spelled(WireFormat::Gemini).replace(&mut message, 0, NewPiece::Result(vec!["x".into()]));
        assert_eq!(message.as_str(), wrap(after), "{before}");
    }
}

#[test]
fn l5_marks_move_as_they_are_spelled() {
    let mark = r#"{ "type":"ephemeral", "ttl" : 1.00 }"#;
    let before = format!(
        r#"{{"role":"tool", "content": [ {{"type":"text","text":"long","cache_control":{mark},"zz" : 1E5}} ]}}"#
    );
    let mut message = JsonText::parse(before).unwrap();
    Spelled(WireFormat::OpenAiChat).replace(&mut message, 0, NewPiece::Result(vec!["x".into()]));
    let expected = format!(
        r#"{{"role":"tool", "content": [{{"type":"text","text":"x","cache_control":{mark},"zz":1E5}}]}}"#
    );
    assert_eq!(message.as_str(), expected);
}

#[test]
fn l12_errors_about_a_body_quote_none_of_it() {
    for (text, expected) in [
        ("", "not JSON: EOF while parsing a value at line 1 column 0"),
        (
            "{\n\"secret\": 01}",
            "not JSON: invalid number at line 2 column 12",
        ),
        (
            "[\"secret",
            "not JSON: EOF while parsing a string at line 1 column 8",
        ),
        (
            "[1] secret",
            "not JSON: trailing characters at line 1 column 5",
        ),
        ("\u{feff}[]", "not JSON: expected value at line 1 column 1"),
    ] {
        let error = RequestBody::parse(text).unwrap_err();
        assert_eq!(error.to_string(), expected, "{text}");
    }
    for text in [
        "1",
        "null",
        "{}",
        r#"{"messages":"secret"}"#,
        r#"{"input":{}}"#,
    ] {
        assert_eq!(
            RequestBody::parse(text).unwrap_err(),
            BodyError::NoMessages,
            "{text}"
        );
    }
    let twice = r#"{"messages":[],"mess\u0061ges":[]}"#;
    assert_eq!(
        RequestBody::parse(twice).unwrap_err(),
        BodyError::KeyTwice { field: "messages" }
    );
}

#[test]
fn l7_a_body_takes_memory_in_proportion_to_its_length() {
    let many = |item: &str| vec![item; 400_000 / item.len()].join(",");
    let message =
        |content: &str| format!(r#"{{"messages":[{{"role":"user","content":{content}}}]}}"#);
    let call = |args: &str| {
        format!(
            r#"{{"contents":[{{"parts":[{{"functionCall":{{"name":"a","args":[{args}]}}}}]}}]}}"#
        )
    };
    for dense in [
        format!("[{}]", many("1")),
        format!("{{\"input\":[{}]}}", many("{}")),
        format!("{{\"messages\":[{}]}}", many("[]")),
        format!("{{\"messages\":[],\"tools\":[{}]}}", many("\"\"")),
        format!(
            "{{\"messages\":[],\"tools\":[{{\"a\":[{}]}}]}}",
            many("1000")
        ),
        format!("{{\"messages\":[],\"other\":[{}]}}", many("0")),
        message(&format!("[{}]", many(r#"{"type":"text","text":"a"}"#))),
        call(&many("[[]]")),
    ] {
        let parsed = RequestBody::parse_within(dense.as_str(), 16 * dense.len());
        assert_eq!(parsed.err(), Some(BodyError::TooDense), "{}", &dense[..40]);
        assert_eq!(
            RequestBody::parse(dense.as_str()).unwrap().to_string(),
            dense
        );
    }
    for usual in [
        message(&format!("\"{}\"", many("a line\\n"))),
        message(&format!(
            "[{}]",
            many(&format!(
                r#"{{"type":"text","text":"{}"}}"#,
                "a".repeat(200)
            ))
        )),
        call(&many("1000")),
    ] {
        let parsed = RequestBody::parse_within(usual.as_str(), 16 * usual.len());
        assert_eq!(parsed.unwrap().to_string(), usual);
    }
}
