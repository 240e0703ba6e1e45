//! Gemini's contents as wire JSON.

mod response;

use crate::json::{Edit, New, View};
use serde_json::{Map, Value, json};

use self::response::ResponseContent;
use super::blocks::{is_given, is_signed};
use super::site::{See, Site, show_role};
use super::{Call, Data, JsonRef, PartRef, Piece, ResultHead, Role};
use crate::content::{Part, ToolCall};

/// The part that answers `call` with `content`.
pub(super) fn part(call: &ToolCall, content: Vec<Part>, is_error: bool) -> Value {
    let mut fields = Map::new();
    if !call.id.is_empty() {
        fields.insert("id".into(), call.id.clone().into());
    }
    fields.insert("name".into(), call.name.clone().into());
    let key = if is_error { "error" } else { "output" };
    let (response, media) = response::write(key, content, |_| None);
    fields.insert("response".into(), response);
    if !media.is_empty() {
        let media = media.into_iter().filter_map(New::into_value).collect();
        fields.insert("parts".into(), media);
    }
    json!({"functionResponse": fields})
}

/// Calls `see` with each piece of a message, in order, and with the site of what can be replaced.
pub(super) fn see<'m, V: View<'m>>(content: V, see: See<'_, 'm, V>) {
    let [role, parts] = content.pick(["role", "parts"]);
    let role = match role.and_then(V::as_str) {
        Some("model") => Role::Assistant,
        Some("system") => Role::System,
        _ => Role::User,
    };
    let parts = || parts.into_iter().flat_map(V::items);
    // Only the first of parallel calls has a signature, which covers the whole turn.
    let are_signed =
        parts().any(|part| is_signed(part) || field(part, CALL).is_some_and(is_signed));
    let mut last = None;
    for (at, part) in parts().enumerate() {
        let site = |key, object: V, field| Site {
            item: Some(("parts", at)),
            key,
            object,
            field,
        };
        let response = named(part, RESPONSE);
        let is_result = response.is_some();
        show_role(if is_result { Role::Tool } else { role }, &mut last, see);
        if let Some((key, response)) = response {
            let [id, name, given, media] = response.pick(["id", "name", "response", "parts"]);
            let given = ResponseContent::of(given);
            let head = ResultHead {
                name: name.and_then(V::as_str),
                is_error: given.is_error,
                id: id.and_then(V::as_str).unwrap_or_default(),
                ..ResultHead::default()
            };
            let site = site(Some(key), response, "response");
            see(Piece::Result(head), Some(site));
            given.show(see);
            for part in media.into_iter().flat_map(V::items) {
                see(Piece::Content(read_part(part)), None);
            }
        } else if let Some((key, call)) = named(part, CALL) {
            let arguments = call.get("args").map_or(JsonRef::Spelled(""), V::json);
            let shown = Call {
                is_signed: are_signed,
                ..Call::new(call.text("id"), call.text("name"), arguments)
            };
            see(Piece::Call(shown), Some(site(Some(key), call, "args")));
        } else {
            let text = site(None, part, "text");
            see(Piece::Content(read_part(part)), Some(text));
        }
    }
    if last.is_none() {
        show_role(role, &mut last, see);
    }
}

/// The edits that replace the content of a result by `parts`.
pub(super) fn replace<'m, V: View<'m>>(result: Site<V>, parts: Vec<Part>) -> Vec<Edit<'m>> {
    let media = result.object.get("parts");
    let media = media.into_iter().flat_map(V::items);
    let given = ResponseContent::of(result.get());
    given.replace(result.path(), media, parts, read_part)
}

