//! L8: cached counts are never wrong after an edit, and conversations don't evict each other's.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use offcut::backend::Memory;
use offcut::format::{Message, Messages, Plain};
use offcut::report::Outcome;
use offcut::{Part, ToolCall, ToolReduction};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};

use super::{Violation, block_on, hold, require};

/// Depends on every byte and its position, so that an edit that keeps the length changes it.
fn weight(text: &str) -> u64 {
    text.bytes()
        .zip(1..)
        .map(|(byte, place): (u8, u64)| u64::from(byte) * (place % 13 + 1))
        .sum()
}

/// A change that a loop makes to its messages between passes. Indexes wrap around.
#[derive(Clone, Debug)]
enum Edit {
    /// Changes one byte of one text in place: the same string, address and length.
    Byte(usize, usize),
    /// Swaps two messages.
    Swap(usize, usize),
    Remove(usize),
    Push(String),
    /// Copies the text of one message to another.
    Copy(usize, usize),
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let place = 0_usize..10_000;
    let edit = prop_oneof![
        4 => (place.clone(), place.clone()).prop_map(|(message, byte)| Edit::Byte(message, byte)),
        1 => (place.clone(), place.clone()).prop_map(|(one, other)| Edit::Swap(one, other)),
        1 => place.clone().prop_map(Edit::Remove),
        2 => "[ab]{0,2000}".prop_map(Edit::Push),
        1 => (place.clone(), place).prop_map(|(from, to)| Edit::Copy(from, to)),
    ];
    vec(edit, 1..40)
}

fn text_of(message: &mut Message) -> &mut String {
    let (Message::User { content } | Message::Tool { content, .. }) = message else {
        panic!("no text")
    };
    let [Part::Text(text)] = &mut content[..] else {
        panic!("no text")
    };
    text
}

fn flip(text: &mut String, at: usize) {
    if text.is_empty() {
        return;
    }
    let mut bytes = std::mem::take(text).into_bytes();
    let at = at % bytes.len();
    bytes[at] ^= 3; // a and b change into each other
    *text = String::from_utf8(bytes).unwrap();
}

fn apply(edit: &Edit, messages: &mut Vec<Message>) {
    let count = messages.len();
    match edit {
        Edit::Push(text) => messages.push(Message::user(text.clone())),
        _ if count == 0 => {}
        Edit::Byte(message, at) => flip(text_of(&mut messages[message % count]), *at),
        Edit::Swap(one, other) => messages.swap(one % count, other % count),
        Edit::Remove(at) => drop(messages.remove(at % count)),
        Edit::Copy(from, to) => {
            let text = text_of(&mut messages[from % count]).clone();
            *text_of(&mut messages[to % count]) = text;
        }
    }
}

/// Counts after every edit and compares with a count without a cache. Each message adds 4 tokens.
fn count_after_edits(
    edits: &[Edit],
    mut count: impl FnMut(&mut Vec<Message>) -> u64,
) -> Result<(), Violation> {
    let mut messages = vec![
        Message::user("ab".repeat(600)),
        Message::user("ba".repeat(20)),
        Message::user("a"),
    ];
    for edit in edits {
        apply(edit, &mut messages);
        let expected: u64 = messages
            .iter_mut()
            .map(|message| 4 + weight(text_of(message)))
            .sum();
        let counted = count(&mut messages);
        require(counted == expected, "L8", || {
            format!("{counted} tokens, not {expected}, after {edit:.200?}")
        })?;
    }
    Ok(())
}

fn never_triggered() -> ToolReduction {
    let builder = ToolReduction::builder()
        .backend(Memory::new())
        .count_tokens_with(weight);
    builder.max_tokens_for_clear(u64::MAX).build().unwrap()
}

#[test]
fn l8_a_count_is_never_wrong_after_an_edit() {
    hold(20, edits, |edits| {
        let reduction = never_triggered();
        count_after_edits(&edits, |messages| {
            block_on(reduction.clear(Plain, messages))
                .unwrap()
                .tokens
                .unwrap()
                .counted
        })
    });
}

#[test]
fn l8_finds_counts_that_are_remembered_by_address_and_length() {
    let edits = [Edit::Byte(0, 7), Edit::Byte(0, 7)];
    let mut known = HashMap::new();
    let remembering = |messages: &mut Vec<Message>| {
        let cost = |message: &mut Message| {
            let text = text_of(message);
            4 + *known
                .entry((text.as_ptr() as usize, text.len()))
                .or_insert_with(|| weight(text))
        };
        messages.iter_mut().map(cost).sum()
    };
    let found = count_after_edits(&edits, remembering);
    assert_eq!(found.unwrap_err().law, "L8");
}

