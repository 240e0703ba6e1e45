//! Agents, sweeps, crashes and time in any order, one call of the store at a time, compared with a
//! naive model: whatever is promised to a hint holds at every moment.
//!
//! A hint can be followed for a day after it was made or followed, and for as long as a transcript
//! names it, if that was written within that day.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use futures_util::{FutureExt, stream};
use offcut::backend::{Backend, Location, Memory};
use offcut::format::{Message, Plain};
use offcut::hint::Hint;
use offcut::sweep::{Live, SweepPolicy, SweepReport};
use offcut::{Chunk, Part, ToolOutput, ToolReduction};

use super::clocked::{Broken, Calls, Clock, Clocked};
use super::common::{call, content as parts_of, round};
use super::{DAY, HOUR, quick};

/// Few sessions, ids and contents, so that they clash often.
const SESSIONS: [&str; 2] = ["s1", "s2"];
const IDS: [&str; 2] = ["call_0", "call_1"];
const CONTENTS: usize = 3;
/// Sessions of loops that hand in their originals: no transcript names what they have stored.
const WHOLE: [&str; 2] = ["whole-1", "whole-2"];
/// In-flight work of an agent is never older than this: nothing is promised to an agent that stalls.
const A_WHILE: Duration = Duration::from_secs(20 * 60);
/// Time by which each hint is in its transcript.
const LATEST: Duration = Duration::from_secs(23 * 60 * 60);

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

/// A hint and the promise to it.
#[derive(Clone)]
struct Promise {
    session: &'static str,
    location: Location,
    content: usize,
    made_at: SystemTime,
    until: SystemTime,
    /// True while a transcript names it.
    is_named: bool,
    /// True if its transcript was deleted.
    is_forgotten: bool,
}

/// Outcome of a piece of work.
enum Came {
    /// An agent has made hints: to a result that it has stored, or to those of a whole history.
    Hints(&'static str, Vec<(Location, usize)>),
    /// An agent has followed a hint.
    Read(Location),
    /// A sweep ended.
    Swept(SweepReport),
}

struct Work {
    future: Pin<Box<dyn Future<Output = Came>>>,
    is_sweep: bool,
    begun: SystemTime,
    /// True if a sweep was running meanwhile. One that has listed before knows nothing of it.
    met_sweep: bool,
}

/// A loop that hands in its whole history.
struct WholeHistory {
    session: &'static str,
    rounds: usize,
    /// The process that it lives in.
    process: ToolReduction,
}

#[derive(Clone, Copy, Debug, Default)]
struct Done {
    stored: usize,
    read: usize,
    reduced: usize,
    swept: usize,
    crashed: usize,
    removed: u64,
}

struct World {
    store: Clocked<Memory>,
    dice: Dice,
    promises: Vec<Promise>,
    histories: Vec<WholeHistory>,
    work: Vec<Work>,
    done: Done,
    /// The first broken promise.
    lost: Option<String>,
}

impl World {
    fn new(seed: u64, broken: Broken) -> Self {
        let mut store = Clocked::new(Memory::named("t").unwrap(), &Clock::new());
        store.broken = broken;
        let store = store.with_calls(Calls {
            give_way: true,
            ..Calls::default()
        });
        let histories = WHOLE.map(|session| WholeHistory {
            session,
            rounds: 1,
            process: quick(store.clone()).session(session),
        });
        Self {
            store,
            dice: Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            promises: Vec::new(),
            histories: histories.into(),
            work: Vec::new(),
            done: Done::default(),
            lost: None,
        }
    }

    fn now(&self) -> SystemTime {
        self.store.clock.now()
    }

    fn begin(&mut self, is_sweep: bool, future: impl Future<Output = Came> + 'static) {
        if is_sweep {
            self.work.iter_mut().for_each(|work| work.met_sweep = true);
        }
        self.work.push(Work {
            future: Box::pin(future),
            is_sweep,
            begun: self.now(),
            met_sweep: self.work.iter().any(|work| work.is_sweep),
        });
    }

    fn begin_storing(&mut self) {
        let (session, id, number) = (
            self.dice.of(&SESSIONS),
            self.dice.of(&IDS),
            self.dice.below(CONTENTS),
        );
        let (store, streams) = (self.store.clone(), self.dice.below(2) == 0);
        self.begin(false, async move {
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
            let reduction = quick(store).session(session);
            let shown = reduction.truncate(&call(id, "grep"), output).await.unwrap();
            let decision = &shown.report.decisions[0];
            assert_eq!(decision.error, None);
            Came::Hints(session, vec![(decision.locations[0].clone(), number)])
        });
    }

