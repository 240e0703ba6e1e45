//! The input tokens that a provider has counted.

use std::ops::AddAssign;

use serde_json::Value;

/// Input tokens as a provider counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProviderUsage {
    /// Neither read from the cache nor written to it.
    pub(crate) fresh: u64,
    /// Read from the cache; `None` if the provider does not say.
    pub(crate) cached: Option<u64>,
    /// Written to the cache, where the provider counts that.
    pub(crate) written: u64,
}

impl AddAssign for ProviderUsage {
    fn add_assign(&mut self, more: Self) {
        self.fresh += more.fresh;
        self.cached = match (self.cached, more.cached) {
            (Some(cached), Some(more)) => Some(cached + more),
            (one, other) => one.or(other),
        };
        self.written += more.written;
    }
}

impl ProviderUsage {
    /// Reads the usage of a reply, of one event, or of a call in a log; `None` if it has no input tokens.
    pub(crate) fn of(usage: &Value) -> Option<Self> {
        let number = |names: &[&str]| names.iter().find_map(|name| usage.pointer(name)?.as_u64());
        // Anthropic counts cached tokens beside the others; all others count them among all.
        let beside = number(&["/cache_read_input_tokens", "/cacheRead"]);
        let written = number(&["/cache_creation_input_tokens", "/cacheWrite"]);
        if beside.is_some() || written.is_some() {
            return Some(Self {
                fresh: number(&["/input_tokens", "/input"])?,
                cached: Some(beside.unwrap_or(0)),
                written: written.unwrap_or(0),
            });
        }
        let all = number(&["/prompt_tokens", "/input_tokens", "/promptTokenCount"])?;
        let cached = number(&[
            "/prompt_tokens_details/cached_tokens",
            "/input_tokens_details/cached_tokens",
            "/cached_input_tokens",
            "/cachedContentTokenCount",
        ]);
        let cached = cached.map(|cached| cached.min(all));
        Some(Self {
            fresh: all - cached.unwrap_or(0),
            cached,
            written: 0,
        })
    }
}
