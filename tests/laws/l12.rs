//! L12: every decision is one event, and no event contains content.

use std::cell::RefCell;
use std::fmt::Debug;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Once};

use offcut::format::Plain;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use super::drive::{FaultAt, drive};
use super::generate::{Step, conversations};
use super::subject::OffcutSubject;
use super::wire::{OpenAiChat, Wire};
use super::world::{Setup, World, setups};
use super::{STORE, Violation, block_on, hold, require};

/// The fields of an event, by name.
type Fields = Vec<(&'static str, String)>;

thread_local! {
    /// The events emitted on this thread.
    static EVENTS: RefCell<Vec<Fields>> = const { RefCell::new(Vec::new()) };
}

/// Captures events, separately for each thread.
///
/// There is one subscriber for the whole process. If each test had its own, they would race for who
/// is asked first about an event.
struct Capture;

impl<S: Subscriber> Layer<S> for Capture {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        struct Read(Fields);
        impl Visit for Read {
            fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
                self.0.push((field.name(), format!("{value:?}")));
            }
        }
        let mut fields = Read(Vec::new());
        event.record(&mut fields);
        EVENTS.with_borrow_mut(|events| events.push(fields.0));
    }
}

fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(Capture))
            .unwrap();
    });
}

/// Occurs in every generated text of some length.
const CONTENT: [&str; 7] = [
    "quick brown",
    "abcdefghij",
    "内容很长",
    "\"seed\"",
    "\u{1f600}",
    "abc\\nabcd",
    "<file>",
];

fn listen<F: Wire>(
    wire: F,
    setup: &Setup,
    steps: &[Step],
    fault: Option<FaultAt>,
) -> Result<(), Violation> {
    install();
    EVENTS.take();
    let world = World::new(setup.clone());
    let decisions = Arc::clone(&world.decisions);
    block_on(drive(wire, OffcutSubject::new(world), steps, fault))?;
    let events = EVENTS.take();
    let is_decision = |fields: &&Fields| fields.iter().any(|(name, _)| *name == "outcome");
    let count = events.iter().filter(is_decision).count() as u64;
    let decided = decisions.load(Ordering::Relaxed);
    require(count == decided, "L12", || {
        format!("{decided} decisions gave {count} events")
    })?;
    for (name, value) in events.iter().flatten() {
        let leaked = CONTENT.iter().find(|content| value.contains(**content));
        require(leaked.is_none(), "L12", || {
            format!("content is in an event's {name}: {value:.300}")
        })?;
    }
    Ok(())
}

#[test]
fn l12_every_decision_is_one_event_without_content() {
    let cases = || (setups(STORE), conversations());
    hold(8, cases, |(setup, steps)| {
        listen(Plain, &setup, &steps, None)
    });
    hold(8, cases, |(setup, steps)| {
        listen(OpenAiChat, &setup, &steps, None)
    });
}

#[test]
fn l12_failures_are_reported_without_content() {
    let cases = || (setups(STORE), conversations(), 0_usize..14, 1_u64..4);
    hold(8, cases, |(setup, steps, step, nth)| {
        listen(
            OpenAiChat,
            &setup,
            &steps,
            Some(FaultAt {
                step,
                nth,
                is_done: false,
            }),
        )
    });
}