    /// A loop hands in its history, in its own process or in a new one.
    fn begin_reducing(&mut self) {
        let at = self.dice.below(self.histories.len());
        let [is_new, goes_on, is_over] = [3, 3, 12].map(|sides| self.dice.below(sides) == 0);
        let history = &mut self.histories[at];
        let session = history.session;
        if is_new {
            history.process = quick(self.store.clone()).session(session);
        }
        if goes_on {
            history.rounds += 1;
        }
        if is_over || history.rounds > 5 {
            history.rounds = 1;
        }
        let (process, rounds) = (history.process.clone(), history.rounds);
        self.begin(false, async move {
            let numbers: Vec<_> = (0..rounds).map(|round| round % CONTENTS).collect();
            let mut messages: Vec<Message> = Vec::new();
            for (nth, number) in numbers.iter().enumerate() {
                messages.extend(round(&format!("call_{nth}"), "grep", &*content(*number)));
            }
            let report = process.reduce(Plain, &mut messages).await.unwrap();
            assert_eq!(report.records_error, None);
            let shown = messages.iter().skip(1).step_by(2).map(parts_of);
            let hints = shown
                .zip(numbers)
                .filter_map(|(parts, number)| match parts {
                    [Part::Text(text)] => Some((Hint::parse(text)?.location?, number)),
                    _ => None,
                });
            Came::Hints(session, hints.collect())
        });
    }

    fn begin_reading(&mut self) {
        if self.promises.is_empty() {
            return;
        }
        let at = self.dice.below(self.promises.len());
        let Promise {
            session, location, ..
        } = self.promises[at].clone();
        let store = self.store.clone();
        self.begin(false, async move {
            let reduction = quick(store).session(session);
            _ = reduction.read_original(&location).await.unwrap();
            Came::Read(location)
        });
    }

    /// Gathers what is live, and begins a sweep with it. Any number may be running.
    fn begin_sweeping(&mut self) {
        let now = self.now();
        let named = self.promises.iter().filter(|promise| promise.is_named);
        let live = named.fold(Live::new(), |live, promise| {
            live.location(&promise.location)
        });
        let store = self.store.clone();
        let policy = match self.dice.below(3) {
            0 => SweepPolicy::new().idle(3 * DAY),
            1 => SweepPolicy::new().quota_bytes(4_000),
            _ => SweepPolicy::new().idle(SweepPolicy::LEAST_IDLE),
        };
        self.begin(true, async move {
            let swept = offcut::sweep::sweep(&quick(store), &live, &policy.apply(), now).await;
            Came::Swept(swept.unwrap())
        });
    }

    /// Takes one step of some of the work.
    fn step(&mut self, at: usize) {
        let polled = self.work[at]
            .future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        let Poll::Ready(came) = polled else {
            return;
        };
        let Work {
            begun, met_sweep, ..
        } = self.work.remove(at);
        let now = self.now();
        match came {
            Came::Hints(session, hints) => {
                if WHOLE.contains(&session) {
                    self.done.reduced += 1;
                } else {
                    self.done.stored += 1;
                }
                for (location, content) in hints {
                    self.promise(Promise {
                        session,
                        location,
                        content,
                        made_at: begun,
                        until: begun + DAY,
                        is_named: false,
                        is_forgotten: false,
                    });
                }
            }
            Came::Read(location) => {
                self.done.read += 1;
                if met_sweep {
                    return;
                }
                let read = self.promises.iter_mut();
                for promise in read.filter(|promise| promise.location == location) {
                    if promise.is_named || promise.until > now {
                        promise.until = promise.until.max(begun + DAY);
                    }
                }
            }
            Came::Swept(report) => {
                assert_eq!(report.failed, []);
                self.done.swept += 1;
                self.done.removed += report.removed.count;
            }
        }
        self.check();
    }

    fn promise(&mut self, promise: Promise) {
        let now = self.now();
        let other = self.promises.iter().find(|other| {
            other.location == promise.location
                && other.content != promise.content
                && (other.is_named || other.until > now)
        });
        if other.is_some() {
            self.lose(format!("{} was given to two contents", promise.location));
        }
        self.promises.push(promise);
    }

    fn lose(&mut self, what: String) {
        self.lost.get_or_insert(what);
    }

    /// Transcripts are written, of some hints or of all that can't wait until `by`.
    fn write_hints(&mut self, by: Option<SystemTime>) {
        let dice = &mut self.dice;
        for promise in &mut self.promises {
            let is_due = match by {
                Some(by) => promise.made_at + LATEST < by,
                None => dice.below(2) == 0,
            };
            let has_transcript = !WHOLE.contains(&promise.session) && !promise.is_forgotten;
            if is_due && has_transcript && promise.until > self.store.clock.now() {
                promise.is_named = true;
            }
        }
    }

