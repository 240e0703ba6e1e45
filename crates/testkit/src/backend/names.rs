//! Clauses of the contract about keys and locations.

use std::collections::BTreeSet;

use offcut::backend::{Backend, Key};

use super::check::{Clause, key, noise};

pub(super) fn names_are_inverse(store: impl Backend) {
    let it = Clause::new(store, "inverse");
    let keys: BTreeSet<_> = sample_keys().into_iter().collect();
    let mut locations = BTreeSet::new();
    for key in &keys {
        let location = it.store.locate(key);
        it.equal(
            it.store.resolve(location.as_str()).as_ref(),
            Some(key),
            format_args!("resolving `{location}`"),
        );
        it.equal(
            it.store.locate(key),
            location.clone(),
            "locating a second time",
        );
        it.check(
            !location.as_str().contains(char::is_control),
            format_args!("{location:?} has control characters"),
        );
        locations.insert(location);
    }
    it.equal(locations.len(), keys.len(), "locating different keys");
}

pub(super) fn what_was_not_named_resolves_to_none(store: impl Backend) {
    let it = Clause::new(store, "inverse: foreign locations resolve to none");
    let named = key("trunc/call_1");
    let location = it.store.locate(&named);
    let location = location.as_str();
    let hostile = "|/|.|..|~|\0|trunc/call_1|./trunc/call_1|../trunc/call_1|/etc/passwd|file:///etc/passwd|\
        ../../../etc/cron.d/x|C:\\Windows\\win.ini|\\\\server\\share\\x|https://example.com/trunc/call_1|\
        memory:|memory:/|memory:/../x|memory:///trunc/call_1|s3://bucket/../x";
    let mut hostile: Vec<_> = hostile.split('|').map(String::from).collect();
    let suffixes = "/|/.|/..|/../call_2|/../../../etc/passwd|//x|\\x|\0|\0.txt|\n|\r\n| |.|?x|#x|%00|%2e|:1-20|\u{202e}|\
        呼";
    let suffixed = suffixes
        .split('|')
        .map(|suffix| format!("{location}{suffix}"));
    hostile.extend(suffixed);
    let prefixes = " |/|./|../|x|file://|\0|\n|\u{feff}";
    let prefixed = prefixes
        .split('|')
        .map(|prefix| format!("{prefix}{location}"));
    hostile.extend(prefixed);
    // In most stores, a location ends with the key. The text before the key is the store's root.
    if let Some(root) = location.strip_suffix(named.as_str()) {
        let inner = "../|./|/|x/../|trunc/../|%2e%2e/|..%2f|..\\|\0/|../../../../../../etc/";
        let inside = inner
            .split('|')
            .map(|inner| format!("{root}{inner}{named}"));
        hostile.extend(inside);
        hostile.push(root.to_owned());
        hostile.push(format!("{root}trunc//call_1"));
        hostile.push(format!("{root}trunc\\call_1"));
        hostile.push(format!("{root}trunc\u{ff0f}call_1"));
        hostile.push(format!("{root}.staging/call_1"));
        // Siblings of the root, with names that begin with the root's name.
        let stem = root.trim_end_matches('/');
        for neighbour in ["x", "-2", ".bak", "/..", " "] {
            hostile.push(format!("{stem}{neighbour}/{named}"));
        }
        hostile.push(format!("{stem}{named}"));
    }
    for text in hostile.iter().filter(|text| *text != location) {
        if let Some(found) = it.store.resolve(text) {
            // In some stores, some of these are valid locations. Such a text must be exactly the
            // location of the key that it resolves to.
            let named = it.store.locate(&found);
            it.check(
                named.as_str() == text,
                format_args!("{text:?} resolves to `{found}`, whose location is {named:?}"),
            );
        }
    }
}

fn sample_keys() -> Vec<Key> {
    let paths = "a|trunc/call_1|clear/call_1|trunc/call_1-args|s-1/clear/toolu_01A09q90qw90lq917835lq9|A|\
        TRUNC/Call_1|a.b/c..d/e-_.f|0|-|_|trunc/-rf|trunc/x.png|trunc/trunc/trunc|memory/x";
    let mut keys: Vec<_> = paths.split('|').map(key).collect();
    keys.push(key("k".repeat(Key::MAX_SEGMENT)));
    keys.push(key(["s"; 16].join("/")));
    keys.push(key([
        "d".repeat(224),
        "e".repeat(224),
        "f".repeat(224),
        "g".repeat(225),
    ]
    .join("/")));
    let alphabet = b"abcxyzABCXYZ0123456789._-";
    keys.extend((0..200).filter_map(|seed| {
        let draw = noise(24, seed);
        let path = draw.chunks(8).map(|segment| {
            segment
                .iter()
                .map(|byte| char::from(alphabet[usize::from(*byte) % alphabet.len()]))
                .collect::<String>()
        });
        Key::new(path.collect::<Vec<_>>().join("/")).ok()
    }));
    keys
}
