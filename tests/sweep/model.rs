//! Agents, sweeps, crashes and time in any order, compared with a naive model: nothing that a
//! transcript names ever becomes unreadable or reads as other bytes.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::{FutureExt, stream};
use offcut::backend::{Backend, Location, Memory};
use offcut::sweep::{Live, SweepError, SweepPolicy, SweepReport};
use offcut::{Chunk, ToolOutput};

use super::clocked::{Calls, Clock, Clocked};
use super::common::call;
use super::{DAY, HOUR, key, quick};

/// Few sessions, ids and contents, so that they clash often.
const SESSIONS: [&str; 2] = ["s1", "s2"];
const IDS: [&str; 2] = ["call_0", "call_1"];
const CONTENTS: usize = 3;
/// In-flight work is never older than this: nothing is promised to an agent that stalls for longer
/// than the grace.
const A_WHILE: Duration = Duration::from_secs(20 * 60);

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % n
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

fn content(number: usize) -> String {
    // All of the same length, so that lengths tell nothing.
    format!("content {number} of some length\n").repeat(100)
}

/// Outcome of a piece of work.
enum Came {
    /// An agent stored a result and is about to write its hint.
    Stored {
        session: &'static str,
        location: Location,
        content: usize,
    },
    /// An agent read content that a transcript names.
    Read {
        location: Location,
        should: usize,
        is: Result<bytes::Bytes, String>,
    },
    /// A sweep ended, or was refused.
    Swept(Result<(), SweepError>),
    /// A sweep that could not write its lease ended.
    Removed(SweepReport),
}

type Work = Pin<Box<dyn Future<Output = Came>>>;

