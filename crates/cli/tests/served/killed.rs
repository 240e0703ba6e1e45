//! A server that is killed under load.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use crate::conversations::{CALLS, CONVERSATIONS, KEY, are_the_same, are_whole, ask, settings};
use crate::http::{self, Message, Provider};
use crate::server::Server;

const KILLS: usize = 4;

/// Goes through a conversation as a client that tries again whatever the server did not answer.
fn converse(conversation: usize, server: SocketAddr) {
    for call in 0..CALLS {
        // As clients do, with less patience.
        while ask(server, conversation, call).is_err() {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_server_that_is_killed_under_load_loses_no_request_and_changes_no_byte() {
    let home = tempfile::tempdir().unwrap();
    let provider = Provider::start();
    let settings = settings(&provider.url);
    let mut server = Server::start(home.path(), &settings);
    let address = server.address;
    let clients: Vec<_> = (0..CONVERSATIONS)
        .map(|number| std::thread::spawn(move || converse(number, address)))
        .collect();
    let each = CONVERSATIONS * CALLS / (KILLS + 1);
    for kill in 1..=KILLS {
        provider.wait_for(kill * each);
        drop(server);
        server = loop {
            // Meanwhile, a client's own connection may have the port.
            if let Some(server) = Server::listening(home.path(), &settings, address) {
                break server;
            }
        };
    }
    for client in clients {
        client.join().unwrap();
    }
    let metrics = http::post(address, "/metrics", &[], "").unwrap().body;
    drop(server);

    let seen = provider.take();
    assert!(seen.len() >= CONVERSATIONS * CALLS);
    println!(
        "{KILLS} kills: {} turns, {} requests at the provider",
        CONVERSATIONS * CALLS,
        seen.len()
    );
    are_the_same(&seen);
    // Hints name paths of the store, and what they lead to is what the client sent.
    are_whole(&seen);
    has_no_secret(home.path(), &metrics, &seen);
}

/// Checks that no credential is in the log, in the metrics, in the store or in what was sent as text.
fn has_no_secret(home: &Path, metrics: &str, seen: &[Message]) {
    assert!(metrics.contains("offcut_requests_total"), "{metrics}");
    assert!(!metrics.contains(KEY));
    assert!(seen.iter().all(|message| !message.body.contains(KEY)));
    assert!(std::fs::metadata(home.join("log")).unwrap().len() > 0);
    let (mut folders, mut files) = (vec![home.to_owned()], 0);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            assert!(!path.to_string_lossy().contains(KEY), "{path:?}");
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            files += 1;
            let bytes = std::fs::read(&path).unwrap();
            let mut windows = bytes.windows(KEY.len());
            assert!(!windows.any(|window| window == KEY.as_bytes()), "{path:?}");
        }
    }
    assert!(files > CONVERSATIONS);
}
