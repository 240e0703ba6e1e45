//! Gemini's contents, where one content holds all responses to a turn.

use offcut::format::WireFormat;
use offcut::{Part, ToolCall};
use serde_json::{Value, json};

use super::super::generate::Speaker;
use super::{Gemini, Wire};

impl Wire for Gemini {
    fn say(self, speaker: Speaker, text: String, style: u8) -> Value {
        // System texts have no content of their own.
        let role = if speaker == Speaker::Assistant {
            "model"
        } else {
            "user"
        };
        let mut parts = vec![json!({"text": text})];
        if style & 1 != 0 {
            parts.push(json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}}));
        }
        let mut content = json!({"role": role, "parts": parts});
        if style & 4 != 0 {
            content["zz_unknown"] = json!({"b": 1, "a": [null, "x"]});
        }
        content
    }

    fn ask(self, says: Option<String>, calls: &[ToolCall], style: u8) -> Vec<Value> {
        let mut parts = Vec::new();
        if style & 64 != 0 {
            parts.push(json!({"text": "hm, ".repeat(10), "thought": true}));
        }
        parts.extend(says.map(|text| json!({"text": text})));
        for (nth, call) in calls.iter().enumerate() {
            let args = serde_json::from_str::<Value>(&call.arguments)
                .ok()
                .filter(Value::is_object);
            let args = args.unwrap_or_else(|| json!({"said": call.arguments}));
            let call = json!({"id": call.id, "name": call.name, "args": args});
            let mut part = if style & 2 != 0 {
                json!({"function_call": call})
            } else {
                json!({"functionCall": call})
            };
            if style & 32 != 0 && nth == 0 {
                part["thoughtSignature"] = json!("c2ln");
            }
            parts.push(part);
        }
        vec![json!({"role": "model", "parts": parts})]
    }

    fn answer(self, call: &ToolCall, parts: Vec<Part>, is_error: bool, style: u8) -> Value {
        let mut message = self.tool_message(call, parts, is_error);
        let part = &mut message["parts"][0];
        let response = &mut part["functionResponse"];
        if style & 1 != 0
            && let Some(value) = response["response"].get_mut("output").map(Value::take)
        {
            response["response"] = json!({"result": value});
        }
        if style & 4 != 0 {
            response["willContinue"] = json!(false);
            response["zz_unknown"] = json!({"b": 1, "a": "x"});
        }
        if style & 2 != 0 {
            *part = json!({"function_response": part["functionResponse"].take()});
        }
        if style & 8 != 0 {
            part["zz_unknown"] = json!(1);
        }
        message
    }

    fn odd(self, which: u8) -> Value {
        let long = "odd ".repeat(300);
        let response = |response: Value| json!({"role": "user", "parts": [{"functionResponse": {"id": "call_0", "name": "grep", "response": response}}]});
        match which % 14 {
            0 => json!(null),
            1 => json!([1, [2]]),
            2 => json!({}),
            3 => json!({"role": 7, "parts": {"a": long}}),
            4 => {
                json!({"role": "user", "parts": [null, 1, {}, {"functionResponse": null}, {"functionResponse": 7}]})
            }
            5 => response(json!(long)),
            6 => response(json!({"stdout": long, "code": 1, "error": null})),
            7 => response(json!({"error": {"message": long}, "code": 1})),
            8 => response(
                json!({"content": [{"type": "text", "text": long}, {"type": "text", "text": "x"}]}),
            ),
            9 => response(json!({"output": [long, 1, {"type": "text"}]})),
            10 => json!({"role": "function", "parts": [{"functionResponse": {"parts": [
                {"inlineData": {"mimeType": "image/png", "data": format!("{long}!")}},
                {"inlineData": 7}, {"fileData": {"fileUri": long}}, {"x": long},
            ]}}]}),
            11 => {
                json!({"role": "model", "parts": [{"functionCall": {"args": long}}, {"functionCall": null}, {"functionCall": {"args": {"a": long}}}]})
            }
            12 => {
                json!({"role": "model", "parts": [{"executableCode": {"code": long}}, {"codeExecutionResult": {"output": long}}]})
            }
            _ => json!({"role": "unheard of", "parts": [{"text": long}]}),
        }
    }

    fn json(self, content: &Value) -> Value {
        content.clone()
    }

    fn parse(self, json: Value) -> Value {
        json
    }

    fn blank(self, json: &mut Value) {
        for part in json
            .get_mut("parts")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            for name in ["functionCall", "function_call"] {
                if let Some(Value::Object(call)) = part.get_mut(name) {
                    call.retain(|field, _| field != "args");
                }
            }
            for name in ["functionResponse", "function_response"] {
                if let Some(Value::Object(response)) = part.get_mut(name) {
                    // Only the error status must stay.
                    let given = &response.get("response").cloned().unwrap_or_default();
                    let is_error = !given["error"].is_null() && given.get("output").is_none();
                    response.retain(|field, _| !matches!(field.as_str(), "response" | "parts"));
                    response.insert("response".into(), is_error.into());
                }
            }
        }
    }

    fn is_valid(self, json: &Value) -> bool {
        super::is_valid_in_between(self, json)
    }

    fn accepts(self, contents: &[Value]) -> Result<(), String> {
        offcut_testkit::validate(WireFormat::Gemini, contents).map_err(|error| error.to_string())
    }

    fn contents(self, _: &Value) -> Vec<&Value> {
        Vec::new() // it is always an object
    }

    /// Media come after everything else.
    fn can_hold(self, parts: Vec<Part>) -> Vec<Part> {
        let (media, mut others): (Vec<_>, Vec<_>) = parts
            .into_iter()
            .partition(|part| matches!(part, Part::Media { .. }));
        others.extend(media);
        others
    }

    fn join(self, last: &mut Value, next: &Value) -> bool {
        last["parts"]
            .as_array_mut()
            .unwrap()
            .extend(next["parts"].as_array().unwrap().iter().cloned());
        true
    }
}