struct World {
    store: Clocked<Memory>,
    dice: Dice,
    /// Live transcripts, and the number of times each of them names a location.
    named: BTreeMap<(Location, &'static str), usize>,
    /// Hints whose content is stored but that are not written yet.
    unwritten: Vec<(Location, &'static str, usize)>,
    work: Vec<Work>,
    /// Index of the sweep in `work`.
    sweep: Option<usize>,
    done: [usize; 5],
}

impl World {
    fn new(seed: u64) -> Self {
        let store = Clocked::new(Memory::named("t").unwrap(), &Clock::new());
        let store = store.with_calls(Calls {
            give_way: true,
            ..Calls::default()
        });
        let dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        Self {
            store,
            dice,
            named: BTreeMap::new(),
            unwritten: Vec::new(),
            work: Vec::new(),
            sweep: None,
            done: [0; 5],
        }
    }

    fn begin_storing(&mut self) {
        let (session, id, number) = (
            self.dice.of(&SESSIONS),
            self.dice.of(&IDS),
            self.dice.below(CONTENTS),
        );
        let (store, streams) = (self.store.clone(), self.dice.below(2) == 0);
        self.work.push(Box::pin(async move {
            let text = content(number);
            let output = match streams {
                false => ToolOutput::from(text),
                true => ToolOutput::stream(stream::iter(
                    text.as_bytes()
                        .chunks(1_000)
                        .map(|chunk| Ok(Chunk::Bytes(chunk.to_vec().into())))
                        .collect::<Vec<_>>(),
                )),
            };
            let shown = quick(store)
                .session(session)
                .truncate(&call(id, "grep"), output)
                .await
                .unwrap();
            let decision = &shown.report.decisions[0];
            let location = decision
                .locations
                .first()
                .unwrap_or_else(|| panic!("{decision:?}"))
                .clone();
            Came::Stored {
                session,
                location,
                content: number,
            }
        }));
    }

    fn begin_reading(&mut self) {
        let named: Vec<_> = self
            .named
            .iter()
            .map(|((location, session), content)| (location.clone(), *session, *content))
            .collect();
        if named.is_empty() {
            return;
        }
        let (location, session, should) = named[self.dice.below(named.len())].clone();
        let store = self.store.clone();
        self.work.push(Box::pin(async move {
            let reduction = quick(store).session(session);
            let is = reduction
                .read_original(&location)
                .await
                .unwrap()
                .map_err(|error| error.to_string());
            Came::Read {
                location,
                should,
                is,
            }
        }));
    }

    fn begin_sweeping(&mut self) {
        let now = self.store.clock.now();
        let live = self
            .named
            .keys()
            .fold(Live::new(), |live, (location, _)| live.location(location));
        let store = self.store.clone();
        let policy = match self.dice.below(3) {
            0 => SweepPolicy::new().max_age(2 * DAY),
            1 => SweepPolicy::new().quota_bytes(4_000),
            _ => SweepPolicy::new().unreferenced(),
        };
        self.sweep = Some(self.work.len());
        self.work.push(Box::pin(async move {
            let swept = offcut::sweep::sweep(&quick(store), &live, &policy.apply(), now).await;
            Came::Swept(swept.map(|report| assert_eq!(report.failed, [])))
        }));
    }

    /// Begins a sweep that can't write its lease, though it could store anything else. Others may
    /// be running, with or without a lease.
    fn begin_removing(&mut self) {
        let now = self.store.clock.now();
        let live = self
            .named
            .keys()
            .fold(Live::new(), |live, (location, _)| live.location(location));
        let store = self.store.with_calls(Calls {
            give_way: true,
            without_lease: true,
            ..Calls::default()
        });
        self.work.push(Box::pin(async move {
            let policy = SweepPolicy::new().unreferenced().apply();
            let report = offcut::sweep::sweep(&quick(store), &live, &policy, now)
                .await
                .unwrap();
            assert!(
                report.without_lease && report.failed.len() == 1,
                "{report:?}"
            );
            Came::Removed(report)
        }));
    }

    /// Takes one step of some of the work.
    fn step(&mut self, at: usize) {
        let came = match self.work[at]
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Pending => return,
            Poll::Ready(came) => came,
        };
        self.forget_work(at);
        match came {
            Came::Stored {
                session,
                location,
                content,
            } => {
                self.done[0] += 1;
                self.unwritten.push((location, session, content));
            }
            Came::Read {
                location,
                should,
                is,
            } => {
                self.done[1] += 1;
                // The transcript may have gone while its content was read.
                if self.named.keys().any(|(named, _)| *named == location) {
                    let is = is.unwrap_or_else(|error| panic!("{location} is dangling: {error}"));
                    assert!(
                        is == content(should),
                        "{location} is other bytes: {}",
                        String::from_utf8_lossy(&is[..20])
                    );
                }
            }
            Came::Removed(report) => self.done[4] += usize::try_from(report.removed.count).unwrap(),
            Came::Swept(Ok(())) => self.done[2] += 1,
            Came::Swept(Err(SweepError::Held { .. })) => {}
            Came::Swept(Err(error)) => panic!("{error}"),
        }
    }

    fn forget_work(&mut self, at: usize) {
        drop(self.work.remove(at));
        self.sweep = match self.sweep {
            Some(sweep) if sweep == at => None,
            Some(sweep) if sweep > at => Some(sweep - 1),
            sweep => sweep,
        };
    }

    fn write_hints(&mut self) {
        for (location, session, content) in self.unwritten.drain(..) {
            let before = self.named.insert((location.clone(), session), content);
            assert!(
                before.is_none_or(|before| before == content),
                "{location} was given to two contents"
            );
        }
    }

    fn forget_some(&mut self) {
        let keep = self.dice.below(3);
        let mut dice = Dice(self.dice.0);
        self.named.retain(|_, _| dice.below(3) < keep);
        self.dice.below(2);
    }

    /// Finishes all work; then a long time passes.
    fn rest(&mut self) {
        while !self.work.is_empty() {
            let at = self.dice.below(self.work.len());
            self.step(at);
        }
        self.write_hints();
        let time = self.dice.of(&[HOUR, 20 * HOUR, DAY, 3 * DAY]);
        self.store.clock.turn(time);
    }

    fn crash(&mut self) {
        if let Some(at) = self.sweep {
            self.done[3] += 1;
            self.forget_work(at);
            if self.dice.below(2) == 0 {
                // A person who knows that the sweep is dead removes its lease.
                for number in 1..9 {
                    let lease = key(&format!("swept/lease-{number}"));
                    self.store
                        .inner
                        .remove(&lease)
                        .now_or_never()
                        .unwrap()
                        .unwrap();
                }
            }
        }
    }

    fn live_one_moment(&mut self) {
        match self.dice.below(40) {
            0..=2 if self.work.len() < 6 => self.begin_storing(),
            3..=4 if self.work.len() < 6 => self.begin_reading(),
            5..=6 if self.sweep.is_none() => self.begin_sweeping(),
            12 if self.work.len() < 6 => self.begin_removing(),
            7 => self.write_hints(),
            8 if self.dice.below(4) == 0 => self.forget_some(),
            9 if self.dice.below(3) == 0 => self.crash(),
            10 if self.dice.below(3) == 0 => self.rest(),
            11 if self.dice.below(40) == 0 => self.store.clock.turn(A_WHILE),
            _ if !self.work.is_empty() => {
                let at = self.dice.below(self.work.len());
                self.step(at);
            }
            _ => {}
        }
    }

    /// Checks that everything named reads as what was stored.
    fn check(&mut self) {
        self.rest();
        let named: Vec<_> = self
            .named
            .iter()
            .map(|((location, session), content)| (location.clone(), *session, *content))
            .collect();
        for (location, session, should) in named {
            let reduction = quick(self.store.inner.clone()).session(session);
            let read = reduction.read_original(&location).now_or_never().unwrap();
            let is = read
                .unwrap()
                .unwrap_or_else(|error| panic!("{location} is dangling: {error}"));
            assert!(is == content(should), "{location} is other bytes");
        }
    }
}

#[test]
fn named_content_is_never_lost() {
    let cases: u64 = std::env::var("OFFCUT_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(60);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let _inside = runtime.enter();
    let mut done = [0; 5];
    for seed in 1..=cases {
        let run = std::panic::catch_unwind(|| {
            let mut world = World::new(seed);
            for moment in 0..2_500 {
                world.live_one_moment();
                if moment % 500 == 499 {
                    world.check();
                }
            }
            world.done
        });
        let run = run.unwrap_or_else(|panic| {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic)
        });
        for (sum, count) in done.iter_mut().zip(run) {
            *sum += count;
        }
    }
    eprintln!("stored, read, swept, crashed, removed without a lease: {done:?}");
    assert!(
        done.iter().all(|count| *count as u64 > cases),
        "too little happened: {done:?}"
    );
}
