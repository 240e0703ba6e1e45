//! Texts that are the same in every run.

use std::fmt::Write;

use offcut_cli::trials::Random;

const NAMES: &str = "session ledger window budget render parse_header token_count is_open location backend store reader \
    offset limit pattern message conversation replacement original fingerprint preview hint policy threshold";
const TYPES: &str = "usize String Vec<u8> Option<&str> Result<(),Error> Arc<Mutex<State>> bool u64";

/// One of the words of `list`.
fn any<'l>(random: &mut Random, list: &'l str) -> &'l str {
    let count = list.split(' ').count();
    let mut words = list.split(' ');
    words.nth(random.below(count)).unwrap_or_default()
}

/// Source code of about `bytes` bytes.
pub fn code(random: &mut Random, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 200);
    while text.len() < bytes {
        let [a, b, c] = [0; 3].map(|_| any(random, NAMES));
        let [kind, other] = [0; 2].map(|_| any(random, TYPES));
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
        let [a, b] = [0; 2].map(|_| any(random, NAMES));
        let (id, size) = (random.below(1_000_000), random.below(100_000));
        let _ = write!(
            text,
            r#"{{"id":{id},"name":"{a}_{b}","size":{size},"tags":["{b}","v{size}"],"ok":true}},"#
        );
    }
    text.push_str("null]");
    text
}
