//! A month of sessions under a quota: they start, work, rest and are forgotten, and the store is
//! swept every day.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use offcut::backend::{Backend, Location};
use offcut::format::{Format, Message, Messages, PartRef, Piece, Plain};
use offcut::report::Decision;
use offcut::sweep::{Live, SweepPolicy};
use offcut::{Chunk, ToolOutput, ToolReduction};

use super::clocked::{Clock, Clocked};
use super::common::call;
use super::{DAY, HOUR, quick};

const DAYS: usize = 30;
const QUOTA: u64 = 100_000;
const IDLE: Duration = Duration::from_secs(4 * 24 * 60 * 60);

/// A conversation with its transcript, as its loop would write it, and the original behind each of
/// its hints.
struct Session {
    reduction: ToolReduction,
    messages: Vec<Message>,
    originals: BTreeMap<Location, Bytes>,
    begins: usize,
    /// Number of days that it works, and number of days after which its transcript is deleted.
    works: usize,
    kept: usize,
}

impl Session {
    /// Works for a day: results are truncated, some of them while they stream, and a pass runs
    /// before each call of the model.
    async fn work(&mut self, number: usize, day: usize) {
        for turn in 0..3 {
            // Ids repeat from day to day, as they do with providers that count from 0.
            let call = call(&format!("call_{turn}"), "grep");
            let line = format!("session {} day {day} turn {turn} of it all\n", number % 7);
            let content = line.repeat(40 + 90 * ((number + day + turn) % 3));
            let output = match (number + turn) % 2 {
                0 => ToolOutput::from(content.clone()),
                _ => ToolOutput::stream(futures_util::stream::iter([Ok(Chunk::Bytes(
                    content.clone().into(),
                ))])),
            };
            let shown = self.reduction.truncate(&call, output).await.unwrap();
            self.took(&shown.report.decisions, Some(content.as_bytes()))
                .await;
            self.messages.push(Message::calls(vec![call.clone()]));
            self.messages
                .push(Message::tool(&call, shown.parts, shown.is_error));
            let report = self
                .reduction
                .clear(Plain, &mut self.messages)
                .await
                .unwrap();
            self.took(&report.decisions, None).await;
        }
    }

    /// Records the content of new hints. The content of known ones must not change.
    async fn took(&mut self, decisions: &[Decision], content: Option<&[u8]>) {
        for location in decisions.iter().flat_map(|decision| &decision.locations) {
            let is = self
                .reduction
                .read_original(location)
                .await
                .unwrap()
                .unwrap();
            assert!(content.is_none_or(|content| content == is), "{location}");
            assert_eq!(
                self.originals
                    .entry(location.clone())
                    .or_insert_with(|| is.clone()),
                &is,
                "{location}"
            );
        }
    }

    fn is_kept(&self, day: usize) -> bool {
        (self.begins..self.begins + self.works + self.kept).contains(&day)
    }

    fn works(&self, day: usize) -> bool {
        (self.begins..self.begins + self.works).contains(&day)
    }
}

/// Totals of the month.
#[derive(Debug, Default)]
pub(crate) struct Month {
    pub(crate) hints: usize,
    pub(crate) checked: usize,
    pub(crate) removed: u64,
    pub(crate) stored_bytes: u64,
    pub(crate) most_bytes: u64,
}

/// Runs a month with `sessions` sessions, under a quota that is a small part of what they store.
pub(crate) async fn live_through<B: Backend + Clone>(inner: B, sessions: usize) -> Month {
    let store = Clocked::new(inner, &Clock::new());
    let policy = SweepPolicy::new()
        .idle(IDLE)
        .quota_bytes(QUOTA * sessions as u64 / 200)
        .apply();
    let mut month = Month::default();
    let mut all: Vec<_> = (0..sessions)
        .map(|number| Session {
            reduction: quick(store.clone()).session(&format!("chat-{number}")),
            messages: vec![Message::user("Where is the leak?")],
            originals: BTreeMap::new(),
            begins: number * DAYS / sessions,
            works: 1 + number % 4,
            kept: number % 9,
        })
        .collect();
    for day in 0..DAYS {
        for (number, session) in all
            .iter_mut()
            .enumerate()
            .filter(|(_, session)| session.works(day))
        {
            session.work(number, day).await;
        }
        store.clock.turn(8 * HOUR);
        // The live names were gathered before the sweep, and the agents kept running.
        let now = store.clock.now();
        let live = all
            .iter_mut()
            .filter(|session| session.is_kept(day))
            .fold(Live::new(), |live, session| {
                live.messages(&Messages::new(Plain, &mut session.messages))
            });
        store.clock.turn(HOUR);
        for (number, session) in all
            .iter_mut()
            .enumerate()
            .filter(|(_, session)| session.works(day))
        {
            session.work(number, day).await;
        }
        let report = offcut::sweep::sweep(&quick(store.clone()), &live, &policy, now)
            .await
            .unwrap();
        assert_eq!(report.failed, []);
        assert_eq!(
            store.bytes().await,
            report.live.bytes + report.kept.bytes,
            "{report:?}"
        );
        month.removed += report.removed.count;
        month.stored_bytes += report.removed.bytes;
        month.most_bytes = month.most_bytes.max(store.bytes().await);
        for session in all.iter().filter(|session| session.is_kept(day)) {
            month.checked += dangling(session).await;
        }
        store.clock.turn(DAY - 9 * HOUR);
    }
    month.stored_bytes += store.bytes().await;
    month.hints = all.iter().map(|session| session.originals.len()).sum();
    month
}

/// Reads everything that the transcript of `session` names.
async fn dangling(session: &Session) -> usize {
    let mut text = String::new();
    for message in &session.messages {
        Plain.visit(message, &mut |piece| {
            if let Piece::Content(PartRef::Text(shown)) = piece {
                text.push_str(shown);
            }
        });
    }
    let named = session
        .originals
        .iter()
        .filter(|(location, _)| text.contains(&format!("\"{location}\"")));
    let mut count = 0;
    for (location, original) in named {
        let is = session.reduction.read_original(location).await.unwrap();
        assert_eq!(
            is.unwrap_or_else(|error| panic!("{location} is dangling: {error}")),
            original,
            "{location}"
        );
        count += 1;
    }
    count
}
