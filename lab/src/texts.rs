//! Texts that are the same in every run.

use std::fmt::Write;

/// Pseudorandom numbers that are the same in every run.
#[derive(Debug)]
pub struct Numbers(u64);

impl Numbers {
    /// Creates the sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Returns the next number, below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or_default() % limit
    }

    /// Returns one of these texts.
    pub fn pick<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.below(of.len())]
    }
}

const NAMES: [&str; 24] = [
    "session",
    "ledger",
    "window",
    "budget",
    "render",
    "parse_header",
    "token_count",
    "is_open",
    "location",
    "backend",
    "store",
    "reader",
    "offset",
    "limit",
    "pattern",
    "message",
    "conversation",
    "replacement",
    "original",
    "fingerprint",
    "preview",
    "hint",
    "policy",
    "threshold",
];
const TYPES: [&str; 8] = [
    "usize",
    "String",
    "Vec<u8>",
    "Option<&str>",
    "Result<(), Error>",
    "Arc<Mutex<State>>",
    "bool",
    "u64",
];
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

/// Source code of about `bytes` bytes.
pub fn code(numbers: &mut Numbers, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 200);
    while text.len() < bytes {
        let [a, b, c] = [0; 3].map(|_| numbers.pick(&NAMES));
        let [kind, other] = [0; 2].map(|_| numbers.pick(&TYPES));
        let number = numbers.below(1000);
        let _ = match numbers.below(5) {
            0 => writeln!(text, "    pub fn {a}(&self, {b}: {kind}) -> {other} {{"),
            1 => writeln!(
                text,
                "        let {a} = self.{b}.{c}({number}).unwrap_or_default();"
            ),
            2 => writeln!(
                text,
                "        if {a} > {number} && !{b}.is_empty() {{ return Err(Error::{c}); }}"
            ),
            3 => writeln!(
                text,
                "        // The {a} of a {b} is what the {c} was before it was replaced."
            ),
            _ => writeln!(text, "    }}\n"),
        };
    }
    text
}

/// One JSON document of about `bytes` bytes.
pub fn json(numbers: &mut Numbers, bytes: usize) -> String {
    let mut text = String::from("[");
    while text.len() < bytes {
        let [a, b] = [0; 2].map(|_| numbers.pick(&NAMES));
        let (id, size) = (numbers.below(1_000_000), numbers.below(100_000));
        let _ = write!(
            text,
            r#"{{"id":{id},"name":"{a}_{b}","size":{size},"tags":["{b}","v{size}"],"ok":true}},"#
        );
    }
    text.push_str("null]");
    text
}

/// Chinese text of about `bytes` bytes.
pub fn chinese(numbers: &mut Numbers, bytes: usize) -> String {
    let mut text = String::new();
    while text.len() < bytes {
        text.push_str(numbers.pick(&HAN));
    }
    text
}

/// Base64 without line breaks.
pub fn base64(numbers: &mut Numbers, bytes: usize) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    (0..bytes)
        .map(|_| char::from(DIGITS[numbers.below(64)]))
        .collect()
}
