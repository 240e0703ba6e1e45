//! Gemini's contents as their wire JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::blocks::text_of;
use super::{Arguments, Call, Data, Format, PartRef, Piece, ResultHead, Role};
use crate::content::{Part, ToolCall};

/// The format of the `contents` of Gemini's API, as [`serde_json::Value`], in camel case or snake case.
///
/// Each `functionResponse` is a slot. Its `response` must be an object: what is shown of it is the value of its one field `output`,
/// `result`, `content` or `error`, and otherwise the whole of it as JSON. A response with an `error` and no `output` is an error,
/// and stays one. A value that is a list of nothing but `{"type": "text", "text": …}`, as MCP servers give it, is that many
/// texts; media stand in the response's own `parts`, behind the texts. Calls next to a `thoughtSignature` are signed. Order of
/// keys: see the crate's documentation on `preserve_order`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gemini;

impl Gemini {
    /// The part that answers `call` with `content`.
    ///
    /// ```
    /// use offcut::{ToolCall, format::Gemini};
    /// use serde_json::json;
    /// let part = Gemini::tool_response(&ToolCall::new("", "grep", "{}"), vec!["3 hits".into()], false);
    /// assert_eq!(part, json!({"functionResponse": {"name": "grep", "response": {"output": "3 hits"}}}));
    /// let content = Gemini::tool_message([part]);
    /// assert_eq!(content["role"], "user");
    /// ```
    #[must_use]
    pub fn tool_response(call: &ToolCall, content: impl Into<Vec<Part>>, is_error: bool) -> Value {
        let mut fields = Map::new();
        if !call.id.is_empty() {
            fields.insert("id".into(), call.id.clone().into());
        }
        fields.insert("name".into(), call.name.clone().into());
        write_response(&mut fields, if is_error { "error" } else { "output" }, content.into());
        json!({"functionResponse": fields})
    }

    /// The content with the responses to all calls of a turn, which the API wants together.
    #[must_use]
    pub fn tool_message(responses: impl IntoIterator<Item = Value>) -> Value {
        json!({"role": "user", "parts": responses.into_iter().collect::<Value>()})
    }

    /// The calls of a model's content.
    #[must_use]
    pub fn tool_calls(content: &Value) -> Vec<ToolCall> {
        super::tool_calls(&Self, content)
    }
}

impl Format for Gemini {
    type Message = Value;

    fn visit<'m>(&self, content: &'m Value, see: &mut dyn FnMut(Piece<'m>)) {
        let role = match text_of(content, "role") {
            "model" => Role::Assistant,
            "system" => Role::System,
            _ => Role::User,
        };
        let parts = content.get("parts").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        // Of parallel calls only the first bears a signature, which is over the turn.
        let is_signed = parts.iter().any(|part| field(part, SIGNATURE).is_some());
        let mut open = None;
        for part in parts {
            let response = field(part, RESPONSE);
            let whose = if response.is_some() { Role::Tool } else { role };
            if open != Some(whose) {
                see(Piece::Role(whose));
                open = Some(whose);
            }
            if let Some(response) = response {
                let given = Given::of(response.get("response"));
                let name = response.get("name").and_then(Value::as_str);
                see(Piece::Result(ResultHead { id: text_of(response, "id"), name, is_error: given.is_error }));
                given.visit(see);
                let media = response.get("parts").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                media.iter().for_each(|part| see(Piece::Content(read_part(part))));
            } else if let Some(call) = field(part, CALL) {
                let arguments = call.get("args").map_or(Arguments::Text(""), Arguments::Json);
                see(Piece::Call(Call { id: text_of(call, "id"), name: text_of(call, "name"), arguments, is_signed }));
            } else {
                see(Piece::Content(read_part(part)));
            }
        }
        if open.is_none() {
            see(Piece::Role(role));
        }
    }

