//! An agent's questions for permission, which Offcut must neither answer nor raise.

use std::path::Path;
use std::sync::Arc;

use offcut_testkit::ShownResult;

use crate::compare::{compare_results, same_files};
use crate::session::{Client, Offcut, run};

/// The beginnings of lines that the rules allow.
pub const ALLOWED: [&str; 5] = ["ls", "echo", "printf", "seq", "mkdir"];
/// The beginnings of lines that only read, which some agents run without a rule.
pub const READING: [&str; 4] = ["head", "tail", "grep", "find"];
/// The beginnings of lines about which the rules ask the user, who is not there to answer.
pub const ASKED: [&str; 2] = ["touch", "python3"];
/// The beginnings of lines that the rules deny.
pub const DENIED: [&str; 3] = ["rm", "cat data.bin", "curl"];

/// Lines that run under the rules.
const RUN: [&str; 11] = [
    "ls",
    "ls sub",
    "echo one",
    "echo one && echo two",
    "echo one | tail -n 1",
    "printf 'one\n'",
    "seq 1 3000",
    "seq 1 3000 | head -n 2000",
    "grep -c line big.txt",
    "find . -type f -name small.txt",
    "mkdir made",
];

/// Lines for which the rules give every agent a reason to refuse them.
const REFUSED: [&str; 8] = [
    "cat data.bin",
    "seq 1 3000 && cat data.bin",
    "rm small.txt",
    "rm -rf sub",
    "echo one; rm small.txt",
    "seq 1 3000 && rm small.txt",
    "touch touched",
    "curl http://127.0.0.1:9",
];

/// Lines about which agents differ: some look into them, some ask about them, some run them in a sandbox.
const OTHERS: [&str; 13] = [
    "cat small.txt",
    "seq 1 3000 | xargs rm",
    "echo $(rm small.txt)",
    "(rm small.txt)",
    "timeout 5 rm small.txt",
    "A=1 rm small.txt",
    "sh -c 'rm small.txt'",
    "find . -name small.txt -delete",
    "seq 1 3000 && touch touched",
    "echo one > small.txt",
    "sed -i s/small/large/ small.txt",
    "python3 -c 'print(1)'",
    "seq 1 3000 | python3 -c 'print(1)'",
];

/// Runs all lines with and without Offcut, under the same rules, which `client` has in its settings.
/// `is_refused` recognizes the result of a line that did not run. Returns those of the last list that did.
pub fn compare_permissions<C: Client>(
    client: &C,
    is_refused: impl Fn(&ShownResult) -> bool,
) -> Vec<&'static str> {
    let lines = [&RUN[..], &REFUSED, &OTHERS].concat();
    assert!(lines.len() > 30);
    let calls = lines.iter().map(|line| client.shell(line));
    // The rule that opens the store opens nothing beside it.
    let elsewhere = client.read(Path::new("/etc/passwd"), 1, 10);
    let calls: Arc<[_]> = calls.chain([elsewhere]).collect();
    let session = |offcut| {
        let calls = calls.clone();
        let next = move |rounds: &[Vec<ShownResult>]| Some(vec![calls.get(rounds.len())?.clone()]);
        run(client, offcut, |_| Arc::new(next))
    };
    let without = session(Offcut::Absent);
    let with = session(Offcut::Installed);
    let shortened = compare_results(client, &with, &without);
    let refused = [&without, &with].map(|session| {
        assert_eq!(session.code, Some(0));
        let results: Vec<_> = session.rounds.iter().flatten().collect();
        assert_eq!(results.len(), calls.len());
        let refused = results.iter().map(|shown| is_refused(shown));
        let refused: Vec<bool> = refused.collect();
        for (nth, line) in lines.iter().enumerate().take(RUN.len() + REFUSED.len()) {
            let is_expected = refused[nth] == (nth >= RUN.len());
            assert!(is_expected, "{line}: {:?}", results[nth]);
        }
        same_files(session, &without);
        refused
    });
    assert_eq!(refused[0], refused[1]);
    let others = OTHERS.iter().zip(&refused[0][RUN.len() + REFUSED.len()..]);
    let run = others
        .filter(|(_, is_refused)| !**is_refused)
        .map(|(line, _)| *line);
    println!(
        "{}: {} calls, {} refused, {shortened} shortened",
        C::NAME,
        calls.len(),
        refused[0].iter().filter(|is_refused| **is_refused).count(),
    );
    run.collect()
}
