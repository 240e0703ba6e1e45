//! Input tokens, as a provider with a cache would bill them.

use std::collections::HashMap;
use std::sync::Arc;

use offcut::TokenCounter;
use offcut::tokens::CountTokens;
use serde_json::Value;

/// Sums over the model calls of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bill {
    /// Model calls.
    pub calls: u64,
    /// Tokens sent.
    pub tokens: u64,
    /// Tokens sent after the part that a request shares with the one before it.
    pub fresh: u64,
    /// Tokens of the largest request.
    pub peak: u64,
}

impl Bill {
    /// The bill in fresh tokens: cached ones count a tenth.
    #[must_use]
    pub fn weighed(&self) -> f64 {
        self.fresh as f64 + 0.1 * (self.tokens - self.fresh) as f64
    }
}

/// Counts requests and compares each with the one before it.
pub(crate) struct BillMeter {
    counter: Arc<dyn CountTokens>,
    /// Tokens of messages that were counted before.
    known: HashMap<String, u64>,
    previous: Vec<String>,
    pub(crate) bill: Bill,
}

impl BillMeter {
    pub(crate) fn new() -> Result<Self, offcut::BuildError> {
        Ok(Self {
            counter: TokenCounter::O200kBase.build()?,
            known: HashMap::new(),
            previous: Vec::new(),
            bill: Bill::default(),
        })
    }

    /// Counts a request. Returns false, and bills nothing, if it has more than `limit` tokens.
    pub(crate) fn request(&mut self, tools: &[Value], messages: &[Value], limit: u64) -> bool {
        let parts: Vec<String> = tools.iter().chain(messages).map(Value::to_string).collect();
        let common = parts
            .iter()
            .zip(&self.previous)
            .take_while(|(one, other)| one == other)
            .count();
        let count = |part: &String| {
            let known = self.known.entry(part.clone());
            *known.or_insert_with(|| self.counter.count(part))
        };
        let counts: Vec<u64> = parts.iter().map(count).collect();
        let (tokens, fresh): (u64, u64) = (counts.iter().sum(), counts[common..].iter().sum());
        if tokens > limit {
            return false;
        }
        self.bill.calls += 1;
        self.bill.tokens += tokens;
        self.bill.fresh += fresh;
        self.bill.peak = self.bill.peak.max(tokens);
        self.previous = parts;
        true
    }
}