    fn replace_result(&self, content: &mut Value, slot: usize, parts: Vec<Part>) {
        if let Some(Value::Object(response)) = nth_part(content, RESPONSE, slot) {
            let key = Given::of(response.get("response")).key;
            write_response(response, key, parts);
        }
    }

    fn replace_arguments(&self, content: &mut Value, call: usize, arguments: String) {
        if let (Some(Value::Object(call)), Ok(args)) =
            (nth_part(content, CALL, call), serde_json::from_str::<Value>(&arguments))
        {
            call.insert("args".into(), args);
        }
    }
}

/// A field's two spellings.
type Name = [&'static str; 2];
const RESPONSE: Name = ["functionResponse", "function_response"];
const CALL: Name = ["functionCall", "function_call"];
const SIGNATURE: Name = ["thoughtSignature", "thought_signature"];
const INLINE: Name = ["inlineData", "inline_data"];
const FILE: Name = ["fileData", "file_data"];
const MIME: Name = ["mimeType", "mime_type"];
const URI: Name = ["fileUri", "file_uri"];

fn field(value: &Value, names: Name) -> Option<&Value> {
    names.into_iter().find_map(|name| value.get(name))
}

/// The n-th response, or the n-th call. A part that is both is a response, as it is seen.
fn nth_part(content: &mut Value, names: Name, nth: usize) -> Option<&mut Value> {
    let parts = content.get_mut("parts")?.as_array_mut()?;
    let is_one = |part: &Value| [RESPONSE, CALL].into_iter().find(|names| field(part, *names).is_some()) == Some(names);
    let part = parts.iter_mut().filter(|part| is_one(part)).nth(nth)?;
    let name = names.into_iter().find(|name| part.get(name).is_some())?;
    part.get_mut(name)
}

/// What a tool gave, as a response holds it.
struct Given<'m> {
    /// Where a replacement goes.
    key: &'static str,
    is_error: bool,
    value: Option<&'m Value>,
}

impl<'m> Given<'m> {
    fn of(response: Option<&'m Value>) -> Self {
        let fields = response.and_then(Value::as_object);
        let has = |key: &str| fields.is_some_and(|fields| fields.contains_key(key));
        let is_error = fields.and_then(|fields| fields.get("error")).is_some_and(|e| !e.is_null()) && !has("output");
        let is_only = fields.is_some_and(|fields| fields.len() == 1);
        let keys = if is_error { &["error"][..] } else { &["output", "result", "content"] };
        let key = keys.iter().copied().find(|key| is_only && has(key));
        let value = key.and_then(|key| response?.get(key)).or(response);
        // What stands beside media that are all of it.
        let is_nothing = |value: &&Value| value.as_object().is_some_and(Map::is_empty) && (!is_only || is_error);
        let value = value.filter(|value| !is_nothing(value));
        Self { key: key.unwrap_or(if is_error { "error" } else { "output" }), is_error, value }
    }

    fn visit(&self, see: &mut dyn FnMut(Piece<'m>)) {
        match self.value {
            None => {}
            Some(Value::String(text)) => see(Piece::Content(PartRef::Text(text))),
            Some(value) => match texts_of(value) {
                Some(texts) => texts.for_each(|text| see(Piece::Content(PartRef::Text(text)))),
                None => see(Piece::Content(PartRef::Json(value))),
            },
        }
    }
}

/// The texts of a list of nothing but texts.
fn texts_of(value: &Value) -> Option<impl Iterator<Item = &str>> {
    let parts = value.as_array().filter(|parts| !parts.is_empty())?;
    let is_text = |part: &Value| {
        let fields = part.as_object().filter(|fields| fields.len() == 2);
        fields.is_some_and(|fields| fields.get("text").is_some_and(Value::is_string)) && text_of(part, "type") == "text"
    };
    parts.iter().all(is_text).then(|| parts.iter().map(|part| text_of(part, "text")))
}

fn read_part(part: &Value) -> PartRef<'_> {
    if let Some(text) = part.get("text").and_then(Value::as_str) {
        return PartRef::Text(text);
    }
    if let Some(inline) = field(part, INLINE) {
        let (mime, data) = (field(inline, MIME).and_then(Value::as_str), inline.get("data").and_then(Value::as_str));
        if let (Some(mime), Some(data)) = (mime, data) {
            return PartRef::Media { mime, data: Data::Base64(data) };
        }
    }
    if let Some(file) = field(part, FILE)
        && let Some(url) = field(file, URI).and_then(Value::as_str)
    {
        return PartRef::Link { mime: field(file, MIME).and_then(Value::as_str), url };
    }
    PartRef::Opaque(part)
}

