//! The model's view (H1–H3): every sentence in every language, and its cost.
#![cfg(feature = "tiktoken")]

use crate::common::{builder, call, clear, content, lines, round, text};
use offcut::backend::Memory;
use offcut::hint::{Hint, Sentence};
use offcut::{Language, TokenCounter};

/// A store whose locations are 40 bytes long.
fn store() -> Memory {
    Memory::named("home-user-project").unwrap_or_default()
}

#[tokio::test]
async fn h1_h2_the_envelope_is_short_in_both_languages() {
    for (language, most) in [(Language::English, 60), (Language::Chinese, 80)] {
        let reduction = builder(&store())
            .language(language)
            .max_length_for_trunc(1_000)
            .preview_length(0);
        let reduction = reduction.max_tokens_for_clear(10).build().unwrap();
        let shown = reduction
            .truncate(&call("call_12", "grep"), lines(10_000))
            .await
            .unwrap();
        let mut messages = [
            round("call_34", "grep", lines(10_000)),
            round("b", "f", "ok"),
        ]
        .concat();
        clear(&reduction, &mut messages).await;
        for hint in [shown.text().as_str(), text(content(&messages[1]))] {
            assert_eq!(
                Hint::parse(hint).unwrap().location.unwrap().as_str().len(),
                40
            );
            for counter in [TokenCounter::O200kBase, TokenCounter::Cl100kBase] {
                let tokens = counter.build().unwrap().count(hint);
                println!("{tokens} {counter:?} {hint}");
                assert!(tokens <= most, "{tokens}: {hint}");
            }
        }
    }
}

/// A sentence with the values that the table of its costs names.
fn filled(sentence: &str) -> String {
    let values = [
        ("tool", "grep"),
        ("mime", "image/png"),
        ("reader", "read_file"),
        ("parts", "12"),
        ("bytes", "51200"),
        ("first", "1"),
        ("last", "40"),
        ("next", "41"),
        ("count", "7"),
        ("matches", "9"),
    ];
    values
        .iter()
        .fold(sentence.to_owned(), |text, (name, value)| {
            text.replace(&format!("{{{name}}}"), value)
        })
}

#[test]
fn h2_the_table_of_sentences_has_each_and_its_cost() {
    let rules = include_str!("../../docs/rules.md");
    let counter = TokenCounter::O200kBase.build().unwrap();
    for &sentence in Sentence::ALL {
        let cells = [Language::English, Language::Chinese].map(|language| {
            let text = language.sentence(sentence);
            format!("{text} | {}", counter.count(&filled(text)))
        });
        let start = format!("  | `{}` | {}", sentence.name(), cells[0]);
        let row = rules.lines().find(|line| line.starts_with(&start));
        let row = row.unwrap_or_else(|| panic!("no row begins with {start}"));
        assert!(row.ends_with(&format!("| {} |", cells[1])), "{row}");
    }
}
