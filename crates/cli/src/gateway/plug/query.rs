//! The lines of a text that a query is about.

/// The most words of a query that count.
const MAX_WORDS: usize = 16;

/// The query of a request, decoded; `None` if there is none or it is empty.
pub(super) fn of(query: &str) -> Option<String> {
    let mut pairs = query.split('&');
    let value = pairs.find_map(|pair| pair.strip_prefix("query="))?;
    // Wrong encodings stay as they are.
    let value = value.replace('+', " ");
    let value = percent_encoding::percent_decode_str(&value).decode_utf8_lossy();
    (!value.trim().is_empty()).then(|| value.into_owned())
}

/// The lines that have a word of the query, each with its number; `None` if none has one, or if they
/// are not shorter than the text.
pub(super) fn lines(text: &str, query: &str) -> Option<String> {
    let words = query.split_whitespace().take(MAX_WORDS);
    let words: Vec<String> = words.map(str::to_lowercase).collect();
    let has_word = |line: &str| {
        let line = line.to_lowercase();
        words.iter().any(|word| line.contains(word.as_str()))
    };
    let matching: Vec<_> = text
        .lines()
        .enumerate()
        .filter(|(_, line)| has_word(line))
        .map(|(at, line)| format!("{}: {line}", at + 1))
        .collect();
    let (count, all) = (matching.len(), text.lines().count());
    let shown = format!(
        "Lines with a word of the query: {count} of {all}. Without a query, all of it is read.\n{}",
        matching.join("\n")
    );
    (count > 0 && shown.len() < text.len()).then_some(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded() {
        assert_eq!(of("query=a+b%20c%C3%A4"), Some("a b cä".to_owned()));
        assert_eq!(of("x=1&query=100%"), Some("100%".to_owned()));
        assert_eq!(of("query=%zz%4"), Some("%zz%4".to_owned()));
        assert_eq!(of("query=+"), None);
        assert_eq!(of("other=a"), None);
    }

    #[test]
    fn lines_with_any_word_are_shown_with_their_numbers() {
        let text = "all fine\n".repeat(30) + "Error: disk\nwarning: cpu\n";
        assert_eq!(
            lines(&text, "ERROR cpu").unwrap(),
            "Lines with a word of the query: 2 of 32. Without a query, all of it is read.\n31: Error: disk\n32: warning: cpu"
        );
        assert_eq!(lines(&text, "nothing"), None);
        assert_eq!(lines(&text, "fine"), None, "no shorter than the text");
    }
}