/// Puts `parts` in the place of what a response held: the texts under `key`, media into its `parts`.
fn write_response(fields: &mut Map<String, Value>, key: &str, parts: Vec<Part>) {
    let (mut given, mut media) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Part::Media { mime, data } => {
                media.push(json!({"inlineData": {"mimeType": mime, "data": STANDARD.encode(&data)}}));
            }
            Part::Link { mime: Some(mime), url } => media.push(json!({"fileData": {"mimeType": mime, "fileUri": url}})),
            Part::Link { mime: None, url } => given.push(Value::String(url)),
            Part::Text(text) => given.push(Value::String(text)),
            Part::Json(value) | Part::Opaque(value) => given.push(value),
        }
    }
    let response = match <[Value; 1]>::try_from(given) {
        Ok([value]) => json!({key: value}),
        // Media alone have nothing beside them, but an error stays one.
        Err(given) if given.is_empty() && key == "error" => json!({key: {}}),
        Err(given) if given.is_empty() => json!({}),
        Err(given) => json!({key: given.into_iter().map(text_item).collect::<Value>()}),
    };
    fields.insert("response".into(), response);
    // Not `remove`, which would change the order of the other fields where order is kept.
    fields.retain(|name, _| name != "parts");
    if !media.is_empty() {
        fields.insert("parts".into(), media.into());
    }
}

