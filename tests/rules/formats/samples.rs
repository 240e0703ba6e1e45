//! Messages of every wire format.

use offcut::format::WireFormat;
use serde_json::{Value, json};

/// Messages of every kind that a format knows.
pub(crate) fn samples(format: WireFormat) -> Vec<Value> {
    let mark = json!({"type": "ephemeral"});
    let image = "data:image/png;base64,AAAA";
    match format {
        WireFormat::OpenAiChat => vec![
            json!({"role": "system", "content": "be brief"}),
            json!({"role": "user", "content": [{"type": "text", "text": "go", "cache_control": mark}, {"type": "image_url", "image_url": {"url": image}}]}),
            json!({"role": "assistant", "content": "Looking.", "reasoning_content": "hm", "tool_calls": [
                {"id": "a", "type": "function", "index": 0, "function": {"name": "grep", "arguments": "{\"pattern\":\"x\"}"}},
                {"id": "b", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}},
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}, "extra_content": {"google": {}}},
            ]}),
            json!({"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}}),
            json!({"role": "tool", "tool_call_id": "a", "content": "3 hits"}),
            json!({"role": "tool", "tool_call_id": "a", "name": "grep", "content": [
                {"type": "text", "text": "3 hits", "cache_control": mark}, {"type": "image_url", "image_url": {"url": image}},
            ]}),
            json!({"role": "function", "name": "f", "content": "r"}),
        ],
        WireFormat::Responses => vec![
            json!({"role": "user", "content": "go"}),
            json!({"type": "message", "role": "assistant", "id": "msg_1", "status": "completed", "content": [{"type": "output_text", "text": "x", "annotations": []}]}),
            json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "e30="}),
            json!({"type": "function_call", "id": "fc_1", "call_id": "a", "name": "grep", "arguments": "{}", "status": "completed"}),
            json!({"type": "custom_tool_call", "call_id": "b", "name": "patch", "input": "*** Begin"}),
            json!({"type": "function_call_output", "call_id": "a", "output": "3 hits"}),
            json!({"type": "function_call_output", "id": "fco_1", "call_id": "a", "output": [
                {"type": "input_text", "text": "3 hits"}, {"type": "input_image", "image_url": image},
            ]}),
            json!({"type": "custom_tool_call_output", "call_id": "b", "output": "done"}),
            json!({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}}),
            json!({"type": "shell_call_output", "call_id": "s", "output": [{"stdout": "x", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]}),
        ],
        WireFormat::Anthropic => vec![
            json!({"role": "user", "content": "go"}),
            json!({"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                {"type": "text", "text": "Looking.", "citations": null},
                {"type": "tool_use", "id": "a", "name": "grep", "input": {"pattern": "x"}, "cache_control": mark},
                {"type": "tool_use", "id": "b", "name": "cat", "input": {}},
                {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}},
            ]}),
            json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "3 hits", "cache_control": mark},
                {"type": "tool_result", "tool_use_id": "b", "is_error": true, "content": [{"type": "text", "text": "no", "cache_control": mark}]},
                {"type": "tool_result", "tool_use_id": "c", "content": [
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
                    {"type": "document", "title": "x", "source": {"type": "text", "media_type": "text/plain", "data": "t"}},
                ]},
                {"type": "tool_result", "tool_use_id": "d"},
                {"type": "text", "text": "Go on."},
            ]}),
        ],
        WireFormat::Gemini => vec![
            json!({"role": "user", "parts": [{"text": "go"}, {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]}),
            json!({"role": "model", "parts": [
                {"text": "hm", "thought": true},
                {"functionCall": {"name": "grep", "args": {"pattern": "x"}}, "thoughtSignature": "c2ln"},
            ]}),
            json!({"role": "model", "parts": [{"functionCall": {"id": "a", "name": "f", "args": {}}}, {"function_call": {"name": "g", "args": {"x": 1}}}]}),
            json!({"role": "user", "parts": [
                {"functionResponse": {"name": "grep", "response": {"result": "3 hits"}, "willContinue": false}},
                {"functionResponse": {"id": "a", "name": "f", "response": {"stdout": "x", "code": 0}}},
                {"functionResponse": {"name": "g", "response": {"error": "no"}}},
                {"functionResponse": {"name": "g", "response": {"error": "no", "code": 1}}},
                {"function_response": {"name": "g", "response": {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "parts": [
                    {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
                ]}},
                {"text": "Go on."},
            ]}),
        ],
        _ => unreachable!("a new format needs samples"),
    }
}
