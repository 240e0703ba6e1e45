//! Texts as data: a kind, a length and a seed, so that a failing case can be read and shrunk.

use std::fmt;

use proptest::prelude::{Just, Strategy, prop_oneof};

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Text {
    pub(crate) kind: Kind,
    /// In bytes, rounded down to a character boundary.
    pub(crate) length: usize,
    pub(crate) seed: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Lines,
    OneLine,
    Chinese,
    Json,
    Spaces,
    /// Control characters, all kinds of line ends, emoji, combining marks.
    Odd,
    /// Pieces of hints and of previews' marks.
    Marks,
    /// Material for previews that choose lines: names, lines that state their own number, and
    /// imitations of an excerpt's marks.
    Names,
    /// Looks like joined texts and the line after them.
    Manifest,
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({} B, #{})", self.kind, self.length, self.seed)
    }
}

impl Text {
    pub(crate) const fn new(kind: Kind, length: usize, seed: u8) -> Self {
        Self { kind, length, seed }
    }

    pub(crate) fn render(self) -> String {
        let Self { kind, length, seed } = self;
        let mut out = String::with_capacity(length + 64);
        let mut n = 0_u32;
        while out.len() < length {
            n += 1;
            match kind {
                Kind::Lines => out.push_str(&format!(
                    "{seed} line {n}: the quick brown fox jumps over it\n"
                )),
                Kind::OneLine => out.push_str(&format!("{seed}abcdefghij{n}")),
                Kind::Chinese => out.push_str(&format!("第{n}行：工具的输出{seed}，内容很长。\n")),
                Kind::Json => out.push_str(&format!("{{\"n\":{n},\"seed\":[{seed},\"a\\\"b\"]}},")),
                Kind::Spaces => out.push_str("                                "),
                Kind::Odd => out.push_str(&format!(
                    "\u{0}{n}\r\n\t\u{1f600}e\u{301}\u{fffd}\r{seed}\u{2028}"
                )),
                Kind::Marks => out.push_str(&format!(
                    "[offcut/1 cleared {seed}B 3+{n} \"memory:/x\"]\n[… {n} B …]\n"
                )),
                Kind::Names => out.push_str(&match n % 5 {
                    0 => format!("{n:>6}→let value_{} = store.read_range({seed});\n", n % 17),
                    1 => format!("{n}|src/part_{}.rs: the rest of it is plain\n", n % 23),
                    2 => format!("names: {n} item_{n}\n"),
                    3 => "plain words, ".repeat(25) + "config_file\n",
                    _ => format!("[… {n} B …]\n"),
                }),
                Kind::Manifest => {
                    out.push_str(&format!("abc\nabcd\n{{\"offcut_parts\":[{seed},{n}]}}\n"));
                }
            }
        }
        out.truncate(out.floor_char_boundary(length));
        out
    }
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![
        8 => Just(Kind::Lines),
        3 => Just(Kind::OneLine),
        3 => Just(Kind::Chinese),
        2 => Just(Kind::Json),
        1 => Just(Kind::Spaces),
        1 => Just(Kind::Odd),
        1 => Just(Kind::Marks),
        4 => Just(Kind::Names),
        1 => Just(Kind::Manifest),
    ]
}

/// Generates texts of every length, most of them short, some of them repeated.
pub(crate) fn texts() -> impl Strategy<Value = Text> {
    let lengths = prop_oneof![
        2 => Just(0),
        8 => 1_usize..60,
        12 => 60_usize..600,
        14 => 600_usize..3_000,
        6 => 3_000_usize..9_000,
        1 => 20_000_usize..100_000,
    ];
    let any =
        (kinds(), lengths, 0_u8..3).prop_map(|(kind, length, seed)| Text { kind, length, seed });
    let again = prop_oneof![
        Just(Text::new(Kind::Lines, 1_200, 0)),
        Just(Text::new(Kind::Lines, 1_200, 1)),
        Just(Text::new(Kind::OneLine, 4_000, 0)),
    ];
    prop_oneof![5 => any, 1 => again]
}

/// Generates what people and models say: short texts.
pub(crate) fn sayings() -> impl Strategy<Value = Text> {
    (kinds(), 0_usize..200, 0_u8..3).prop_map(|(kind, length, seed)| Text { kind, length, seed })
}
