//! Times and sizes as people write them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytesize::ByteSize;

/// Bytes of a token, for figures that nobody is billed by: tool output of coding agents has three to four.
pub(crate) const BYTES_PER_TOKEN: i64 = 4;

const TIMES: [(&str, u64); 5] = [
    ("s", 1),
    ("m", 60),
    ("h", 3_600),
    ("d", 86_400),
    ("w", 7 * 86_400),
];

/// Parses `90s`, `15m`, `24h`, `30d`, `2w`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let seconds = TIMES.iter().find_map(|(unit, worth)| {
        let number = text.strip_suffix(unit)?.trim_end();
        number.parse::<u64>().ok()?.checked_mul(*worth)
    });
    let seconds = seconds.ok_or("write a number with its unit: 90s, 15m, 24h, 30d, 2w")?;
    Ok(Duration::from_secs(seconds))
}

/// Parses `1000`, `500MB`, `10GiB`, as sizes in settings.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let size = text.parse::<ByteSize>().ok().map(|size| size.as_u64());
    // It rounds to the next size that there is.
    let is_rounded =
        |size: u64| size == u64::MAX || size == 0 && text.contains(|c| ('1'..='9').contains(&c));
    size.filter(|size| !is_rounded(*size))
        .ok_or_else(|| "write a number of bytes, or with a unit: 500MB, 10GiB".to_owned())
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    seconds(SystemTime::now())
}

/// The seconds from 1970 to `time`.
pub(crate) fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}

/// Formats the time since `since`, in the largest unit with a count of at least two.
pub(crate) fn age(since: SystemTime) -> String {
    let age = SystemTime::now().duration_since(since);
    span(age.unwrap_or_default().as_secs())
}

/// Formats seconds in the largest unit with a count of at least two.
pub(crate) fn span(seconds: u64) -> String {
    let (unit, worth) = TIMES
        .iter()
        .rev()
        .find(|(_, worth)| seconds >= 2 * worth)
        .unwrap_or(&TIMES[0]);
    format!("{}{unit}", seconds / worth)
}

/// Formats bytes in a suitable unit.
pub(crate) fn size(bytes: u64) -> String {
    ByteSize(bytes).display().si().to_string()
}

/// Formats a number with gaps between groups of three digits.
pub(crate) fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    if number < 0 { format!("-{text}") } else { text }
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Formats a number with a noun, with an `s` unless the number is 1.
pub(crate) fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_read_as_they_are_written() {
        assert_eq!(duration("30d"), Ok(Duration::from_secs(30 * 86_400)));
        assert_eq!(duration("15 m"), Ok(Duration::from_secs(900)));
        assert_eq!(
            (bytes("7"), bytes("500MB"), bytes("10GiB")),
            (Ok(7), Ok(500_000_000), Ok(10 << 30))
        );
        for wrong in [
            "",
            "30",
            "d",
            "-1d",
            "1.5h",
            "99999999999999999999s",
            "9999999999999999999w",
        ] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        for spelled in [
            "8k", "8K", "8kb", "8kB", "8KB", "8 KB", "8000 b", "0.008 MB",
        ] {
            assert_eq!(bytes(spelled), Ok(8_000), "{spelled}");
        }
        assert_eq!(bytes("8Ki"), Ok(8_192));
        for wrong in ["", "GB", "10 gallons", "-1", "0.5B", "99999999999TB"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            [0, 999, 1_500, 2_000_000_000].map(size),
            ["0 B", "999 B", "1.5 kB", "2.0 GB"]
        );
        assert_eq!(
            [0, 1, 2].map(|number| count(number, "line")),
            ["0 lines", "1 line", "2 lines"]
        );
        assert_eq!(
            age(SystemTime::now() - Duration::from_secs(3 * 86_400 + 9)),
            "3d"
        );
        assert_eq!(age(SystemTime::now() + Duration::from_secs(60)), "0s");
    }
}
