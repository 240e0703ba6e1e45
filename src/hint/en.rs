//! The sentences in English.

use crate::hint::sentence::{Sentence, Words};

pub(crate) const ENGLISH: Words = Words {
    sentence: english,
    tool: "an unnamed tool",
    media: "media",
    space: " ",
};

fn english(sentence: Sentence) -> &'static str {
    match sentence {
        Sentence::Truncated => "Stored in full.",
        Sentence::Joined => "It was {parts} texts; the last stored line gives their lengths.",
        Sentence::Unsaved => "It could not be stored; what is not shown is lost.",
        Sentence::Interrupted => "The tool's output broke off after {bytes} bytes.",
        Sentence::NotUtf8 => "It is not UTF-8; \u{fffd} stands for invalid bytes.",
        Sentence::Cleared => "Old result of {tool}.",
        Sentence::ClearedMedia => "Old {mime} from {tool}.",
        Sentence::ClearedLink => "Old link from {tool}.",
        Sentence::ClearedArguments => "Old arguments of {tool}.",
        Sentence::ClearedUserText => "Old text of the user.",
        Sentence::Gone => {
            "Old result of {tool}, removed and not stored. Call it again if you need it."
        }
        Sentence::Reader => "Read it with {reader}.",
        Sentence::Page => "Lines {first}-{last}.",
        Sentence::PageOfOne => "Line {first}.",
        Sentence::PageInLine => "Part of line {first}.",
        Sentence::PageOfNothing => "No lines from {first} on.",
        Sentence::Next => "Continue with offset {next}.",
        Sentence::Matches => "Matching lines: {count}.",
        Sentence::MoreMatches => "Matching lines so far: {count}. Continue with offset {next}.",
    }
}
