//! The cost of gathering the names in transcripts: milliseconds and peak memory in bytes, each per
//! MB of text. The texts are typical and hostile ones of 1, 10 and 100 MB, each in one file; some
//! have no line feed.
//!
//! ```text
//! cargo bench -p offcut-lab --bench sweep
//! ```
//!
//! The last line is JSON, with the ratios of the largest text to the smallest: 1 is linear time, 0
//! is memory that does not depend on the text. `cargo test` runs it over the smallest texts, to see
//! that it works.

#![allow(clippy::print_stdout, reason = "a program that talks to a person")]

use std::io::{self, BufWriter, Write};
use std::path::Path;

use offcut::sweep::Live;
use offcut_lab::{fastest, is_bench, time};
use peak_alloc::PeakAlloc;
use serde_json::{Map, Value, json};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const MB: usize = 1_000_000;

/// Kinds of text: name, start, and a piece that is repeated with its number instead of `{}`.
const KINDS: [(&str, &str, &str); 13] = [
    (
        "a transcript",
        "",
        r#"{"role":"tool","content":"total 12\n-rw-r--r-- 1 me me 1204 src/main.rs\n","id":"call_{}"}"#,
    ),
    (
        "source code",
        "",
        "    let value_{} = store.read_range(from..to)?; // the rest of it\n",
    ),
    (
        "names, one each",
        "",
        r#""[offcut/1 truncated 20000B/1000L 9+0 \"/store/s1/trunc/call_{}\"]" "#,
    ),
    ("one name", "", "/store/s1/trunc/call_1 "),
    ("a path of names", "", "/s1/trunc/abc"),
    ("dashes", "/s/trunc/a", "-"),
    ("escaped dashes", "/s/trunc/a", r"\-"),
    ("encoded again", "/s/trunc/a", "%252D"),
    ("percent signs", "/s/trunc/a", "%25"),
    ("references", "/s/trunc/a", "&amp;#0095;"),
    ("backslashes", "/s/trunc/a", "\\"),
    ("only prefixes", "", "/s/trunc"),
    ("slashes", "/s/trunc/a", "/"),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sizes: &[usize] = if is_bench() {
        &[MB, 10 * MB, 100 * MB]
    } else {
        &[MB / 10]
    };
    let home = tempfile::tempdir()?;
    let path = home.path().join("chat.jsonl");
    let mut all = Map::new();
    println!(
        "ms per MB, and peak bytes per MB, of {:?} MB",
        sizes.iter().map(|size| size / MB).collect::<Vec<_>>()
    );
    for (kind, begin, part) in KINDS {
        let mut figures = Vec::new();
        for size in sizes {
            write_text(&path, begin, part, *size)?;
            figures.push(gather(&path, *size)?);
        }
        let line: String = figures
            .iter()
            .map(|(ms, bytes)| format!("{ms:>10.2}{bytes:>10.0}"))
            .collect();
        println!("{kind:<18}{line}");
        if let [(first_ms, first_bytes), .., (last_ms, last_bytes)] = figures[..] {
            all.insert(
                kind.to_owned(),
                json!({"time": round(last_ms / first_ms), "memory": round(last_bytes / first_bytes)}),
            );
        }
    }
    println!("{}", Value::Object(all));
    Ok(())
}

fn write_text(path: &Path, begin: &str, part: &str, size: usize) -> io::Result<()> {
    let mut file = BufWriter::new(std::fs::File::create(path)?);
    file.write_all(begin.as_bytes())?;
    let (mut written, mut number) = (begin.len(), 0_u32);
    while written < size {
        let part = part.replace("{}", &number.to_string());
        file.write_all(part.as_bytes())?;
        (written, number) = (written + part.len(), number + 1);
    }
    file.into_inner()?.sync_data()
}

/// Returns milliseconds and bytes per MB.
fn gather(path: &Path, size: usize) -> Result<(f64, f64), Box<dyn std::error::Error>> {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let mut times = Vec::new();
    for _ in 0..(10 * MB / size).clamp(1, 5) {
        let (taken, live) = time(|| Live::new().folder(path));
        live?;
        times.push(taken);
    }
    let megabytes = size as f64 / MB as f64;
    let bytes = MEMORY.peak_usage().saturating_sub(before) as f64;
    Ok((
        fastest(&times).as_secs_f64() * 1e3 / megabytes,
        bytes / megabytes,
    ))
}

fn round(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}
