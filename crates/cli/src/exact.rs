//! Reads JSON only if nothing gets lost: no duplicate keys, and no numbers with more digits than
//! are kept.

use std::collections::HashSet;
use std::fmt;

use serde::de::{
    Deserialize, DeserializeOwned, Deserializer, Error, MapAccess, SeqAccess, Visitor,
};
use serde_json::Value;

/// Reads `text`, or describes what can't be read or would be lost.
pub(crate) fn from_slice<T: DeserializeOwned>(text: &[u8]) -> Result<T, String> {
    let said = |error: serde_json::Error| error.to_string();
    serde_json::from_slice::<DistinctKeys>(text).map_err(said)?;
    if let Some(at) = first_inexact(text) {
        let line = text[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = at
            - text[..at]
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |feed| feed + 1)
            + 1;
        return Err(format!(
            "a number has more digits than can be kept at line {line} column {column}"
        ));
    }
    serde_json::from_slice(text).map_err(said)
}

/// Any JSON without duplicate keys.
struct DistinctKeys;

impl<'de> Deserialize<'de> for DistinctKeys {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for DistinctKeys {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self, A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = fields.next_key::<String>()? {
            if !names.insert(name) {
                return Err(A::Error::custom("an object has a key twice"));
            }
            fields.next_value::<Self>()?;
        }
        Ok(self)
    }
}

/// Returns the offset of the first number in valid JSON that changes when it is read.
fn first_inexact(text: &[u8]) -> Option<usize> {
    let is_digit =
        |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E');
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                at += 1;
                while let Some(inside) = text.get(at).filter(|byte| **byte != b'"') {
                    at += if *inside == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'-' | b'0'..=b'9' => {
                let rest = text.get(at..)?;
                let number = rest.get(
                    ..rest
                        .iter()
                        .position(|byte| !is_digit(byte))
                        .unwrap_or(rest.len()),
                )?;
                let read = serde_json::from_slice::<Value>(number).map(|read| read.to_string());
                if !read.is_ok_and(|read| decimal(read.as_bytes()) == decimal(number)) {
                    return Some(at);
                }
                at += number.len();
            }
            _ => at += 1,
        }
    }
    None
}

/// Splits a number into its digits, without zeros around them, and the power of ten of its last
/// digit.
fn decimal(number: &[u8]) -> Option<(Vec<u8>, i64)> {
    let number = number.strip_prefix(b"-").unwrap_or(number);
    let split = number
        .iter()
        .position(|byte| matches!(byte, b'e' | b'E'))
        .unwrap_or(number.len());
    let (mantissa, exponent) = number.split_at(split);
    let mut power: i64 = match exponent.get(1..) {
        Some(digits) => str::from_utf8(digits).ok()?.parse().ok()?,
        None => 0,
    };
    if let Some(point) = mantissa.iter().position(|byte| *byte == b'.') {
        power = power.checked_sub(i64::try_from(mantissa.len() - point - 1).ok()?)?;
    }
    let digits = mantissa
        .iter()
        .copied()
        .filter(u8::is_ascii_digit)
        .skip_while(|digit| *digit == b'0');
    let mut digits: Vec<u8> = digits.collect();
    while digits.last() == Some(&b'0') {
        digits.pop();
        power = power.checked_add(1)?;
    }
    Some(if digits.is_empty() {
        (digits, 0)
    } else {
        (digits, power)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_that_would_lose_something_is_refused() {
        for text in [
            "[0, -0, 1.00, 1E5, 0.1e1, 1e-7, 18446744073709551615, 0.30000000000000004, 1.5e300]",
            r#"{"a\"1e999": "9\\"}"#,
        ] {
            assert_eq!(from_slice::<Value>(text.as_bytes()).err(), None, "{text}");
        }
        for (text, problem) in [
            (
                "[1,\n 123456789012345678901]",
                "a number has more digits than can be kept at line 2 column 2",
            ),
            ("[0.10000000000000000555]", "a number has more digits"),
            ("[1e-400]", "a number has more digits"),
            ("[1e400]", "number out of range"),
            (
                r#"[{"a": 1, "\u0061": 2}]"#,
                "an object has a key twice at line 1 column 18",
            ),
            ("[1", "EOF"),
        ] {
            let error = from_slice::<Value>(text.as_bytes()).unwrap_err();
            assert!(error.starts_with(problem), "{text}: {error}");
        }
    }
}
