//! Messages of frameworks, which no format here reads.

use crate::json::View;

/// Names the format of a message that resembles a provider's but is a framework's own; `None` for any other.
///
/// ```
/// let message = serde_json::json!({"type": "human", "content": "Where is the leak?"});
/// assert_eq!(offcut::format::foreign_format(&message), Some("LangChain messages"));
/// let message = serde_json::json!({"role": "tool", "toolCallId": "a", "content": "3 hits"});
/// assert!(offcut::format::foreign_format(&message).is_some());
/// ```
pub fn foreign_format<'m, V: View<'m>>(message: V) -> Option<&'static str> {
    let [role, kind, lc, content, data, parts] =
        message.pick(["role", "type", "lc", "content", "data", "parts"]);
    let kind = kind.and_then(View::as_str).unwrap_or_default();
    let is_langchain = role.is_none()
        && matches!(kind, "human" | "ai" | "tool" | "system" | "function")
        && (content.is_some() || data.is_some());
    if is_langchain || lc.is_some() {
        return Some("LangChain messages");
    }
    let parts = || parts.into_iter().flat_map(View::items);
    if parts().any(|part| part.has("part_kind")) {
        return Some("pydantic-ai messages");
    }
    if message.get("info").is_some_and(|info| info.has("role")) && parts().next().is_some() {
        return Some("OpenCode messages");
    }
    let role = role?.as_str().unwrap_or_default();
    if message
        .get("toolInvocations")
        .is_some_and(|calls| calls.items().next().is_some())
    {
        return Some("Vercel AI SDK 4 messages");
    }
    match role {
        "toolResult" => return Some("pi messages"),
        "tool_result" => return Some("messages with the role `tool_result`"),
        "tool_response" => return Some("messages with the role `tool_response`"),
        "function_response" => return Some("messages with the role `function_response`"),
        "observation" => return Some("messages with the role `observation`"),
        "ipython" => return Some("messages with the role `ipython`"),
        _ => {}
    }
    // An unknown field of a message that a format reads means nothing.
    let is_one = |field: V| field.as_str().is_some() || field.items().next().is_some();
    let has_only =
        |ours: &str, theirs: &str| message.get(theirs).is_some_and(is_one) && !message.has(ours);
    if has_only("tool_calls", "toolCalls") || has_only("tool_call_id", "toolCallId") {
        return Some("messages with `toolCalls` or `toolCallId`, such as AG-UI's");
    }
    let mut blocks = content.into_iter().flat_map(View::items);
    let of_block = blocks.find_map(|block| match block.text("type") {
        "tool-call" | "tool-result" => Some("Vercel AI SDK ModelMessages"),
        "" if block.has("toolUse") || block.has("toolResult") => Some("Bedrock Converse messages"),
        _ => None,
    });
    let of_part = || {
        parts().find_map(|part| match part.text("type") {
            "" => None,
            "tool_call" | "tool_call_response" => Some("OpenTelemetry messages"),
            _ => Some("Vercel AI SDK UIMessages"),
        })
    };
    of_block.or_else(of_part)
}
