//! Input tokens that a provider has counted, as a log has recorded them.

use std::collections::HashMap;
use std::ops::AddAssign;

use serde::Serialize;
use serde_json::Value;

use super::fields::is_true;
use crate::usage::ProviderUsage;

/// Input tokens of the calls in a log, by its provider's count: with instructions and tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Recorded {
    /// Calls whose usage was recorded.
    pub(crate) calls: u64,
    /// Tokens read from the cache.
    pub(crate) cached: u64,
    /// All others; those written to the cache are among them.
    pub(crate) fresh: u64,
}

/// Sums the usage in a log: that of each message of Claude Code and pi, of each turn of Codex, and of
/// each answer in a log of requests. `None` if none was recorded. Subagents are left out.
pub(super) fn of(documents: &[Value]) -> Option<Recorded> {
    // A message may have several lines, of which the last has its usage, and a turn several events.
    let mut by_message: HashMap<String, Recorded> = HashMap::new();
    for (index, document) in documents.iter().enumerate() {
        if is_true(document, "isSidechain") {
            continue;
        }
        let usage = USAGE.iter().find_map(|place| document.pointer(place));
        let Some(recorded) = usage.and_then(of_call) else {
            continue;
        };
        let id = document.pointer("/message/id");
        // An event with the same sum over the session tells the same turn again.
        let id = id.or_else(|| document.pointer("/payload/info/total_token_usage"));
        let key = id.map_or_else(|| index.to_string(), Value::to_string);
        by_message.insert(key, recorded);
    }
    let mut sum = Recorded::default();
    by_message.values().for_each(|one| sum += *one);
    (!by_message.is_empty()).then_some(sum)
}

impl AddAssign for Recorded {
    fn add_assign(&mut self, other: Self) {
        self.calls += other.calls;
        self.cached += other.cached;
        self.fresh += other.fresh;
    }
}

/// Places of a call's usage in a document of a log.
const USAGE: [&str; 6] = [
    "/payload/info/last_token_usage",
    "/message/usage",
    "/response/usage",
    "/response/body/usage",
    "/response/usageMetadata",
    "/usage",
];

/// Reads the usage of one call, as any provider spells it. `None` if it has no input.
fn of_call(usage: &Value) -> Option<Recorded> {
    let ProviderUsage {
        fresh,
        cached,
        written,
    } = ProviderUsage::of(usage)?;
    let (cached, fresh) = (cached.unwrap_or(0), fresh + written);
    (cached + fresh > 0).then_some(Recorded {
        calls: 1,
        cached,
        fresh,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn recorded(calls: u64, cached: u64, fresh: u64) -> Option<Recorded> {
        Some(Recorded {
            calls,
            cached,
            fresh,
        })
    }

    #[test]
    fn lines_of_one_message_are_one_call() {
        let line = |id: &str, output: u64| {
            let usage = json!({"input_tokens": 3, "cache_creation_input_tokens": 40, "cache_read_input_tokens": 500, "output_tokens": output});
            json!({"message": {"role": "assistant", "id": id, "usage": usage}})
        };
        let mut apart = line("c", 1);
        apart["isSidechain"] = json!(true);
        let log = [line("a", 1), line("a", 9), line("b", 2), apart];
        assert_eq!(of(&log), recorded(2, 1_000, 86));
    }

    #[test]
    fn tokens_from_the_cache_are_among_all_of_other_providers() {
        let codex = |sum: u64| {
            json!({"type": "event_msg", "payload": {"type": "token_count", "info": {
                "total_token_usage": {"input_tokens": sum},
                "last_token_usage": {"input_tokens": 1_000, "cached_input_tokens": 900, "output_tokens": 7},
            }}})
        };
        let log = [codex(1_000), codex(2_000), codex(2_000)];
        assert_eq!(of(&log), recorded(2, 1_800, 200));
        let chat = json!({"request": {}, "response": {"usage": {"prompt_tokens": 70, "prompt_tokens_details": {"cached_tokens": 50}}}});
        assert_eq!(of(&[chat]), recorded(1, 50, 20));
        assert_eq!(
            of(&[json!({"usage": {"output_tokens": 7}}), json!({})]),
            None
        );
        let nothing = json!({"message": {"usage": {"input_tokens": 0, "output_tokens": 0}}});
        assert_eq!(of(&[nothing]), None);
    }
}
