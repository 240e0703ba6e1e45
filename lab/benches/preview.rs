//! The speed of previews: MB/s of each strategy over typical and hostile tool results of 64 KB to
//! 64 MB.
//!
//! ```text
//! cargo bench -p offcut-lab --bench preview
//! ```
//!
//! After `--`, `log` and the like select kinds of text. The last line is JSON. `cargo test` runs it
//! over the smallest texts, to see that it works.

#![allow(clippy::print_stdout, reason = "a program that talks to a person")]

use std::fmt::Write;
use std::hint::black_box;
use std::time::Instant;

use offcut::preview::Preview;
use offcut_lab::{is_bench, is_wanted};
use serde_json::{Map, Value, json};

const KB: usize = 1_000;
const STRATEGIES: [(&str, Preview); 4] = [
    ("head_tail", Preview::HeadTail),
    ("lines", Preview::Lines),
    ("index", Preview::Index),
    ("mixed", Preview::Mixed),
];
/// Preview length of the longest texts in the recommended settings, in bytes.
const BUDGET: usize = 6_000;

fn main() {
    let sizes: &[usize] = if is_bench() {
        &[64 * KB, 1_000 * KB, 64_000 * KB]
    } else {
        &[64 * KB]
    };
    let mut all = Map::new();
    println!("MB/s, in {} kB, {} kB, {} kB", 64, 1_000, 64_000);
    for (kind, line) in KINDS.into_iter().filter(|(kind, _)| is_wanted(kind)) {
        for (name, preview) in STRATEGIES {
            let speeds: Vec<f64> = sizes
                .iter()
                .map(|size| speed(preview, &text(line, *size)))
                .collect();
            println!(
                "{kind:<14} {name:<10} {}",
                speeds
                    .iter()
                    .map(|speed| format!("{speed:>8.0}"))
                    .collect::<String>()
            );
            all.insert(format!("{kind}/{name}"), json!(speeds));
        }
    }
    println!("{}", Value::Object(all));
}

/// Returns the best speed of a few runs, in MB/s.
fn speed(preview: Preview, text: &str) -> f64 {
    let runs = (16_000 * KB / text.len()).clamp(2, 20);
    let once = || {
        let start = Instant::now();
        black_box(preview.show(black_box(text), BUDGET));
        start.elapsed().as_secs_f64()
    };
    text.len() as f64 / (0..runs).map(|_| once()).fold(f64::MAX, f64::min) / 1e6
}

type Line = fn(&mut String, usize);

/// Typical lines, and possibly slow ones: only names, identical lines, one endless line.
const KINDS: [(&str, Line); 7] = [
    ("source", |out, n| {
        let _ = writeln!(
            out,
            "{n:>6}→    let value_{} = store.read_range(from_{}..to)?; // the rest of it",
            n % 997,
            n % 31
        );
    }),
    ("log", |out, n| {
        let _ = writeln!(
            out,
            "2026-11-21T14:{:02}:07Z INFO worker-{} took {n} ms for /api/items/{n}",
            n % 60,
            n % 8
        );
    }),
    ("json in a line", |out, n| {
        let _ = write!(
            out,
            "{{\"id\":{n},\"user_name\":\"jane_{}\",\"tags\":[\"a\",\"b\"],\"score\":0.5}},",
            n % 513
        );
    }),
    ("names only", |out, n| {
        let _ = writeln!(out, "name_{n} src/part_{n}.rs");
    }),
    ("names in a line", |out, n| {
        let _ = write!(out, "n_{n:x}.aa");
    }),
    ("equal lines", |out, _| {
        out.push_str("the_same line, again_and again\n");
    }),
    ("no names", |out, _| {
        out.push_str("没有名字的一行文字，只有句子。\n");
    }),
];

fn text(line: Line, bytes: usize) -> String {
    let mut out = String::with_capacity(bytes + 200);
    for n in 0.. {
        if out.len() >= bytes {
            break;
        }
        line(&mut out, n);
    }
    out
}
