//! Other spellings of the characters of names, as used in JSON, URLs, HTML and Markdown.

/// Decodes what follows a sign: the character and the number of bytes read.
type LayerDecoder = fn(&[u8]) -> Option<(u8, usize)>;

/// Decodes one layer of `from` into `to`. Returns whether there was anything to decode, which makes it shorter.
///
/// Takes linear time. JSON in JSON, which doubles the backslashes and puts one more before what it escapes, percent signs
/// that were encoded again and ampersands that were escaped again count as one layer, however deep: otherwise the
/// text could choose the number of passes.
pub(super) fn read_layer(from: &[u8], to: &mut Vec<u8>) -> bool {
    to.clear();
    let mut rest = from;
    while let [sign, after @ ..] = rest {
        rest = after;
        let (again, read): (&[u8], LayerDecoder) = match sign {
            b'\\' => (b"\\", after_backslash),
            b'%' => (b"25", |digits| Some((code(digits.get(..2)?, 16)?, 2))),
            b'&' => (b"amp;", reference),
            _ => {
                to.push(*sign);
                continue;
            }
        };
        while starts_with(rest, again) {
            rest = &rest[again.len()..];
        }
        let spelled = read(rest).filter(|(character, _)| is_part(*character));
        let (character, length) = spelled.unwrap_or((*sign, 0));
        to.push(character);
        rest = &rest[length..];
    }
    to.len() < from.len()
}

fn starts_with(text: &[u8], beginning: &[u8]) -> bool {
    text.get(..beginning.len())
        .is_some_and(|text| text.eq_ignore_ascii_case(beginning))
}

/// Decodes JSON, and Markdown's `call\_1`. Like the other decoders, returns the character and the number of bytes read.
fn after_backslash(from: &[u8]) -> Option<(u8, usize)> {
    match from {
        [byte @ (b'/' | b'.' | b'_' | b'-'), ..] => Some((*byte, 1)),
        [b'u' | b'U', digits @ ..] => Some((code(digits.get(..4)?, 16)?, 5)),
        _ => None,
    }
}

/// HTML's names for characters that names or their spellings hold. Two of them stand for the hyphen
/// that is not ASCII.
const NAMES: [(&[u8], u8); 10] = [
    (b"sol;", b'/'),
    (b"lowbar;", b'_'),
    (b"underbar;", b'_'),
    (b"hyphen;", b'-'),
    (b"dash;", b'-'),
    (b"period;", b'.'),
    (b"bsol;", b'\\'),
    (b"percnt;", b'%'),
    (b"num;", b'#'),
    (b"semi;", b';'),
];

/// Decodes what follows the ampersand in `&sol;`, `&#047;` or `&#x2f;`.
fn reference(from: &[u8]) -> Option<(u8, usize)> {
    let (digits, radix) = match from {
        [b'#', b'x' | b'X', digits @ ..] => (digits, 16),
        [b'#', digits @ ..] => (digits, 10),
        _ => {
            let is_it = |(name, _): &&(&[u8], u8)| starts_with(from, name);
            return NAMES
                .iter()
                .find(is_it)
                .map(|(name, means)| (*means, name.len()));
        }
    };
    let zeros = digits.iter().take_while(|byte| **byte == b'0').count();
    let digits = &digits[zeros..];
    let end = digits.iter().take(4).position(|byte| *byte == b';')?;
    Some((
        code(&digits[..end], radix)?,
        from.len() - digits.len() + end + 1,
    ))
}

/// Reads the number of a character.
fn code(digits: &[u8], radix: u32) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()
}

/// Returns true if `byte` may be part of a name, of the path before it, or of another spelling of
/// these.
pub(super) fn is_part(byte: u8) -> bool {
    is_of_path(byte) || matches!(byte, b'\\' | b'%' | b'&' | b'#' | b';')
}

/// Returns true if `byte` is a character of keys, or a slash.
pub(super) fn is_of_path(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes this many layers.
    fn read(text: &str, layers: usize) -> String {
        let mut text = text.as_bytes().to_vec();
        for _ in 0..layers {
            let mut to = Vec::new();
            read_layer(&text, &mut to);
            text = to;
        }
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn w3_every_spelling_is_read() {
        for (spelled, means) in [
            (r"\u002f\u002F\\\\u002f\/\\\/", "/////"),
            (r"\u0063all\_1\-2\.3", "call_1-2.3"),
            ("%2f%2F%252f%2525252F", "////"),
            ("%63all%5F1%2d2", "call_1-2"),
            (
                "&sol;&#47;&#047;&#x2f;&#X000000000000000002F;&amp;sol;&amp;amp;#47;",
                "///////",
            ),
            ("&lowbar;&UnderBar;&hyphen;&dash;&period;&bsol;", "__--.\\"),
            (r"\\u003e%252520%2525zz&amp;AMP;lt;", r"\u003e%20%zz&lt;"),
            // Not characters of names, or not escapes.
            (r"\n\u003e\u12\x2f\", r"\n\u003e\u12\x2f\"),
            ("%20%zz%2", "%20%zz%2"),
            (
                "&lt;&#60;&#;&#x;&#99999999999;&nosuch;&#47",
                "&lt;&#60;&#;&#x;&#99999999999;&nosuch;&#47",
            ),
            (r"\\\\n%25&amp;", r"\n%&"),
            ("", ""),
        ] {
            assert_eq!(read(spelled, 1), means, "{spelled}");
        }
    }

    #[test]
    fn w3_layers_of_several_kinds_are_read_one_after_the_other() {
        for (spelled, layers) in [
            (r"\u0026#47;", 2),
            ("%26%2347%3B", 2),
            ("&#x25;&#x32;&#x46;", 2),
            ("%5C%2F", 2),
            (r"\u0026#37;5Cu002f", 4),
            (r"\\u0025\\u0032\\u0036sol%3b", 3),
        ] {
            assert_eq!(read(spelled, layers), "/", "{spelled}");
        }
    }

    #[test]
    fn w3_unescaping_never_lengthens_a_text() {
        for part in [
            "%25", "%", "\\", "&amp;", "&#0", "\\u002f", "&sol;", "&#47;x",
        ] {
            let (text, mut to) = (part.repeat(1_000), Vec::new());
            read_layer(text.as_bytes(), &mut to);
            assert!(to.len() <= text.len(), "{part}");
        }
    }
}
