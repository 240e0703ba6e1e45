//! What objects are called.

use offcut::backend::Key;

/// Where a longer segment is broken, in bytes. `object_store` puts a mark behind the name of a file
/// that it is still writing, and file systems take 255 bytes in all.
const LONGEST: usize = 240;
/// Stands where a segment goes on. No key has it.
const BREAK: &str = "+/";

/// The name of the object under `key`: the key itself, but for segments of more than 240 bytes,
/// which this crate stores for no one but those who make up such keys.
pub(crate) fn of(key: &Key) -> String {
    let name = |segment: &str| match segment.split_at_checked(LONGEST) {
        Some((head, tail)) if !tail.is_empty() => format!("{head}{BREAK}{tail}"),
        _ => segment.to_owned(),
    };
    key.as_str()
        .split('/')
        .map(name)
        .collect::<Vec<_>>()
        .join("/")
}

/// Its inverse; `None` for what is not the name of a key.
pub(crate) fn key(name: &str) -> Option<Key> {
    let key = Key::new(name.replace(BREAK, "")).ok()?;
    (of(&key) == name).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_inverse() {
        let longest = ["a".repeat(255), "b".repeat(240), "c".repeat(241)].join("/");
        for path in ["trunc/call_1", &longest] {
            let made = Key::new(path).unwrap();
            assert_eq!(key(&of(&made)), Some(made));
        }
        assert_eq!(of(&Key::new("trunc/call_1").unwrap()), "trunc/call_1");
        assert!(
            of(&Key::new(longest).unwrap())
                .split('/')
                .all(|segment| segment.len() <= LONGEST + 1)
        );
        for foreign in [
            "a+/b",
            "trunc/+/x",
            ".offcut-create-only",
            "a b",
            "../x",
            "a+b",
        ] {
            assert_eq!(key(foreign), None, "{foreign}");
        }
    }
}
