//! Servers of two versions over one store, as an upgrade runs them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::conversations::{CALLS, CONVERSATIONS, are_the_same, are_whole, ask, settings};
use crate::http::Provider;
use crate::server::Server;

/// Sends each turn of `calls` to one server after the other, which take turns in coming first.
fn alternate(servers: &[&Server; 2], calls: std::ops::Range<usize>) {
    for call in calls {
        for conversation in 0..CONVERSATIONS {
            for nth in [0, 1, 0] {
                let server = servers[(nth + call + conversation) % 2];
                ask(server.address, conversation, call).unwrap();
            }
        }
    }
}

/// The records of decisions in a store.
fn records(store: &Path) -> Vec<PathBuf> {
    let (mut folders, mut records) = (vec![store.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else if entry.file_name().to_string_lossy().starts_with("decided-") {
                records.push(entry.path());
            }
        }
    }
    records
}

#[test]
fn two_versions_with_the_same_options_send_the_same_bytes() {
    let home = tempfile::tempdir().unwrap();
    let provider = Provider::start();
    let start = || Server::start(home.path(), &settings(&provider.url));
    alternate(&[&start(), &start()], 0..CALLS);
    let seen = provider.take();
    are_the_same(&seen);
    are_whole(&seen);
}

#[test]
fn a_version_with_another_option_decides_for_itself_and_disturbs_no_other() {
    let home = tempfile::tempdir().unwrap();
    let providers = [Provider::start(), Provider::start()];
    let [before, after] = ["", "preview = \"head_tail\"\n"];
    let start = |option: &str, provider: &Provider| {
        Server::start(home.path(), &format!("{option}{}", settings(&provider.url)))
    };
    let servers = [start(before, &providers[0]), start(after, &providers[1])];
    alternate(&[&servers[0], &servers[1]], 0..CALLS);
    let [one, other] = providers.map(|provider| provider.take());
    for seen in [&one, &other] {
        are_the_same(seen);
        are_whole(seen);
    }
    let bodies: HashSet<_> = one.iter().map(|message| &message.body).collect();
    let alike = other
        .iter()
        .filter(|message| bodies.contains(&message.body));
    let first = CONVERSATIONS * 3 / 2;
    assert!(alike.count() <= first + 1, "only the first turns are alike");
}

#[test]
fn records_of_a_version_to_come_are_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let provider = Provider::start();
    let start = || Server::start(home.path(), &settings(&provider.url));
    let servers = [start(), start()];
    alternate(&[&servers[0], &servers[1]], 0..CALLS / 2);
    drop(servers);

    let store = home.path().join("store");
    let written = records(&store);
    assert!(written.len() > CONVERSATIONS, "{written:?}");
    let unknown = r#"{"offcut_record":2,"decisions":[{"by":"a version to come"}]}"#;
    for record in &written {
        std::fs::write(record, unknown).unwrap();
    }
    are_whole(&provider.take());

    alternate(&[&start(), &start()], 0..CALLS);
    let seen = provider.take();
    are_the_same(&seen);
    are_whole(&seen);
    for record in &written {
        assert_eq!(std::fs::read_to_string(record).unwrap(), unknown);
    }
    assert!(records(&store).len() > written.len());
}
