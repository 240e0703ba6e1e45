//! Other spellings of the characters of names, as used in JSON, URLs, HTML and Markdown.

/// Decodes one layer of `from` into `to`. Returns whether there was anything to decode.
///
/// Takes linear time, and `to` is never longer than `from`. JSON in JSON, percent signs that were
/// encoded again and ampersands that were escaped again count as one layer, however deep: otherwise
/// the text could choose the number of passes.
pub(super) fn read_layer(from: &[u8], to: &mut Vec<u8>) -> bool {
    to.clear();
    let (mut at, mut is_spelled) = (0, false);
    while let Some(&byte) = from.get(at) {
        let rest = &from[at..];
        let length = match byte {
            b'\\' => after_backslashes(rest, to),
            b'%' => percent(rest, to),
            b'&' => reference(rest, to),
            _ => None,
        };
        is_spelled |= length.is_some();
        at += length.unwrap_or_else(|| {
            to.push(byte);
            1
        });
    }
    is_spelled
}

/// Returns true if `byte` may be part of a name, of the path before it, or of another spelling of
/// these.
pub(super) fn is_part(byte: u8) -> bool {
    PARTS[usize::from(byte)]
}

/// Returns true if `byte` is a character of keys, or a slash.
pub(super) fn is_of_path(byte: u8) -> bool {
    is_part(byte) && !matches!(byte, b'\\' | b'%' | b'&' | b'#' | b';')
}

/// A table, because every byte of every transcript is looked up.
const PARTS: [bool; 256] = {
    let (mut parts, mut byte) = ([false; 256], 0);
    while byte < 128 {
        let others = matches!(
            byte,
            b'.' | b'_' | b'-' | b'/' | b'\\' | b'%' | b'&' | b'#' | b';'
        );
        parts[byte as usize] = byte.is_ascii_alphanumeric() || others;
        byte += 1;
    }
    parts
};

/// Writes the character with this code, if names may hold it.
fn character(code: u32, to: &mut Vec<u8>) -> Option<()> {
    let byte = u8::try_from(code).ok().filter(|byte| is_part(*byte))?;
    to.push(byte);
    Some(())
}

/// Decodes JSON, nested to any depth: each level doubles the backslashes and puts one more before
/// what it escapes. Also decodes Markdown's `call\_1`. Like the other decoders, returns the number
/// of bytes read.
fn after_backslashes(from: &[u8], to: &mut Vec<u8>) -> Option<usize> {
    let backslashes = from.iter().take_while(|byte| **byte == b'\\').count();
    match &from[backslashes..] {
        [byte @ (b'/' | b'.' | b'_' | b'-'), ..] => {
            to.push(*byte);
            Some(backslashes + 1)
        }
        [b'u' | b'U', digits @ ..]
            if code(digits, 4).is_some_and(|code| character(code, to).is_some()) =>
        {
            Some(backslashes + 5)
        }
        _ if backslashes > 1 => {
            to.push(b'\\');
            Some(backslashes)
        }
        _ => None,
    }
}

/// Decodes URLs. `%25` is a percent sign, so `%252F` stands for `%2F`.
fn percent(from: &[u8], to: &mut Vec<u8>) -> Option<usize> {
    let mut sign = 1;
    while from[sign..].starts_with(b"25") {
        sign += 2;
    }
    if code(&from[sign..], 2).is_some_and(|code| character(code, to).is_some()) {
        return Some(sign + 2);
    }
    (sign > 1).then(|| {
        to.push(b'%');
        sign
    })
}

/// Decodes HTML. `&amp;` is an ampersand, so `&amp;sol;` stands for `&sol;`.
fn reference(from: &[u8], to: &mut Vec<u8>) -> Option<usize> {
    const AMPERSAND: &[u8] = b"amp;";
    let mut sign = 1;
    while from[sign..]
        .get(..AMPERSAND.len())
        .is_some_and(|name| name.eq_ignore_ascii_case(AMPERSAND))
    {
        sign += AMPERSAND.len();
    }
    if let Some(length) = numbered(&from[sign..], to).or_else(|| named(&from[sign..], to)) {
        return Some(sign + length);
    }
    (sign > 1).then(|| {
        to.push(b'&');
        sign
    })
}

/// Decodes what follows the ampersand in `&#047;` or `&#x2f;`.
fn numbered(from: &[u8], to: &mut Vec<u8>) -> Option<usize> {
    let (radix, begin) = match from {
        [b'#', b'x' | b'X', ..] => (16, 2),
        [b'#', ..] => (10, 1),
        _ => return None,
    };
    let zeros = from[begin..]
        .iter()
        .take_while(|byte| **byte == b'0')
        .count();
    let digits = &from[begin + zeros..];
    let end = digits.iter().take(4).position(|byte| *byte == b';')?;
    character(number(&digits[..end], radix)?, to)?;
    Some(begin + zeros + end + 1)
}

/// HTML's names for characters that names or their spellings hold. Two of them stand for the hyphen
/// that is not ASCII.
const NAMES: [(&str, &str); 11] = [
    ("sol", "/"),
    ("lowbar", "_"),
    ("underbar", "_"),
    ("hyphen", "-"),
    ("dash", "-"),
    ("period", "."),
    ("fjlig", "fj"),
    ("bsol", "\\"),
    ("percnt", "%"),
    ("num", "#"),
    ("semi", ";"),
];

/// Decodes what follows the ampersand in `&sol;`.
fn named(from: &[u8], to: &mut Vec<u8>) -> Option<usize> {
    let end = from.iter().take(9).position(|byte| *byte == b';')?;
    let (_, means) = NAMES
        .iter()
        .find(|(name, _)| from[..end].eq_ignore_ascii_case(name.as_bytes()))?;
    to.extend_from_slice(means.as_bytes());
    Some(end + 1)
}

/// Reads a number from the first `length` bytes, as hexadecimal digits.
fn code(from: &[u8], length: usize) -> Option<u32> {
    number(from.get(..length)?, 16)
}

fn number(digits: &[u8], radix: u32) -> Option<u32> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u32, |number, digit| {
        number
            .checked_mul(radix)?
            .checked_add(char::from(*digit).to_digit(radix)?)
    })
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
            ("&lowbar;&UnderBar;&hyphen;&dash;&period;&fjlig;", "__--.fj"),
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
