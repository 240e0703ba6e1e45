//! Tokens of a run, by its provider's count: from a file, or from its agent's output.

use std::ops::Add;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::usage::ProviderUsage;

/// Tokens of a run, as its provider has counted them. Nothing here is an estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Usage {
    /// Model calls, where the log tells them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) calls: Option<u64>,
    /// Input tokens that were neither read from the cache nor written to it.
    pub(crate) input: u64,
    /// Input tokens that were read from the cache.
    pub(crate) cached: u64,
    /// Input tokens that were written to the cache, where the provider counts that.
    pub(crate) written: u64,
    /// Output tokens.
    pub(crate) output: u64,
}

impl Usage {
    /// Reads the usage that a run has left: a file with one provider's reply a line, or only its usage; or else the
    /// agent's own output. `None` if neither has any.
    pub(crate) fn of_run(file: &str, output: &str) -> Option<Self> {
        let replies = documents(file).filter_map(|reply| {
            let usage = USAGE.iter().find_map(|place| reply.pointer(place));
            Self::of_provider(usage.unwrap_or(&reply), Some(1))
        });
        replies.reduce(Add::add).or_else(|| Self::of_output(output))
    }

    /// Reads the output of Claude Code (`--output-format json` or `stream-json`) and of Codex (`exec --json`).
    fn of_output(output: &str) -> Option<Self> {
        let found = documents(output).filter_map(|event| {
            let calls = match event["type"].as_str()? {
                "result" => event["num_turns"].as_u64(),
                "turn.completed" => None,
                _ => return None,
            };
            Self::of_provider(&event["usage"], calls)
        });
        found.reduce(Add::add)
    }

    /// Reads a provider's usage of so many calls.
    fn of_provider(usage: &Value, calls: Option<u64>) -> Option<Self> {
        let number = |names: &[&str]| names.iter().find_map(|name| usage[*name].as_u64());
        let thoughts = number(&["thoughtsTokenCount"]).unwrap_or(0);
        let output = number(&["output_tokens", "completion_tokens"])
            .or_else(|| Some(number(&["candidatesTokenCount"])? + thoughts));
        let input = ProviderUsage::of(usage)?;
        Some(Self {
            calls,
            input: input.fresh,
            cached: input.cached.unwrap_or(0),
            written: input.written,
            output: output.unwrap_or(0),
        })
    }

    /// All tokens of the input.
    pub(crate) fn all_input(&self) -> u64 {
        self.input + self.cached + self.written
    }
}

/// Places of the usage in a reply of each provider.
const USAGE: [&str; 4] = [
    "/usage",
    "/message/usage",
    "/response/usage",
    "/usageMetadata",
];

impl Add for Usage {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self {
            calls: self.calls.zip(more.calls).map(|(one, other)| one + other),
            input: self.input + more.input,
            cached: self.cached + more.cached,
            written: self.written + more.written,
            output: self.output + more.output,
        }
    }
}

/// The JSON objects of a text: the whole of it, or one a line. Other lines are left out.
fn documents(text: &str) -> impl Iterator<Item = Value> {
    let whole: Option<Value> = serde_json::from_str(text).ok();
    let lines = if whole.is_some() { "" } else { text };
    let of_lines = lines
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    whole.into_iter().chain(of_lines).filter(Value::is_object)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(calls: Option<u64>, input: u64, cached: u64, written: u64, output: u64) -> Usage {
        Usage {
            calls,
            input,
            cached,
            written,
            output,
        }
    }

    #[test]
    fn each_providers_usage_is_read() {
        let anthropic = r#"{"id":"msg_1","usage":{"input_tokens":12,"cache_creation_input_tokens":300,"cache_read_input_tokens":4000,"output_tokens":50}}"#;
        let chat = r#"{"usage":{"prompt_tokens":100,"completion_tokens":7,"total_tokens":107,"prompt_tokens_details":{"cached_tokens":64}}}"#;
        let responses = r#"{"response":{"usage":{"input_tokens":90,"input_tokens_details":{"cached_tokens":10},"output_tokens":5}}}"#;
        let gemini = r#"{"usageMetadata":{"promptTokenCount":30,"cachedContentTokenCount":20,"candidatesTokenCount":4,"thoughtsTokenCount":6}}"#;
        let of = |reply| Usage::of_run(reply, "");
        assert_eq!(of(anthropic), Some(usage(Some(1), 12, 4000, 300, 50)));
        assert_eq!(of(chat), Some(usage(Some(1), 36, 64, 0, 7)));
        assert_eq!(of(responses), Some(usage(Some(1), 80, 10, 0, 5)));
        assert_eq!(of(gemini), Some(usage(Some(1), 10, 20, 0, 10)));
        let all = [anthropic, "not JSON", chat, responses, gemini].join("\n");
        assert_eq!(of(&all), Some(usage(Some(4), 138, 4094, 300, 72)));
        assert_eq!(
            of("{\"prompt_tokens\": 3, \"completion_tokens\": 1}"),
            Some(usage(Some(1), 3, 0, 0, 1))
        );
    }

    #[test]
    fn agents_outputs_are_read_where_there_is_no_file() {
        let claude = r#"{"type":"result","subtype":"success","num_turns":3,"total_cost_usd":0.4,"usage":{"input_tokens":9,"cache_creation_input_tokens":20,"cache_read_input_tokens":100,"output_tokens":8}}"#;
        assert_eq!(
            Usage::of_run("", claude),
            Some(usage(Some(3), 9, 100, 20, 8))
        );
        let codex = "{\"type\":\"turn.started\"}\n{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":50,\"cached_input_tokens\":40,\"output_tokens\":6}}\n";
        assert_eq!(Usage::of_run("", codex), Some(usage(None, 10, 40, 0, 6)));
        assert_eq!(Usage::of_run("", "All done, I used 500 tokens."), None);
        assert_eq!(Usage::of_run("", ""), None);
    }
}