/// A field's two spellings.
type FieldSpellings = [&'static str; 2];
const RESPONSE: FieldSpellings = ["functionResponse", "function_response"];
const CALL: FieldSpellings = ["functionCall", "function_call"];
const INLINE: FieldSpellings = ["inlineData", "inline_data"];
const FILE: FieldSpellings = ["fileData", "file_data"];
const MIME: FieldSpellings = ["mimeType", "mime_type"];
const URI: FieldSpellings = ["fileUri", "file_uri"];

/// Returns true for a part with a call or a response.
pub(super) fn is_tool<'m, V: View<'m>>(part: V) -> bool {
    let fields = [CALL, RESPONSE].map(|names| part.pick(names));
    fields.into_iter().flatten().any(is_given)
}

/// A field and its spelling.
fn named<'m, V: View<'m>>(value: V, names: FieldSpellings) -> Option<(&'static str, V)> {
    let mut fields = names.into_iter().zip(value.pick(names));
    fields.find_map(|(name, field)| Some((name, field?)))
}

fn field<'m, V: View<'m>>(value: V, names: FieldSpellings) -> Option<V> {
    Some(named(value, names)?.1)
}

fn read_part<'m, V: View<'m>>(part: V) -> PartRef<'m> {
    let mime = |of: V| field(of, MIME).and_then(V::as_str);
    let text = || part.get("text")?.as_str().map(PartRef::Text);
    let inline = || {
        let inline = field(part, INLINE)?;
        let data = inline.get("data").and_then(V::as_str);
        let (mime, data) = mime(inline).zip(data.map(Data::Base64))?;
        Some(PartRef::Media { mime, data })
    };
    let file = || {
        let file = field(part, FILE)?;
        let (url, mime) = (field(file, URI)?.as_str()?, mime(file));
        Some(PartRef::Link { mime, url })
    };
    let is_there = |names| is_given(field(part, names));
    // Of two media, neither is all of the part.
    let has_both = is_there(INLINE) && is_there(FILE);
    let media = || inline().or_else(file).filter(|_| !has_both);
    let known = text().or_else(media);
    known.unwrap_or_else(|| PartRef::Opaque(part.json()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::{expect_untouched, seen};
    use crate::format::{Format, Gemini, NewPiece};

    #[expect(
        clippy::needless_pass_by_value,
        reason = "so that `json!` can stand there"
    )]
    fn response(given: Value) -> Value {
        json!({"role": "user", "parts": [{"functionResponse": {"name": "f", "response": given}}]})
    }

    #[test]
    fn a_turn_shows_its_calls_results_and_contents() {
        let contents = [
            json!({"role": "user", "parts": [
                {"text": "go"}, {"inlineData": {"mimeType": "image/png", "data": "AA=="}},
                {"file_data": {"mime_type": "application/pdf", "file_uri": "https://example.org/x.pdf"}},
            ]}),
            json!({"role": "model", "parts": [
                {"text": "hm", "thought": true},
                {"functionCall": {"name": "grep", "args": {"pattern": "x"}}, "thoughtSignature": "c2ln"},
                {"functionCall": {"id": "b", "name": "cat", "args": {}}},
                {"executableCode": {"language": "PYTHON", "code": "1"}},
            ]}),
            json!({"role": "user", "parts": [
                {"functionResponse": {"name": "grep", "response": {"result": "3 hits"}}},
                {"functionResponse": {"id": "b", "name": "cat", "response": {"error": {"code": 404}}, "parts": [
                    {"inlineData": {"mimeType": "image/png", "data": "AA=="}},
                ]}},
                {"text": "Go on."},
            ]}),
        ];
        let all: Vec<String> = contents
            .iter()
            .map(|message| seen(&Gemini, message))
            .collect();
        insta::assert_snapshot!(all.join("--\n"), @r#"
        Role(User)
        Content(Text("go"))
        Content(Media { mime: "image/png", data: Base64("AA==") })
        Content(Link { mime: Some("application/pdf"), url: "https://example.org/x.pdf" })
        --
        Role(Assistant)
        Content(Text("hm"))
        Call(Call { id: "", name: "grep", arguments: Object {"pattern": String("x")}, is_signed: true, is_for_program: false, is_fixed: false })
        Call(Call { id: "b", name: "cat", arguments: Object {}, is_signed: true, is_for_program: false, is_fixed: false })
        Content(Opaque(Object {"executableCode": Object {"language": String("PYTHON"), "code": String("1")}}))
        --
        Role(Tool)
        Result(ResultHead { id: "", name: Some("grep"), is_error: false, is_for_program: false, is_fixed: false })
        Content(Text("3 hits"))
        Result(ResultHead { id: "b", name: Some("cat"), is_error: true, is_for_program: false, is_fixed: false })
        Content(Json(Object {"code": Number(404)}))
        Content(Media { mime: "image/png", data: Base64("AA==") })
        Role(User)
        Content(Text("Go on."))
        "#);
    }

    #[test]
    fn a_part_with_two_media_is_neither_of_them() {
        for inline in [
            json!({"data": "AA=="}),
            json!({"mimeType": "image/png", "data": "AA=="}),
        ] {
            let file = json!({"fileUri": "https://example.org/x.mp4"});
            let part = json!({"inlineData": inline, "fileData": file});
            let shown = seen(&Gemini, &json!({"role": "user", "parts": [part]}));
            assert!(
                shown.contains("Content(Opaque(") && !shown.contains("Link"),
                "{shown}"
            );
        }
    }

    #[test]
    fn responses_are_shown_as_their_text_or_json() {
        let texts = json!([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]);
        for (given, expected) in [
            (json!({"output": "x"}), r#"Text("x")"#),
            (json!({"content": texts}), "Text(\"one\")\nText(\"two\")"),
            (
                json!({"content": [{"type": "text", "text": "one", "x": 1}]}),
                "Json(Array",
            ),
            (json!({"name": "grep", "content": "x"}), r#"Text("x")"#),
            (json!({"name": "grep", "result": "x"}), r#"Text("x")"#),
            (
                json!({"status": 200, "body": "x", "headers": {"a": []}}),
                r#"Text("x")"#,
            ),
            (
                json!({"content": texts, "isError": false}),
                "Text(\"one\")\nText(\"two\")",
            ),
            (
                json!({"stdout": "", "stderr": "x".repeat(200)}),
                "Json(Object",
            ),
            (json!({"output": "x", "b": vec![""; 200]}), "Json(Object"),
            (json!({"output": "x", "error": "y"}), r#"Text("x")"#),
            (json!({"stdout": "x", "error": "y"}), "Json(Object"),
            (json!({"output": 7}), "Json(Number(7))"),
            (json!({"return_value": "x"}), r#"Text("x")"#),
            (json!({"a": texts}), "Text(\"one\")\nText(\"two\")"),
            (json!({"a": {"b": "x"}}), r#"Json(Object {"a": Object"#),
            (json!({"a": "x", "b": "y"}), "Json(Object"),
            (json!({"output": "x", "b": 1}), r#"Text("x")"#),
            (json!("x"), r#"Text("x")"#),
        ] {
            let seen = seen(&Gemini, &response(given))
                .replace("Content(", "")
                .replace("))\n", ")\n");
            let (_, shown) = seen.split_once("is_fixed: false })\n").unwrap();
            assert!(shown.starts_with(expected), "{shown}");
        }
    }

    #[test]
    fn l5_a_replacement_keeps_its_place_and_the_error_flag() {
        for (before, after) in [
            (json!({"result": "long"}), json!({"result": "hint"})),
            (
                json!({"return_value": "long"}),
                json!({"return_value": "hint"}),
            ),
            (
                json!({"name": "grep", "content": "long"}),
                json!({"name": "grep", "content": "hint"}),
            ),
            (
                json!({"content": [{"type": "text", "text": "long"}]}),
                json!({"content": "hint"}),
            ),
            (
                json!({"stdout": "long", "code": 0, "error": null}),
                json!({"stdout": "hint", "code": 0, "error": null}),
            ),
            (json!({"log": "long", "code": 0}), json!({"output": "hint"})),
            (
                json!({"error": "long", "code": 1}),
                json!({"error": "hint"}),
            ),
            (
                json!({"error": "long", "output": 1}),
                json!({"output": "hint"}),
            ),
        ] {
            let mut changed = response(before.clone());
            changed["parts"][0]["functionResponse"]["parts"] = json!([{"inlineData": {}}]);
            changed["parts"][0]["functionResponse"]["willContinue"] = json!(false);
            changed["parts"][0]["x"] = json!(1);
            let mut expected = response(after);
            expected["parts"][0]["functionResponse"]["willContinue"] = json!(false);
            expected["parts"][0]["x"] = json!(1);
            Gemini.replace(&mut changed, 0, NewPiece::Result(vec!["hint".into()]));
            Gemini.replace(&mut changed, 1, NewPiece::Result(vec!["other".into()]));
            assert_eq!(changed, expected, "{before}");
        }
    }

    #[test]
    fn several_parts_are_texts_and_then_media() {
        let mut content = response(json!({"a": 1}));
        let image = Part::Media {
            mime: "image/png".into(),
            data: vec![0].into(),
        };
        Gemini.replace(
            &mut content,
            0,
            NewPiece::Result(vec!["one".into(), image, Part::Json(json!([2]))]),
        );
        let response = &content["parts"][0]["functionResponse"];
        assert_eq!(
            response["response"],
            json!({"output": [{"type": "text", "text": "one"}, {"type": "text", "text": "[2]"}]})
        );
        assert_eq!(
            response["parts"],
            json!([{"inlineData": {"mimeType": "image/png", "data": "AA=="}}])
        );
    }

    #[test]
    fn arguments_are_replaced_in_either_spelling() {
        let mut content = json!({"role": "model", "parts": [
            {"text": "x"},
            {"functionCall": {"name": "f", "args": {"long": 1}}},
            {"function_call": {"name": "g", "args": {"long": 2}, "x": 1}},
        ]});
        Gemini.replace(&mut content, 1, NewPiece::Arguments("{}".into()));
        Gemini.replace(&mut content, 2, NewPiece::Arguments("{}".into()));
        assert_eq!(
            content["parts"][1]["functionCall"]["args"],
            json!({"long": 1})
        );
        assert_eq!(
            content["parts"][2]["function_call"],
            json!({"name": "g", "args": {}, "x": 1})
        );
    }

    #[test]
    fn malformed_contents_are_left_untouched() {
        let odd = [
            json!(null),
            json!([]),
            json!({}),
            json!({"role": 1, "parts": 1}),
            json!({"parts": [null, 1, [], {}, {"functionResponse": null}, {"functionCall": 7}, {"inlineData": "x"}]}),
        ];
        expect_untouched(&Gemini, 0, &odd);
    }
}
