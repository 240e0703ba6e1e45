//! The names of objects.

use offcut::backend::Key;

/// Maximum length of an unbroken segment, in bytes. `object_store` appends a mark to the name of a
/// file that it is still writing, and file systems allow 255 bytes in all.
const LONGEST: usize = 240;
/// Marks the point where a segment is broken. No key contains it.
const BREAK: &str = "+/";

/// Returns the name of the object under `key`: the key itself, except that segments over 240 bytes
/// are broken. Only custom keys have such segments.
pub(crate) fn object_name(key: &Key) -> String {
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

/// The inverse of [`object_name`]; `None` if `name` is not the name of a key.
pub(crate) fn parse_object_name(name: &str) -> Option<Key> {
    let key = Key::new(name.replace(BREAK, "")).ok()?;
    (object_name(&key) == name).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_inverse() {
        let longest = ["a".repeat(255), "b".repeat(240), "c".repeat(241)].join("/");
        for path in ["trunc/call_1", &longest] {
            let made = Key::new(path).unwrap();
            assert_eq!(parse_object_name(&object_name(&made)), Some(made));
        }
        assert_eq!(
            object_name(&Key::new("trunc/call_1").unwrap()),
            "trunc/call_1"
        );
        assert!(
            object_name(&Key::new(longest).unwrap())
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
            assert_eq!(parse_object_name(foreign), None, "{foreign}");
        }
    }
}
