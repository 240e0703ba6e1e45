//! The time that a request takes through each server.

use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::conversation::Conversation;
use crate::provider;
use crate::servers::Server;

/// The length of a warm conversation in bytes.
const LENGTH: usize = 600_000;

/// A server and a connection to it.
struct Way<'s> {
    server: &'s Server,
    client: Client,
}

/// The times of one kind of request: through the plain proxy, and through ours.
#[derive(Default)]
struct Times {
    wall: [Vec<Duration>; 2],
    /// The time for which the server's process itself computed, which a busy machine hardly changes.
    work: [Vec<Duration>; 2],
}

/// The time at which a share of all is over, in milliseconds.
fn at(times: &mut [Duration], share: f64) -> f64 {
    times.sort_unstable();
    let place = (times.len().saturating_sub(1)) as f64 * share;
    let time = times.get(place.round() as usize).copied();
    time.unwrap_or_default().as_secs_f64() * 1e3
}

impl Times {
    /// Prints a row, and returns it.
    fn row(mut self, name: &str) -> Value {
        let count = self.wall[1].len();
        let mut row = |kind: fn(&mut Self) -> &mut [Vec<Duration>; 2], share| {
            let [plain, ours] = kind(&mut self).each_mut().map(|times| at(times, share));
            [plain, ours, ours - plain]
        };
        let figures = [
            row(|times| &mut times.wall, 0.5),
            row(|times| &mut times.wall, 0.99),
            row(|times| &mut times.work, 0.5),
            row(|times| &mut times.work, 0.99),
        ];
        let text = |[plain, ours, added]: [f64; 3]| format!("{plain:.2} → {ours:.2}: {added:.2}");
        let [median, slow, work, most] = figures.map(text);
        println!("| {name} | {count} | {median} | {slow} | {work} | {most} |");
        let [median, slow, work, most] = figures;
        json!({"name": name, "count": count, "p50": median, "p99": slow, "work_p50": work, "work_p99": most})
    }

    fn add(&mut self, is_ours: bool, wall: Duration, work: Duration) {
        self.wall[usize::from(is_ours)].push(wall);
        self.work[usize::from(is_ours)].push(work);
    }
}

/// Sends a request both ways. The one that goes first, which finds the body in no cache, changes with `turn`. Calls
/// `see` with the time at which it began.
async fn both(
    ways: &mut [Way<'_>; 2],
    turn: usize,
    body: &Bytes,
    events: Option<[u64; 2]>,
    mut see: impl FnMut(bool, Instant, &Answer, Duration),
) {
    for nth in [turn % 2, (turn + 1) % 2] {
        let way = &mut ways[nth];
        let before = way.server.work();
        let start = Instant::now();
        let answer = way.client.post(body.clone(), events).await;
        let work = way.server.work().saturating_sub(before);
        see(nth == 1, start, &answer, work);
    }
}

/// Measures `calls` calls in each of `conversations` conversations.
pub(crate) fn measure(conversations: usize, calls: usize) -> Value {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let home = tempfile::tempdir().unwrap();
    let begun = Instant::now();
    let url = provider::start(begun);
    let servers = [Server::plain(&url), Server::offcut(&url, home.path())];
    println!("ms, plain → ours: added");
    println!(
        "| | requests | p50 | p99 | work of the process, p50 | p99 |\n|---|---|---|---|---|---|"
    );
    let rows = runtime.block_on(async {
        let mut ways = [
            Way {
                server: &servers[0],
                client: Client::connect(servers[0].address).await,
            },
            Way {
                server: &servers[1],
                client: Client::connect(servers[1].address).await,
            },
        ];
        let [mut next, mut again, mut first, mut event, mut small] =
            [(); 5].map(|()| Times::default());
        for number in 0..conversations {
            let mut chat = Conversation::new(number);
            let mut bodies = Vec::new();
            chat.grow(LENGTH, |chat| bodies.push(chat.body()));
            for body in bodies {
                assert_eq!(ways[1].client.post(body, None).await.outcome, "reduced");
            }
            for call in 0..calls {
                // Of four new results, one is so long that it is stored.
                chat.go_on([600, 900, 6_000, 1_200][call % 4]);
                let body = chat.body();
                for times in [&mut next, &mut again] {
                    both(
                        &mut ways,
                        call,
                        &body,
                        None,
                        |is_ours, start, answer, work| {
                            assert!(
                                !is_ours || answer.outcome == "reduced",
                                "{}",
                                answer.outcome
                            );
                            times.add(is_ours, answer.end - start, work);
                        },
                    )
                    .await;
                }
                both(
                    &mut ways,
                    call,
                    &body,
                    Some([5, 2]),
                    |is_ours, start, answer, work| {
                        first.add(is_ours, answer.pieces[0].1 - start, work);
                        for took in on_the_way(answer, begun) {
                            event.wall[usize::from(is_ours)].push(took);
                        }
                    },
                )
                .await;
                let body = r#"{"model":"m","messages":[{"role":"user","content":"hello"}]}"#;
                both(
                    &mut ways,
                    call,
                    &body.into(),
                    None,
                    |is_ours, start, answer, work| {
                        small.add(is_ours, answer.end - start, work);
                    },
                )
                .await;
            }
        }
        [
            next.row("600 kB, with a new round"),
            again.row("600 kB, the same once more"),
            first.row("600 kB, to the first byte of a stream"),
            event.row("a later event of it, from provider to client"),
            small.row("a body of 60 bytes"),
        ]
    });
    rows.into()
}

/// The time of each event but the first on its way from the provider.
fn on_the_way(answer: &Answer, begun: Instant) -> Vec<Duration> {
    let text = str::from_utf8(&answer.body).unwrap();
    let mut times = Vec::new();
    for &(at, came) in answer.pieces.iter().skip(1) {
        if let Some((_, sent)) = provider::read(&text[at..]) {
            times.push((came - begun).saturating_sub(sent));
        }
    }
    times
}
