//! Measures what `offcut mcp` adds to messages between a client and a server over pipes: `cat` with it in
//! front, and `cat` alone, in one run; and the memory that long messages take, over pipes and over HTTP.
//!
//! `cargo bench -p offcut-cli --bench mcp`. The last line is JSON.
// A bench that can't be set up should panic, and it prints its results.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

#[cfg(not(unix))]
fn main() {}

#[cfg(unix)]
fn main() {
    unix::main();
}

#[cfg(all(target_os = "linux", feature = "serve"))]
#[path = "mcp/http.rs"]
mod http;

#[cfg(unix)]
mod unix {
    use std::io::{BufRead, BufReader, BufWriter, Read, Write};
    use std::path::Path;
    use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
    use std::time::{Duration, Instant};

    use serde_json::json;

    /// A running server, with or without Offcut in front.
    struct Echo {
        process: Child,
        to: ChildStdin,
        from: BufReader<ChildStdout>,
    }

    impl Echo {
        fn start(home: &Path, is_wrapped: bool) -> Self {
            let mut command = if is_wrapped {
                let mut command = Command::new(env!("CARGO_BIN_EXE_offcut"));
                command.args(["mcp", "--", "cat"]);
                command
            } else {
                Command::new("cat")
            };
            command.env("OFFCUT_HOME", home).stderr(Stdio::null());
            let mut process = command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            Self {
                to: process.stdin.take().unwrap(),
                from: BufReader::new(process.stdout.take().unwrap()),
                process,
            }
        }

        /// The time for a message there and back.
        fn round_trip(&mut self, message: &str) -> Duration {
            let begun = Instant::now();
            self.to.write_all(message.as_bytes()).unwrap();
            let mut line = String::new();
            self.from.read_line(&mut line).unwrap();
            assert_eq!(line, message);
            begun.elapsed()
        }

        /// The time for many messages there and back.
        fn throughput(mut self, message: &str, count: usize) -> Duration {
            let begun = Instant::now();
            let (mut to, text) = (BufWriter::new(self.to), message.to_owned());
            let writer = std::thread::spawn(move || {
                for _ in 0..count {
                    to.write_all(text.as_bytes()).unwrap();
                }
            });
            let mut chunk = vec![0; 64 * 1024];
            let mut length = 0;
            while length < message.len() * count {
                length += self.from.read(&mut chunk).unwrap();
            }
            writer.join().unwrap();
            let time = begun.elapsed();
            self.process.wait().unwrap();
            time
        }
    }

    /// A message of about this many bytes, which is one line.
    /// A notification: at its end, the gateway waits for answers to requests, of which `cat` gives none.
    fn message(bytes: usize) -> String {
        let text = "x".repeat(bytes);
        json!({"jsonrpc": "2.0", "method": "x", "params": {"text": text}}).to_string() + "\n"
    }

    /// The most memory that a process had, in MB, while a message passed through it.
    #[cfg(target_os = "linux")]
    fn memory(home: &Path, megabytes: usize) -> u64 {
        let mut echo = Echo::start(home, true);
        // One over the maximum is refused, the one after it passes.
        let text = message(megabytes << 20) + "last\n";
        let mut to = echo.to;
        let writer = std::thread::spawn(move || to.write_all(text.as_bytes()).map(|()| to));
        let mut line = String::new();
        while line != "last\n" {
            line.clear();
            echo.from.read_line(&mut line).unwrap();
        }
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", echo.process.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak
            .unwrap()
            .trim()
            .trim_end_matches(" kB")
            .parse::<u64>()
            .unwrap();
        drop(writer.join().unwrap());
        echo.process.wait().unwrap();
        peak / 1024
    }

    fn median(mut times: Vec<Duration>) -> f64 {
        times.sort();
        times[times.len() / 2].as_secs_f64() * 1e6
    }

    pub(crate) fn main() {
        // Cargo's tests run each bench once, with minimal work.
        let is_bench = std::env::args().any(|argument| argument == "--bench");
        let (rounds, bulk) = if is_bench {
            (1_000, 64 << 20)
        } else {
            (20, 1 << 20)
        };
        let home = tempfile::tempdir().unwrap();
        let mut table = Vec::new();
        // A pipe holds 64 KiB: a longer message there and back would need somebody who reads meanwhile.
        for bytes in [100, 10_000, 50_000] {
            let text = message(bytes);
            let (mut bare, mut wrapped) = (Vec::new(), Vec::new());
            let mut alone = Echo::start(home.path(), false);
            let mut front = Echo::start(home.path(), true);
            let rounds = rounds.min(200_000_000 / bytes).max(5);
            // In turn, so that whatever else runs here slows both.
            for _ in 0..rounds {
                bare.push(alone.round_trip(&text));
                wrapped.push(front.round_trip(&text));
            }
            for mut echo in [alone, front] {
                drop(echo.to);
                echo.process.wait().unwrap();
            }
            let (bare, wrapped) = (median(bare), median(wrapped));
            let count = (bulk / bytes).clamp(5, 100_000);
            let megabytes = (text.len() * count) as f64 / 1e6;
            let rate = |is_wrapped| {
                let time = Echo::start(home.path(), is_wrapped).throughput(&text, count);
                megabytes / time.as_secs_f64()
            };
            let (bare_rate, wrapped_rate) = (rate(false), rate(true));
            println!(
                "{bytes:>9} bytes: {bare:.0} µs there and back alone, {wrapped:.0} µs with offcut; {bare_rate:.0} MB/s alone, {wrapped_rate:.0} MB/s with offcut"
            );
            table.push(json!({"bytes": bytes, "alone_us": bare, "with_us": wrapped, "alone_mb_s": bare_rate, "with_mb_s": wrapped_rate}));
        }
        let mut memories = Vec::new();
        #[cfg(target_os = "linux")]
        for megabytes in if is_bench { vec![1, 63, 512] } else { vec![1] } {
            let peak = memory(home.path(), megabytes);
            println!("a message of {megabytes} MiB: {peak} MB of memory at most");
            memories.push(json!({"message_mib": megabytes, "peak_mb": peak}));
        }
        let mut over_http: Vec<serde_json::Value> = Vec::new();
        #[cfg(all(target_os = "linux", feature = "serve"))]
        {
            let (options, lengths): (&[&str], _) = if is_bench {
                (&[], [63 << 20, 512 << 20])
            } else {
                (&["--max-message", "3MiB"], [2 << 20, 32 << 20])
            };
            over_http.extend(crate::http::memory(home.path(), options, lengths));
        }
        println!(
            "{}",
            json!({"messages": table, "memory": memories, "over_http": over_http})
        );
    }
}
