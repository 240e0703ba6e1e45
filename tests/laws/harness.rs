//! Shared by the laws' tests: violations, and cases that are the same in every run.

use std::fmt;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};

/// A broken law, with details.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) law: &'static str,
    pub(crate) what: String,
}

impl Violation {
    pub(crate) fn new(law: &'static str, what: impl Into<String>) -> Self {
        Self {
            law,
            what: what.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.law, self.what)
    }
}

/// Returns a violation unless `holds`.
pub(crate) fn require(
    holds: bool,
    law: &'static str,
    what: impl FnOnce() -> String,
) -> Result<(), Violation> {
    if holds {
        Ok(())
    } else {
        Err(Violation::new(law, what()))
    }
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable)
        .ok()
        .map_or(default, |text| text.parse().expect("a number"))
}

/// Number of cases for a test that gets `percent` of all cases.
pub(crate) fn cases(percent: u64) -> u32 {
    u32::try_from((number("OFFCUT_CASES", super::CASES) * percent).div_ceil(100)).unwrap()
}

/// Stack size in bytes. Trees of values go deep in unoptimized tests.
const STACK: usize = 64 << 20;

/// Runs `check` over `percent` of the cases, on a thread with a larger stack.
pub(crate) fn hold<S: Strategy>(
    percent: u64,
    strategy: impl FnOnce() -> S + Send,
    check: impl Fn(S::Value) -> Result<(), Violation> + Send,
) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK);
        let test = thread.spawn_scoped(scope, || run(percent, &strategy(), check));
        if let Err(panic) = test.unwrap().join() {
            std::panic::resume_unwind(panic);
        }
    });
}

fn run<S: Strategy>(percent: u64, strategy: &S, check: impl Fn(S::Value) -> Result<(), Violation>) {
    let config = Config {
        cases: cases(percent),
        rng_seed: RngSeed::Fixed(number("OFFCUT_SEED", 1)),
        failure_persistence: None,
        max_shrink_iters: 50_000,
        max_shrink_time: u32::try_from(number("OFFCUT_SHRINK_MS", 15_000)).unwrap(),
        ..Config::default()
    };
    let checked =
        |case| check(case).map_err(|violation| TestCaseError::fail(violation.to_string()));
    match TestRunner::new(config).run(strategy, checked) {
        Ok(()) => {}
        Err(TestError::Fail(why, case)) => panic!("{why}\nwith {case:?}"),
        Err(TestError::Abort(why)) => panic!("given up: {why}"),
    }
}

/// Runs `future` on a new runtime on this thread.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}