/// A loop passes in originals, one of which was edited since: the decision about the old text is
/// not applied to the new one.
#[test]
fn l8_a_decision_is_not_repeated_over_an_edited_text() {
    let cases = || {
        (
            vec(("[ab]{200,3000}", any::<usize>(), any::<bool>()), 2..8),
            Just(()),
        )
    };
    hold(10, cases, |(results, ())| {
        block_on(async {
            let builder = ToolReduction::builder()
                .backend(Memory::new())
                .count_tokens_with(|text: &str| text.len() as u64);
            let reduction = builder
                .max_tokens_for_clear(1)
                .clear_retention_suffix_limit(0)
                .build()
                .unwrap();
            let mut originals = Vec::new();
            for (number, (text, ..)) in results.iter().enumerate() {
                let call = ToolCall::new(format!("call_{number}"), "f", "{}");
                originals.extend([
                    Message::calls(vec![call.clone()]),
                    Message::tool(&call, vec![text.as_str().into()], false),
                ]);
            }
            originals.push(Message::assistant("done"));
            reduction
                .clear(Plain, &mut originals.clone())
                .await
                .unwrap();
            for (number, (_, at, is_edited)) in results.iter().enumerate() {
                if *is_edited {
                    flip(text_of(&mut originals[2 * number + 1]), *at);
                }
            }
            let mut sent = originals.clone();
            let report = reduction.clear(Plain, &mut sent).await.unwrap();
            for (number, (decision, (.., is_edited))) in
                report.decisions.iter().zip(&results).enumerate()
            {
                let expected = if *is_edited {
                    Outcome::Cleared
                } else {
                    Outcome::Repeated
                };
                require(decision.outcome == expected, "C13", || {
                    format!("{:?}, not {expected:?}", decision.outcome)
                })?;
                let shown = offcut::hint::Hint::parse(text_of(&mut sent[2 * number + 1])).unwrap();
                let stored = reduction
                    .read_original(&shown.location.unwrap())
                    .await
                    .unwrap()
                    .unwrap();
                let original = text_of(&mut originals[2 * number + 1]);
                require(stored == original.as_bytes(), "L1", || {
                    format!("result {number} is stored as something else")
                })?;
            }
            Ok(())
        })
    });
}

/// Generates turns: the number of a conversation, and of the text that it gets.
fn turns() -> impl Strategy<Value = Vec<(usize, u16)>> {
    vec((0_usize..6, 0_u16..400), 1..120)
}

/// Lets several conversations take turns with texts that they may share. Counts the texts that
/// reach the counter.
fn count_in_parallel(
    turns: &[(usize, u16)],
    sessions: &[ToolReduction],
    counted: &Mutex<Vec<String>>,
) -> Result<(), Violation> {
    let mut conversations =
        vec![vec![Message::system("the same for all".repeat(30))]; sessions.len()];
    let mut distinct = BTreeSet::from(["the same for all".repeat(30)]);
    for (who, text) in turns {
        let text = format!("text number {text}, ").repeat(5);
        conversations[*who].push(Message::user(text.clone()));
        distinct.insert(text);
        for (session, messages) in sessions.iter().zip(&mut conversations) {
            block_on(session.clear(Plain, messages)).unwrap();
        }
    }
    let counted = counted.lock().unwrap();
    require(counted.len() == distinct.len(), "L8", || {
        format!(
            "{} distinct texts were counted {} times",
            distinct.len(),
            counted.len()
        )
    })
}

#[test]
fn l8_parallel_conversations_share_counts_and_displace_none() {
    hold(2, turns, |turns| {
        let counted = Arc::new(Mutex::new(Vec::new()));
        let counter = {
            let counted = Arc::clone(&counted);
            move |text: &str| {
                counted.lock().unwrap().push(text.to_owned());
                text.len() as u64
            }
        };
        let builder = ToolReduction::builder()
            .backend(Memory::new())
            .count_tokens_with(counter);
        let reduction = builder.max_tokens_for_clear(u64::MAX).build().unwrap();
        let sessions: Vec<_> = (0..6)
            .map(|number| reduction.session(&number.to_string()))
            .collect();
        count_in_parallel(&turns, &sessions, &counted)?;
        // The same holds without sessions, where no text is new.
        let alone = vec![reduction.session("7"); 6];
        count_in_parallel(&turns, &alone, &counted)
    });
}

#[test]
fn l8_finds_conversations_that_do_not_share() {
    let counted = Arc::new(Mutex::new(Vec::new()));
    let separate: Vec<_> = (0..6)
        .map(|_| {
            let counted = Arc::clone(&counted);
            let counter = move |text: &str| {
                counted.lock().unwrap().push(text.to_owned());
                text.len() as u64
            };
            let builder = ToolReduction::builder()
                .backend(Memory::new())
                .count_tokens_with(counter);
            builder.max_tokens_for_clear(u64::MAX).build().unwrap()
        })
        .collect();
    assert_eq!(
        count_in_parallel(&[(0, 1), (1, 1)], &separate, &counted)
            .unwrap_err()
            .law,
        "L8"
    );
}

#[test]
fn l8_threads_share_one_conversation_each() {
    let reduction = never_triggered();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let session = reduction.session(&thread.to_string());
            scope.spawn(move || {
                let mut messages = Vec::new();
                let mut expected = 0;
                for turn in 0..60 {
                    let text = format!("{}", turn * (thread % 2 + 1)).repeat(40);
                    expected += 4 + weight(&text);
                    messages.push(Message::user(text));
                    let report = block_on(session.clear(Plain, &mut messages)).unwrap();
                    assert_eq!(report.tokens.unwrap().counted, expected);
                    assert_eq!(
                        session.count_tokens(&Messages::new(Plain, &mut messages), &[]),
                        expected
                    );
                }
            });
        }
    });
}