    /// Transcripts are deleted.
    fn forget_some(&mut self) {
        let keep = self.dice.below(3);
        for promise in &mut self.promises {
            if self.dice.below(3) >= keep {
                (promise.is_named, promise.is_forgotten) = (false, true);
            }
        }
    }

    /// Time passes. Agents finish their work before a long time; sweeps may stall for any time.
    fn turn(&mut self, by: Duration) {
        while let Some(at) = self
            .work
            .iter()
            .position(|work| !work.is_sweep && work.begun + A_WHILE < self.now() + by)
        {
            self.step(at);
        }
        self.write_hints(Some(self.now() + by));
        self.store.clock.turn(by);
        let now = self.now();
        self.promises
            .retain(|promise| promise.is_named || promise.until > now);
        self.check();
    }

    fn crash(&mut self) {
        if let Some(at) = self.work.iter().position(|work| work.is_sweep) {
            self.done.crashed += 1;
            drop(self.work.remove(at));
        }
    }

    /// Checks that everything promised reads as what was stored. Looks without reading as an agent
    /// does, which would be noted.
    fn check(&mut self) {
        let now = self.now();
        let mut lost = None;
        for promise in &self.promises {
            if !promise.is_named && promise.until <= now {
                continue;
            }
            let key = self.store.resolve(promise.location.as_str()).unwrap();
            let read = self.store.inner.read(&key, 0..u64::MAX);
            match read.now_or_never().unwrap() {
                Ok(page) if page.bytes == content(promise.content) => {}
                Ok(_) => lost = Some(format!("{key} is other bytes")),
                Err(error) => lost = Some(format!("{key} is dangling: {error}")),
            }
        }
        if let Some(lost) = lost {
            self.lose(lost);
        }
    }

    fn live_one_moment(&mut self) {
        let is_busy = self.work.len() >= 7;
        match self.dice.below(40) {
            0..=1 if !is_busy => self.begin_storing(),
            2 if !is_busy => self.begin_reducing(),
            3 if !is_busy => self.begin_reading(),
            4 if self.work.iter().filter(|work| work.is_sweep).count() < 3 => {
                self.begin_sweeping();
            }
            5 => self.write_hints(None),
            6 if self.dice.below(4) == 0 => self.forget_some(),
            7 if self.dice.below(4) == 0 => self.crash(),
            8 if self.dice.below(2) == 0 => {
                let time = self.dice.of(&[HOUR, 20 * HOUR, 25 * HOUR, 3 * DAY]);
                self.turn(time);
            }
            9 => self.turn(A_WHILE / 4),
            _ if !self.work.is_empty() => {
                let at = self.dice.below(self.work.len());
                self.step(at);
            }
            _ => {}
        }
    }
}

/// Lives through some moments, until a promise is broken.
fn live_through(seed: u64, broken: Broken) -> World {
    let mut world = World::new(seed, broken);
    for _ in 0..3_000 {
        world.live_one_moment();
        if world.lost.is_some() {
            break;
        }
    }
    world
}

fn cases() -> u64 {
    let cases = std::env::var("OFFCUT_CASES").ok();
    cases.and_then(|cases| cases.parse().ok()).unwrap_or(60)
}

#[test]
fn promised_content_is_never_lost() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let _inside = runtime.enter();
    let mut all = Done::default();
    for seed in 1..=cases() {
        let World { done, lost, .. } = live_through(seed, Broken::Nothing);
        assert_eq!(lost, None, "seed {seed}");
        all.stored += done.stored;
        all.read += done.read;
        all.reduced += done.reduced;
        all.swept += done.swept;
        all.crashed += done.crashed;
        all.removed += done.removed;
    }
    eprintln!("{all:?}");
    let least = usize::try_from(cases()).unwrap();
    let Done {
        stored,
        read,
        reduced,
        swept,
        crashed,
        removed,
    } = all;
    for count in [stored, read, reduced, swept, crashed, removed as usize] {
        assert!(count > least, "too little happened: {all:?}");
    }
}

/// The model finds what goes wrong if one of the rules is broken.
#[test]
fn the_model_finds_each_broken_rule() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let _inside = runtime.enter();
    for broken in [
        Broken::ReuseEnds,
        Broken::RepeatingEnds,
        Broken::IdleIsLonger,
        Broken::AgeByNewest,
        Broken::ReadingCounts,
        Broken::RemovesOnlyOld,
    ] {
        let found = (1..=2_000).find_map(|seed| {
            let lost = live_through(seed, broken).lost?;
            Some((seed, lost))
        });
        eprintln!("{broken:?}: {found:?}");
        assert!(found.is_some(), "{broken:?} was not found");
    }
}
