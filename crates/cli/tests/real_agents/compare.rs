//! The comparison of an agent's sessions without and with Offcut.

use crate::script::{self, Trail};
use crate::session::{Client, Offcut, Session, run};
use offcut_testkit::ShownResult;

/// Runs the same session without Offcut, with it in the way of `offcut`, and with a model that also follows
/// each hint, and compares what they leave.
pub fn compare<C: Client>(make: impl Fn() -> C, offcut: Offcut) {
    let run = |offcut, is_reader| {
        let mut trail = Trail::default();
        let session = run(&make(), offcut, |project| {
            let (script, followed) = script::script(make(), project, is_reader);
            trail = followed;
            script
        });
        (session, trail)
    };
    let (without, _) = run(Offcut::Absent, false);
    let (with, _) = run(offcut, false);
    let (reading, trail) = run(offcut, true);
    for session in [&without, &with, &reading] {
        assert_eq!(session.code, Some(0));
        same_files(session, &without);
    }
    script::check_project(&without.files);
    script::check(&make(), &trail);

    if let Some(words) = C::EXIT_3 {
        for session in [&without, &with] {
            let mut results = session.rounds.iter().flatten();
            assert!(results.any(|shown| shown.text.contains(words)), "{words}");
        }
    }
    let shortened = compare_results(&make(), &with, &without);
    let calls: usize = without.rounds.iter().map(Vec::len).sum();
    assert!(calls >= 20, "{calls} calls");
    let read = trail.lock().unwrap().len();
    // An agent that cuts an output as it arrives may leave a long one in one session and a short one in another.
    let results = reading.rounds.iter().flatten();
    let hints: usize = results
        .map(|shown| script::hints(std::slice::from_ref(shown)).len())
        .sum();
    assert_eq!(read, hints, "each hint is followed");
    assert!(with.bill() < without.bill());
    println!(
        "{} {offcut:?}: {calls} calls, {shortened} shortened, each read back; messages of {} bytes in {} requests became {} ({:.1} %)",
        C::NAME,
        without.bill(),
        without.requests.len(),
        with.bill(),
        100.0 * with.bill() as f64 / without.bill() as f64,
    );
}

/// Checks that both sessions leave the same files.
pub fn same_files(session: &Session, other: &Session) {
    let differ = session
        .files
        .iter()
        .filter(|file| !other.files.contains(file));
    let names: Vec<_> = differ.map(|(name, _)| name).collect();
    assert!(session.files == other.files, "files differ: {names:?}");
}

/// Checks that each result is the same in both sessions, or shorter with a hint. Returns the number of the
/// latter.
pub fn compare_results<C: Client>(client: &C, with: &Session, without: &Session) -> usize {
    let calls = |session: &Session| session.rounds.iter().map(Vec::len).collect::<Vec<_>>();
    assert_eq!(calls(with), calls(without));
    let both = with
        .rounds
        .iter()
        .flatten()
        .zip(without.rounds.iter().flatten());
    let by_errors = C::REPLACES_BY_ERRORS && with.offcut == Offcut::Installed;
    both.filter(|(shown, own)| is_shortened(client, shown, own, by_errors))
        .count()
}

fn is_shortened(
    client: &impl Client,
    shown: &ShownResult,
    own: &ShownResult,
    by_errors: bool,
) -> bool {
    let is_hint = !script::hints(std::slice::from_ref(shown)).is_empty();
    let is_error = own.is_error || is_hint && by_errors;
    assert_eq!(shown.is_error, is_error, "{shown:?} {own:?}");
    if !is_hint {
        assert_eq!(plain(client, &shown.text), plain(client, &own.text));
        return false;
    }
    // The agent's own excerpt of output that it has put into a file is short too.
    let is_cut = own.text.contains(client.excerpt());
    let lengths = (shown.text.len(), own.text.len());
    assert!(is_cut || lengths.0 < lengths.1, "{lengths:?} {own:?}");
    true
}

/// A text without the lines that differ between two runs, in an order that does not.
fn plain<C: Client>(client: &C, text: &str) -> String {
    let lines = text.lines().filter(|line| !client.differs(line));
    let mut lines: Vec<&str> = lines.collect();
    if C::STREAMS_RACE {
        lines.sort_unstable();
    }
    lines.join("\n")
}