fn text_item(value: Value) -> Value {
    let text = match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    json!({"type": "text", "text": text})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(content: &Value) -> String {
        let mut out = String::new();
        Gemini.visit(content, &mut |piece| out.push_str(&format!("{piece:?}\n")));
        out
    }

    #[expect(clippy::needless_pass_by_value, reason = "so that `json!` can stand there")]
    fn response(given: Value) -> Value {
        json!({"role": "user", "parts": [{"functionResponse": {"name": "f", "response": given}}]})
    }

    #[test]
    fn what_is_seen_of_a_turn() {
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
        let all: Vec<String> = contents.iter().map(seen).collect();
        insta::assert_snapshot!(all.join("--\n"), @r#"
        Role(User)
        Content(Text("go"))
        Content(Media { mime: "image/png", data: Base64("AA==") })
        Content(Link { mime: Some("application/pdf"), url: "https://example.org/x.pdf" })
        --
        Role(Assistant)
        Content(Text("hm"))
        Call(Call { id: "", name: "grep", arguments: Json(Object {"pattern": String("x")}), is_signed: true })
        Call(Call { id: "b", name: "cat", arguments: Json(Object {}), is_signed: true })
        Content(Opaque(Object {"executableCode": Object {"language": String("PYTHON"), "code": String("1")}}))
        --
        Role(Tool)
        Result(ResultHead { id: "", name: Some("grep"), is_error: false })
        Content(Text("3 hits"))
        Result(ResultHead { id: "b", name: Some("cat"), is_error: true })
        Content(Json(Object {"code": Number(404)}))
        Content(Media { mime: "image/png", data: Base64("AA==") })
        Role(User)
        Content(Text("Go on."))
        "#);
    }

    #[test]
    fn what_a_response_holds() {
        let texts = json!([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]);
        for (given, expected) in [
            (json!({"output": "x"}), r#"Text("x")"#),
            (json!({"content": texts}), "Text(\"one\")\nText(\"two\")"),
            (json!({"content": [{"type": "text", "text": "one", "x": 1}]}), "Json(Array"),
            (json!({"output": 7}), "Json(Number(7))"),
            (json!({"a": "x"}), r#"Json(Object {"a": String("x")})"#),
            (json!({"output": "x", "b": 1}), r#"Json(Object {"output": String("x"), "b": Number(1)})"#),
            (json!("x"), r#"Text("x")"#),
        ] {
            let seen = seen(&response(given)).replace("Content(", "").replace("))\n", ")\n");
            let (_, shown) = seen.split_once("false })\n").unwrap();
            assert!(shown.starts_with(expected), "{shown}");
        }
    }

    #[test]
    fn l5_a_replacement_stands_where_the_value_stood_and_errors_stay_errors() {
        for (before, after) in [
            (json!({"result": "long"}), json!({"result": "hint"})),
            (json!({"content": [{"type": "text", "text": "long"}]}), json!({"content": "hint"})),
            (json!({"stdout": "long", "code": 0, "error": null}), json!({"output": "hint"})),
            (json!({"error": "long", "code": 1}), json!({"error": "hint"})),
            (json!({"error": "long", "output": 1}), json!({"output": "hint"})),
        ] {
            let mut changed = response(before.clone());
            changed["parts"][0]["functionResponse"]["parts"] = json!([{"inlineData": {}}]);
            changed["parts"][0]["functionResponse"]["willContinue"] = json!(false);
            changed["parts"][0]["x"] = json!(1);
            let mut expected = response(after);
            expected["parts"][0]["functionResponse"]["willContinue"] = json!(false);
            expected["parts"][0]["x"] = json!(1);
            Gemini.replace_result(&mut changed, 0, vec!["hint".into()]);
            Gemini.replace_result(&mut changed, 1, vec!["other".into()]);
            assert_eq!(changed, expected, "{before}");
        }
    }

    #[test]
    fn several_parts_are_texts_and_then_media() {
        let mut content = response(json!({"a": 1}));
        let image = Part::Media { mime: "image/png".into(), data: vec![0].into() };
        Gemini.replace_result(&mut content, 0, vec!["one".into(), image, Part::Json(json!([2]))]);
        let response = &content["parts"][0]["functionResponse"];
        assert_eq!(
            response["response"],
            json!({"output": [{"type": "text", "text": "one"}, {"type": "text", "text": "[2]"}]})
        );
        assert_eq!(response["parts"], json!([{"inlineData": {"mimeType": "image/png", "data": "AA=="}}]));
    }

    #[test]
    fn arguments_are_replaced_in_either_spelling() {
        let mut content = json!({"role": "model", "parts": [
            {"text": "x"},
            {"functionCall": {"name": "f", "args": {"long": 1}}},
            {"function_call": {"name": "g", "args": {"long": 2}, "x": 1}},
        ]});
        Gemini.replace_arguments(&mut content, 1, "{}".into());
        Gemini.replace_arguments(&mut content, 2, "{}".into());
        assert_eq!(content["parts"][1]["functionCall"]["args"], json!({"long": 1}));
        assert_eq!(content["parts"][2]["function_call"], json!({"name": "g", "args": {}, "x": 1}));
    }

    #[test]
    fn malformed_contents_are_seen_as_what_they_are() {
        let odd = [
            json!(null),
            json!([]),
            json!({}),
            json!({"role": 1, "parts": 1}),
            json!({"parts": [null, 1, [], {}, {"functionResponse": null}, {"functionCall": 7}, {"inlineData": "x"}]}),
        ];
        for odd in odd {
            assert!(seen(&odd).starts_with("Role("), "{odd}");
            let mut changed = odd.clone();
            Gemini.replace_result(&mut changed, 0, vec![]);
            Gemini.replace_arguments(&mut changed, 0, "{}".into());
            assert_eq!(changed, odd);
        }
    }
}
