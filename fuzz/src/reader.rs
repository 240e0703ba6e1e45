//! Requests to read back: each is answered within the limit, only with the content it asks for, and
//! stores nothing.

use std::collections::HashSet;

use futures_util::StreamExt;
use offcut::agent::Tool;
use offcut::backend::{Backend, Key, Memory};
use offcut::hint::{Hint, Kind};
use offcut::preview::text::decoding::{is_utf16, text_of};
use offcut::{Part, TokenCounter, ToolCall, ToolOutput, ToolReduction};
use serde_json::{Value, json};

use crate::laws::block_on;

const LIMIT: usize = 1_500;
const SECRET: &str = "an unlikely secret";
/// More pages than fuzzed content has.
const PAGES: usize = 300;

/// Takes a first line with the arguments, in which `@` is the location of the content, and then the
/// content.
pub(crate) fn reader(data: &[u8]) {
    let at = data
        .iter()
        .position(|byte| *byte == b'\n')
        .unwrap_or(data.len());
    let (arguments, content) = (&data[..at], data.get(at + 1..).unwrap_or_default());
    let Ok(arguments) = std::str::from_utf8(arguments) else {
        return;
    };
    // Text from the input is not secret.
    if !String::from_utf8_lossy(data).contains(SECRET) {
        block_on(read(arguments, content));
    }
}

async fn read(arguments: &str, content: &[u8]) {
    let store = Memory::new();
    let builder = ToolReduction::builder()
        .backend(store.clone())
        .token_counter(TokenCounter::Estimate);
    let reduction = builder
        .max_length_for_trunc(LIMIT)
        .preview_length(0)
        .build()
        .unwrap()
        .session("s");
    let mut locations = Vec::new();
    // Its own content, and other sessions' content.
    for (key, content) in [
        ("s/trunc/a", content),
        ("trunc/a", SECRET.as_bytes()),
        ("elsewhere/b", SECRET.as_bytes()),
    ] {
        let key = Key::new(key).unwrap();
        store.put(&key, content.to_vec().into()).await.unwrap();
        locations.push(store.locate(&key).as_str().to_owned());
    }
    let asked = |location: &str| arguments.replace('@', location);
    for location in &locations {
        check(&reduction, &asked(location), content).await;
    }
    assert_eq!(
        store.list().collect::<Vec<_>>().await.len(),
        3,
        "reading stored something"
    );
    if let Ok(arguments) = serde_json::from_str::<Value>(&asked(&locations[0])) {
        read_through(&reduction, arguments, &locations[0], content).await;
    }
}

fn texts(parts: &[Part]) -> impl Iterator<Item = &str> {
    parts.iter().filter_map(|part| {
        if let Part::Text(text) = part {
            Some(text.as_str())
        } else {
            None
        }
    })
}

/// Checks R1 and R3.
async fn check(reduction: &ToolReduction, arguments: &str, content: &[u8]) {
    // Pages of UTF-16 are made of its text, and say the size of what is stored.
    let (text, stored) = (text_of(content), content.len() as u64);
    let content = if is_utf16(content) {
        text.as_bytes()
    } else {
        content
    };
    let call = ToolCall::new("call_1", "read_file", arguments);
    let answer: ToolOutput = reduction.read_file_tool().call(&call).await.into();
    let (parts, _) = answer.into_parts().await;
    let text: String = texts(&parts).collect();
    assert!(text.len() <= LIMIT, "{} bytes", text.len());
    assert!(!text.contains(SECRET), "{text:?}");
    let again = reduction
        .truncate(&call, ToolOutput::parts(parts.clone()))
        .await
        .unwrap();
    assert_eq!(again.parts, parts, "an answer was truncated");
    // A query may print anything.
    let query =
        serde_json::from_str::<Value>(arguments).is_ok_and(|given| is_given(&given, "query"));
    let Some(page) = Hint::parse(&text).filter(|_| !query) else {
        return;
    };
    assert_eq!(page.bytes, stored);
    let Kind::Page { from } = page.kind else {
        return;
    };
    let line: usize = content
        .split_inclusive(|byte| *byte == b'\n')
        .take(from.line as usize - 1)
        .map(<[u8]>::len)
        .sum();
    // Invalid UTF-8 is shown with replacement characters, as is a character in which a page begins.
    let there = content
        .get(line + from.byte as usize..)
        .map(String::from_utf8_lossy);
    assert!(
        page.preview.is_empty() || there.is_some_and(|there| there.starts_with(&page.preview)),
        "{text:?}"
    );
}

fn is_given(arguments: &Value, name: &str) -> bool {
    arguments[name]
        .as_str()
        .is_some_and(|text| !text.is_empty())
}

/// R2: checks that all content can be read page by page, and that no page leads back.
async fn read_through(reduction: &ToolReduction, mut arguments: Value, path: &str, content: &[u8]) {
    let Some(given) = arguments.as_object_mut() else {
        return;
    };
    given.insert("path".into(), path.into());
    given.remove("offset");
    given.remove("query");
    let has_pattern = is_given(&arguments, "pattern");
    let (mut all, mut seen) = (String::new(), HashSet::new());
    for _ in 0..PAGES {
        let call = ToolCall::new("call_1", "read_file", arguments.to_string());
        let Ok(page) = reduction.read_file_tool().call(&call).await else {
            return;
        };
        let (parts, _) = page.into_parts().await;
        let Some(page) = texts(&parts).find_map(Hint::parse) else {
            return;
        };
        all.push_str(&page.preview);
        let Some((_, next)) = page.prose.split_once("offset ") else {
            let is_whole = has_pattern || all == text_of(content);
            assert!(is_whole, "{all:?} was read of {:?}", text_of(content));
            return;
        };
        let next = next.trim_end_matches('.').to_owned();
        arguments["offset"] = json!(next);
        assert!(seen.insert(next), "a page leads back");
    }
}
