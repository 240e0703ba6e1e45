//! Measures the time that `offcut serve` adds to requests, compared with a plain proxy that reads each body
//! whole too, and holds many streams open at once.
//!
//! ```text
//! cargo bench -p offcut-cli --bench serve                                   # both, with 1 000 streams for a minute
//! cargo bench -p offcut-cli --bench serve -- --streams 1000 --seconds 600   # the streams alone
//! ```
//!
//! Both servers are processes of their own, and each request goes to one and then to the other. The last line is
//! JSON. It fails if a stream loses a byte, or if memory grows by more than 5 %.
// A bench that can't be set up should panic, and it prints its results.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod client;
mod conversation;
mod latency;
mod plain;
mod provider;
mod servers;
mod streams;

use std::time::Duration;

use serde_json::json;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, url] = &arguments[..]
        && word == plain::WORD
    {
        return plain::run(url);
    }
    let number = |name: &str| -> Option<u64> {
        let at = arguments.iter().position(|argument| argument == name)?;
        Some(arguments.get(at + 1)?.parse().expect("a number"))
    };
    // `cargo test` runs it without arguments, to see that it works.
    let is_bench = arguments.iter().any(|argument| argument == "--bench");
    let (streams, seconds) = (number("--streams"), number("--seconds"));
    let mut figures = json!({"bench": "serve"});
    if streams.or(seconds).is_none() {
        let (conversations, calls) = if is_bench { (10, 30) } else { (1, 2) };
        figures["latency"] = latency::measure(conversations, calls);
    }
    let (most, long) = if is_bench { (1_000, 60) } else { (40, 1) };
    let count = streams.unwrap_or(most);
    let duration = Duration::from_secs(seconds.unwrap_or(long));
    figures["streams"] = streams::measure(count, duration);
    println!("{figures}");
}
