//! Many streams at once, each checked to its last byte, and the memory that they take.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::Client;
use crate::conversation::Conversation;
use crate::provider;
use crate::servers::Server;

/// Number of events of a stream, and the milliseconds between two.
const EVENTS: [u64; 2] = [20, 250];
/// Upper bound on memory in the last quarter, relative to the first.
const GROWTH: f64 = 1.05;

/// Holds `count` streams open, one after the other in each conversation, for `duration`.
pub(crate) fn measure(count: u64, duration: Duration) -> Value {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let home = tempfile::tempdir().unwrap();
    let url = provider::start(Instant::now());
    let server = Server::offcut(&url, home.path());
    let memory = runtime.block_on(async {
        let streams = Arc::new(AtomicU64::new(0));
        let end = Instant::now() + duration;
        let clients: Vec<_> = (0..count)
            .map(|number| {
                let (streams, address) = (streams.clone(), server.address);
                tokio::spawn(async move {
                    let mut chat = Conversation::new(usize::try_from(number).unwrap());
                    chat.go_on(8_000);
                    let body = chat.body();
                    // They do not all come at once, but within the time of one stream.
                    let [events, pause] = EVENTS;
                    let spread = events * pause * number / count;
                    tokio::time::sleep(Duration::from_millis(spread)).await;
                    let mut client = Client::connect(address).await;
                    loop {
                        let answer = client.post(body.clone(), Some(EVENTS)).await;
                        assert_eq!(answer.outcome, "reduced");
                        check(&answer.body);
                        streams.fetch_add(1, Ordering::Relaxed);
                        if Instant::now() > end {
                            break;
                        }
                    }
                })
            })
            .collect();
        let mut memory = Vec::new();
        while Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(250).min(duration / 4)).await;
            // The first streams create what is needed only once.
            if Instant::now() + duration * 5 / 6 > end {
                memory.push(server.memory());
            }
        }
        for client in clients {
            client.await.expect("a stream without loss");
        }
        (memory, streams.load(Ordering::Relaxed))
    });
    let (memory, streams) = memory;
    let quarter = memory.len().div_ceil(4);
    let most = |memory: &[f64]| memory.iter().copied().fold(0.0, f64::max);
    let [first, last] = [&memory[..quarter], &memory[memory.len() - quarter..]].map(most);
    let growth = last / first;
    println!(
        "{count} streams at once for {} s: {streams} in all, none lost a byte; memory {first:.1} MiB in the first quarter, {last:.1} in the last",
        duration.as_secs()
    );
    assert!(
        duration.as_secs() < 60 || growth <= GROWTH,
        "memory has grown to {growth} times its size"
    );
    json!({"at_once": count, "seconds": duration.as_secs(), "streams": streams, "first_quarter_mib": first, "last_quarter_mib": last})
}

/// Checks that all events have come, in their order.
fn check(body: &[u8]) {
    let text = str::from_utf8(body).unwrap();
    let events = text.split_terminator("\n\n").map(provider::read);
    let numbers: Vec<_> = events.map(|event| event.expect("an event").0).collect();
    let expected: Vec<_> = (0..usize::try_from(EVENTS[0]).unwrap()).collect();
    assert_eq!(numbers, expected);
}
