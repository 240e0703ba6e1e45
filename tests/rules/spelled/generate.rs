//! JSON texts of every spelling: odd escapes, duplicate keys, numbers that no type holds, half
//! surrogate pairs, whitespace everywhere.

use proptest::prelude::*;

pub(crate) fn space() -> impl Strategy<Value = String> {
    prop_oneof![4 => Just(String::new()), 1 => "[ \n\r\t]{1,3}"]
}

pub(crate) fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::sample::select(vec![
            "0",
            "-0",
            "1.00",
            "1E5",
            "1e+400",
            "-1e-400",
            "0.1e1",
            "1000000000000000000001"
        ])
        .prop_map(str::to_owned),
        "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,4})?",
    ]
}

/// Generates the text between the quotes of a string. Half pairs make it invalid Unicode.
pub(crate) fn inside() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => "[a-z \u{e9}\u{1f600}\u{7f}]{1,40}",
        1 => proptest::sample::select(vec![
            "\\\"", "\\\\", "\\/", "\\b", "\\f", "\\n", "\\r", "\\t", "\\u0000", "\\u00e9", "\\u00E9", "\\ud83d\\ude00", "\\uD83D",
            "\\ude00", "\\ud83d\\n", "\\u2028",
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

pub(crate) fn string() -> impl Strategy<Value = String> {
    inside().prop_map(|inside| format!("\"{inside}\""))
}

/// Joins members that are JSON text into a list or an object.
pub(crate) fn joined(open: char, members: &[String], spaces: &[String], close: char) -> String {
    let mut spaces = spaces.iter().cycle();
    let mut space = || spaces.next().cloned().unwrap_or_default();
    let mut text = String::from(open);
    for (nth, member) in members.iter().enumerate() {
        if nth > 0 {
            text.push(',');
        }
        text.push_str(&space());
        text.push_str(member);
        text.push_str(&space());
    }
    text.push_str(&space());
    text.push(close);
    text
}

/// Generates any JSON. Objects have few different keys, so that some occur twice.
pub(crate) fn json() -> impl Strategy<Value = String> {
    let word = proptest::sample::select(vec!["null", "true", "false"]).prop_map(str::to_owned);
    let leaf = prop_oneof![word, number(), string()];
    leaf.prop_recursive(4, 24, 5, |inner| {
        let spaces = || prop::collection::vec(space(), 3);
        let key = prop_oneof![4 => "\"[abc]\"", 1 => "\"\\\\u006[123]\"", 1 => string()];
        let field = (key, space(), space(), inner.clone())
            .prop_map(|(key, one, two, value)| format!("{key}{one}:{two}{value}"));
        prop_oneof![
            (prop::collection::vec(inner, 0..5), spaces())
                .prop_map(|(items, spaces)| joined('[', &items, &spaces, ']')),
            (prop::collection::vec(field, 0..5), spaces())
                .prop_map(|(fields, spaces)| joined('{', &fields, &spaces, '}')),
        ]
    })
}
