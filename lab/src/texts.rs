//! Texts that are the same in every run.

use std::fmt::Write;

use offcut_cli::trials::Random;

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
pub fn code(random: &mut Random, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 200);
    while text.len() < bytes {
        let [a, b, c] = [0; 3].map(|_| NAMES[random.below(NAMES.len())]);
        let [kind, other] = [0; 2].map(|_| TYPES[random.below(TYPES.len())]);
        let number = random.below(1000);
        let _ = match random.below(5) {
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
pub fn json(random: &mut Random, bytes: usize) -> String {
    let mut text = String::from("[");
    while text.len() < bytes {
        let [a, b] = [0; 2].map(|_| NAMES[random.below(NAMES.len())]);
        let (id, size) = (random.below(1_000_000), random.below(100_000));
        let _ = write!(
            text,
            r#"{{"id":{id},"name":"{a}_{b}","size":{size},"tags":["{b}","v{size}"],"ok":true}},"#
        );
    }
    text.push_str("null]");
    text
}

/// Chinese text of about `bytes` bytes.
pub fn chinese(random: &mut Random, bytes: usize) -> String {
    let mut text = String::new();
    while text.len() < bytes {
        text.push_str(HAN[random.below(HAN.len())]);
    }
    text
}

/// Base64 without line breaks.
pub fn base64(random: &mut Random, bytes: usize) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    (0..bytes)
        .map(|_| char::from(DIGITS[random.below(64)]))
        .collect()
}
