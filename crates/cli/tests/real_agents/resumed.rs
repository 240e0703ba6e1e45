//! Sessions that are resumed, with a second prompt after the process and its server have ended, and sessions that the
//! agent compacts in the middle.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use offcut_testkit::ShownResult;

use crate::compare::{compare_results, same_files};
use crate::model::Script;
use crate::script;
use crate::session::{Client, Offcut, Resumes, Session, run_compacted, run_resumed};

/// Number of steps of the first prompt.
const FIRST: usize = 12;

/// Runs a session of two prompts with a server before the provider and without, and compares what they leave.
pub fn resume<C: Resumes>(make: impl Fn() -> C) {
    let run = |offcut| -> Session {
        let is_second = Arc::new(AtomicBool::new(false));
        let asked = is_second.clone();
        let whole = |project: &Path| -> Script {
            let (script, _) = script::script(make(), project, false);
            Arc::new(move |rounds: &[Vec<ShownResult>]| {
                let is_over = rounds.len() >= FIRST && !asked.load(Ordering::SeqCst);
                if is_over { None } else { script(rounds) }
            })
        };
        run_resumed(&make(), offcut, whole, || {
            is_second.store(true, Ordering::SeqCst);
        })
    };
    compare(
        &make(),
        "resumed",
        &run(Offcut::Absent),
        &run(Offcut::Wrapping),
    );
}

/// Runs a session that the agent compacts, with a server before the provider and without, and compares what they leave.
pub fn compact<C: Client>(make: impl Fn() -> C) {
    let run = |offcut| -> Session {
        let whole = |project: &Path| script::script(make(), project, false).0;
        run_compacted(&make(), offcut, whole, FIRST)
    };
    let (without, with) = (run(Offcut::Absent), run(Offcut::Wrapping));
    assert_eq!((without.compactions, with.compactions), (1, 1));
    compare(&make(), "compacted", &without, &with);
}

fn compare<C: Client>(client: &C, word: &str, without: &Session, with: &Session) {
    for session in [without, with] {
        assert_eq!(session.code, Some(0));
        same_files(session, without);
    }
    script::check_project(&without.files);
    let shortened = compare_results(client, with, without);
    assert!(shortened >= 6, "{shortened} results are shortened");
    // Those are the client's own.
    assert_eq!(with.breaks, without.breaks, "breaks of the cache");
    println!(
        "{} {word}: {} requests of {} bytes became {} of {} ({:.1} %), with {} breaks of the cache",
        C::NAME,
        without.requests.len(),
        without.bill(),
        with.requests.len(),
        with.bill(),
        100.0 * with.bill() as f64 / without.bill() as f64,
        with.breaks,
    );
}
