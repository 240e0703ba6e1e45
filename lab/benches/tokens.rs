//! The speed of counting tokens, against the plain encoders: bytes per second and ratios, in one
//! run.
//!
//! `cargo bench -p offcut-lab --bench tokens`. The last line is JSON.
// A bench that can't be set up has failed, and benches print.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::collections::HashSet;
use std::hint::black_box;

use offcut::TokenCounter;
use offcut_cli::trials::Random;
use offcut_lab::texts::{code, json as json_text};
use offcut_lab::{fastest, is_bench, time};
use serde_json::{Map, Value, json};

/// A counter with its name.
type Counter<'c> = (&'static str, &'c dyn Fn(&str) -> usize);

fn megabytes_per_second(count: &dyn Fn(&str) -> usize, text: &str, times: usize) -> f64 {
    let taken = fastest(&Vec::from_iter(
        (0..times).map(|_| time(|| black_box(count(black_box(text)))).0),
    ));
    text.len() as f64 / 1e6 / taken.as_secs_f64()
}

const HAN: [&str; 16] = [
    "结果",
    "已经",
    "存储",
    "在",
    "文件",
    "中",
    "，",
    "可以",
    "读取",
    "全部",
    "内容",
    "。",
    "模型",
    "调用",
    "工具",
    "上下文",
];

/// Chinese text of about `bytes` bytes.
fn chinese(random: &mut Random, bytes: usize) -> String {
    let mut text = String::new();
    while text.len() < bytes {
        text.push_str(HAN[random.below(HAN.len())]);
    }
    text
}

/// Base64 without line breaks.
fn base64(random: &mut Random, bytes: usize) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    (0..bytes)
        .map(|_| char::from(DIGITS[random.below(64)]))
        .collect()
}

fn main() {
    let ours = TokenCounter::O200kBase.build().unwrap();
    let plain = tiktoken_rs::o200k_base_singleton();
    let nothing = HashSet::new();
    ours.count("a"); // reads the tables
    // The method that does not panic on a million spaces.
    let count_plain = |text: &str| plain.count(text, &nothing).unwrap_or_default();
    let counters: [Counter<'_>; 2] = [
        ("offcut", &|text| usize::try_from(ours.count(text)).unwrap()),
        ("tiktoken-rs", &count_plain),
    ];
    let (bytes, times) = if is_bench() {
        (1 << 20, 7)
    } else {
        (1 << 14, 1)
    };
    let random = &mut Random::new(3);
    let ordinary = [
        ("source code", code(random, bytes)),
        ("JSON", json_text(random, bytes)),
        ("Chinese", chinese(random, bytes)),
        ("base64", base64(random, bytes)),
    ];
    let odd = [
        ("one letter", "a".repeat(bytes)),
        ("spaces", " ".repeat(bytes)),
        ("line feeds", "\n".repeat(bytes)),
        ("one Han letter", "字".repeat(bytes / 3)),
        ("equals signs", "=".repeat(bytes)),
        (
            "letters, no spaces",
            base64(random, bytes).replace(|c: char| !c.is_ascii_lowercase(), ""),
        ),
        ("marks on a letter", "e\u{301}".repeat(bytes / 3)),
        ("emoji", "👩‍👩‍👧".repeat(bytes / 18)),
    ];
    let mut lines = Map::new();
    println!("MB/s{:>22}{:>14}{:>14}", "", counters[0].0, counters[1].0);
    let mut slowest_ordinary = f64::MAX;
    for (index, (name, text)) in ordinary.iter().chain(&odd).enumerate() {
        let speeds = counters.map(|(_, count)| megabytes_per_second(count, text, times));
        println!("{name:<26}{:>14.1}{:>14.1}", speeds[0], speeds[1]);
        if index < ordinary.len() {
            slowest_ordinary = slowest_ordinary.min(speeds[0]);
        }
        let ratios =
            json!({"mb_per_s": round(speeds[0]), "of_tiktoken": round(speeds[0] / speeds[1])});
        lines.insert((*name).to_owned(), ratios);
    }
    lines.insert(
        "slowest_ordinary_mb_per_s".into(),
        round(slowest_ordinary).into(),
    );
    println!("{}", Value::Object(lines));
}

fn round(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}
