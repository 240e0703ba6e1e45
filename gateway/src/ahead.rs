//! Prepares the next pass of a conversation while its provider answers.

use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use offcut::format::{Messages, RequestBody, Spelled, WireFormat};
use offcut::{Report, ToolReduction};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// A conversation that may be cleared soon.
pub(crate) struct NextPass {
    session: ToolReduction,
    format: WireFormat,
}

impl NextPass {
    /// The next pass of a conversation, if it has reached half of the threshold.
    pub(crate) fn near(
        report: &Report,
        session: &ToolReduction,
        format: WireFormat,
    ) -> Option<Self> {
        let tokens = report.tokens.as_ref()?;
        (tokens.counted >= tokens.threshold / 2).then(|| Self {
            session: session.clone(),
            format,
        })
    }
}

/// Prepares passes, as many at once as there are processors.
pub(crate) struct Ahead {
    permits: Arc<Semaphore>,
    patience: Duration,
}

impl Ahead {
    /// Prepares passes, each for no longer than `patience`.
    pub(crate) fn new(patience: Duration) -> Self {
        let processors = available_parallelism().map_or(1, NonZero::get);
        Self {
            permits: Arc::new(Semaphore::new(processors)),
            patience,
        }
    }

    /// Prepares a pass over the messages that were sent, and returns at once. If all permits are
    /// taken, it does nothing: the pass does the work itself.
    pub(crate) fn prepare(&self, next: NextPass, mut sent: RequestBody) {
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
            return;
        };
        let patience = self.patience;
        tokio::spawn(async move {
            let NextPass { session, format } = next;
            let format = Spelled(format);
            let messages = Messages::new(&format, sent.messages_mut());
            // The pass makes the rest.
            _ = timeout(patience, session.prepare(&messages)).await;
            drop(permit);
        });
    }
}

#[cfg(test)]
mod tests {
    use offcut::TokenCounter;
    use offcut::backend::Memory;
    use offcut_testkit::Faulty;
    use serde_json::json;

    use super::*;

    fn body(rounds: usize) -> RequestBody {
        let round = |n: usize| {
            let function = json!({"name": "grep", "arguments": "{}"});
            let call = json!({"id": format!("call_{n}"), "type": "function", "function": function});
            let text = format!("{n}: a line that was found\n").repeat(100);
            [
                json!({"role": "assistant", "content": null, "tool_calls": [call]}),
                json!({"role": "tool", "tool_call_id": format!("call_{n}"), "content": text}),
            ]
        };
        let messages: Vec<_> = (0..rounds).flat_map(round).collect();
        RequestBody::parse(json!({"model": "m", "messages": messages}).to_string()).unwrap()
    }

    /// Makes the pass that the tenth round triggers, which is prepared unless all processors are
    /// busy. Returns how often it reads, and the body.
    async fn reduced(is_busy: bool) -> (u64, String) {
        let store = Arc::new(Faulty::new(Memory::named("ahead").unwrap()));
        let builder = ToolReduction::builder()
            .backend(Arc::clone(&store))
            .token_counter(TokenCounter::Estimate)
            .max_length_for_trunc(1_000)
            .preview_length(500)
            .stub_length(100)
            .max_tokens_for_clear(1_500);
        let session = builder.build().unwrap().session("chat");
        let (mut next, mut sent) = (None, body(0));
        for rounds in 1..10 {
            sent = body(rounds);
            let report = session.reduce_body(&mut sent).await.unwrap();
            next = NextPass::near(&report, &session, WireFormat::OpenAiChat);
            assert_eq!(next.is_some(), rounds >= 5, "{rounds}");
        }
        let ahead = Ahead::new(Duration::from_secs(60));
        let all = u32::try_from(ahead.permits.available_permits()).unwrap();
        let busy = is_busy.then(|| ahead.permits.try_acquire_many(all).unwrap());
        ahead.prepare(next.unwrap(), sent);
        drop(busy);
        // All are free once it is prepared.
        _ = ahead.permits.acquire_many(all).await.unwrap();
        let before = store.reads();
        let mut last = body(10);
        let report = session.reduce_body(&mut last).await.unwrap();
        assert!(report.is_change());
        (store.reads() - before, last.to_string())
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_prepared_pass_reads_less_and_does_the_same() {
        let [prepared, alone] = [reduced(false).await, reduced(true).await];
        assert!(prepared.0 + 8 < alone.0, "{} and {}", prepared.0, alone.0);
        assert_eq!(prepared.1, alone.1);
    }
}
