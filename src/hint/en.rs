//! The sentences in English.

use super::prose::Prose;

pub(super) const ENGLISH: Prose = Prose {
    truncated: "Stored in full.",
    joined: "It was {parts} texts; the first stored line gives their lengths.",
    unsaved: "It could not be stored; what is not shown is lost.",
    interrupted: "The tool's output broke off after {bytes} bytes.",
    not_utf8: "It is not UTF-8; \u{fffd} stands for invalid bytes.",
    local: "The store failed, so this is a file on the agent's machine.",
    cleared: "Old result of {tool}.",
    cleared_media: "Old {mime} from {tool}.",
    cleared_link: "Old link from {tool}.",
    cleared_arguments: "Old arguments of {tool}.",
    gone: "Old result of {tool}, removed and not stored. Call {tool} again if you need it.",
    reader: "Read it with {reader}.",
    page: "Lines {first}-{last}.",
    page_of_one: "Line {first}.",
    page_in_line: "Part of line {first}.",
    page_of_nothing: "Nothing from line {first} on.",
    next: "Go on with offset {next}.",
    matches: "Matching lines: {count}.",
    more_matches: "Matching lines so far: {count}. Go on with offset {next}.",
};
