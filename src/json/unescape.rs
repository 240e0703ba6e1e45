//! Meanings of strings with escapes.

/// The meaning of the characters between the quotes of a valid JSON string; `None` if it is not
/// valid Unicode: half of a surrogate pair without the other.
pub(crate) fn unescape(raw: &str) -> Option<String> {
    let mut meaning = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        meaning.push_str(&rest[..at]);
        let escape = *rest.as_bytes().get(at + 1)?;
        rest = &rest[at + 2..];
        meaning.push(match escape {
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = unit(rest)?;
                rest = &rest[4..];
                match first {
                    0xD800..0xDC00 => {
                        let second = unit(rest.strip_prefix("\\u")?)?;
                        rest = &rest[6..];
                        char::decode_utf16([first, second]).next()?.ok()?
                    }
                    first => char::from_u32(first.into())?,
                }
            }
            other => char::from(other),
        });
    }
    meaning.push_str(rest);
    Some(meaning)
}

fn unit(digits: &str) -> Option<u16> {
    u16::from_str_radix(digits.get(..4)?, 16).ok()
}
