//! Faults over the wire: an S3 server in this process, the real protocol, and failing requests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use offcut::OnOffloadError;

use self::server::{Fault, Server};
use crate::conversation::{Conversation, Script, reduction, verify_all};
use crate::originals::{Numbers, Originals};
use crate::result::Result;
use crate::tally::Tally;
use crate::{log, store};

#[allow(dead_code, reason = "the tests of the store use the rest")]
#[allow(clippy::unwrap_used, reason = "as in those tests")]
#[path = "../../backends/object-store/tests/server/mod.rs"]
mod server;

const STEPS: u64 = 50;
/// Upper bound on the requests for one result.
const REQUESTS: u64 = 60;
/// Number of conversations that run at the same time.
const AT_ONCE: usize = 16;
/// Long, because the store has its own timeouts.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server and the names of its stores.
pub(crate) struct Wire(Server);

impl Wire {
    pub(crate) async fn start() -> Self {
        Self(Server::start().await)
    }

    /// The URL of an empty store. It allows few and short attempts, so that faults become visible.
    pub(crate) fn url(&self, prefix: &str) -> String {
        self.0.url(prefix, "&timeout=1s&retries=1")
    }

    /// Sends `results` results to a server that mishandles `rate` of the requests.
    pub(crate) async fn run(&self, results: u64, rate: f64, seed: u64) -> Result<Tally> {
        let (server, originals) = (&self.0, Originals { seed });
        let store = store::open(&self.url(&format!("faults-{}", (rate * 1_000.0) as u64)))?;
        let whole = reduction(store.clone(), OnOffloadError::KeepOriginal)?;
        let mut numbers = Numbers::new(seed);
        for nth in 1..=results * REQUESTS {
            if numbers.chance(rate) {
                server.fault_on_any(nth as usize, fault(&mut numbers));
            }
        }
        server.take_met();
        let (warned, failures) = (log::failures(), AtomicU64::new(0));
        let conversations = (0..results.div_ceil(STEPS)).map(|n| {
            let session = whole.session(&format!("chat-{n}"));
            let script = Script::new(originals, n * STEPS, STEPS.min(results - n * STEPS));
            let (mut conversation, failures) = (Conversation::new(script, Vec::new()), &failures);
            async move {
                while !conversation.is_over() {
                    conversation.go_on(&session, PATIENCE, |_, _| ()).await?;
                }
                failures.fetch_add(conversation.failures, Ordering::Relaxed);
                Result::Ok((session, conversation))
            }
        });
        let conversations: Vec<_> = stream::iter(conversations)
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        server.heal();
        let mut all = Tally {
            faults: server.take_met() as u64,
            ..Tally::default()
        };
        let (warned, failures) = (log::failures() - warned, failures.into_inner());
        if warned != failures {
            all.hidden += 1;
            all.problem(format!(
                "{warned} warnings in the log for {failures} failures in reports"
            ));
        }
        for conversation in conversations {
            let (session, mut conversation) = conversation?;
            conversation.verify(&session).await;
            all += conversation.tally;
        }
        verify_all(&store, originals, &mut all).await?;
        self.overwritten(&mut all);
        Ok(all)
    }

    /// Adds the overwritten keys that the server itself has noticed.
    pub(crate) fn overwritten(&self, tally: &mut Tally) {
        for key in self.0.buckets().overwrites() {
            tally.overwritten += 1;
            tally.problem(format!("{key} was overwritten"));
        }
    }
}

/// Draws a fault for a request.
fn fault(numbers: &mut Numbers) -> Fault {
    match numbers.below(20) {
        0..3 => Fault::Refuse(500),
        3..6 => Fault::Refuse(503),
        6..9 => Fault::ApplyThenRefuse(503),
        9..11 => Fault::ApplyThenRefuse(500),
        11..13 => Fault::Refuse(403),
        13 => Fault::Hang,
        14 => Fault::ApplyThenHang,
        15 => Fault::Disconnect,
        16..18 => Fault::ApplyThenDisconnect,
        _ => Fault::CutBody,
    }
}
