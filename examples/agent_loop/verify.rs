//! The proof that nothing was lost: everything stored is read back and compared with the originals.

use std::collections::{BTreeMap, BTreeSet};

use offcut::agent::Tool;
use offcut::backend::Location;
use offcut::format::Message;
use offcut::hint::Hint;
use offcut::report::{Outcome, Subject};
use offcut::{Body, ToolReduction};

use crate::messages::text_of;
use crate::tally::{Original, Tally};

/// The outcome of reading everything back.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// Number of stored originals.
    pub(crate) stored: usize,
    /// Number of stored originals that read back unchanged.
    pub(crate) verified: usize,
    /// Number of results that the tools returned.
    pub(crate) results: usize,
    /// Number of results that stand unchanged in the conversation.
    pub(crate) in_place: usize,
    /// Number of results replaced by a hint that names the unchanged original.
    pub(crate) behind_hint: usize,
    /// One line for each original that is neither in the conversation nor at the location that a
    /// hint or report gives.
    pub(crate) problems: Vec<String>,
}

impl Verdict {
    pub(crate) fn lost(&self) -> usize {
        self.problems.len()
    }
}

/// Compares every location in a report, and every result in `messages`, with the tally's originals.
pub(crate) async fn verify(
    reduction: &ToolReduction,
    tally: &Tally,
    messages: &[Message],
) -> Verdict {
    let mut verdict = Verdict::default();

    // Each stored location with its call. A result that was stored when it arrived is not stored
    // again when it is cleared.
    let mut stored: BTreeMap<Location, (Subject, String)> = BTreeMap::new();
    let mut named: BTreeSet<Location> = BTreeSet::new();
    for decision in tally.decisions() {
        named.extend(decision.locations.iter().cloned());
        if matches!(decision.outcome, Outcome::Truncated | Outcome::Cleared) {
            stored.extend(
                decision
                    .locations
                    .into_iter()
                    .map(|location| (location, (decision.subject, decision.call_id.clone()))),
            );
        }
    }
    for (location, (subject, call_id)) in &stored {
        let original = tally.original(call_id);
        verdict.stored += 1;
        let is_held = match (original, subject) {
            (Some(original), Subject::Arguments) => {
                is_part(reduction, location, &original.call.arguments).await
            }
            (Some(original), _) => match text_of(&original.parts) {
                Some(text) => holds(reduction, location, text).await,
                None => false,
            },
            (None, _) => false,
        };
        if is_held {
            verdict.verified += 1;
        } else {
            verdict
                .problems
                .push(format!("{location} does not hold what left of {call_id}"));
        }
    }
    for location in named
        .iter()
        .filter(|location| !stored.contains_key(*location))
    {
        if !matches!(reduction.read_original(location).await, Some(Ok(_))) {
            verdict
                .problems
                .push(format!("{location} is named in a hint but can't be read"));
        }
    }

    // The state of each result in the conversation.
    for original in tally.originals() {
        verdict.results += 1;
        let shown = messages.iter().find_map(|message| match message {
            Message::Tool {
                call_id, content, ..
            } if *call_id == original.call.id => Some(content),
            _ => None,
        });
        match shown {
            Some(content) if *content == original.parts => verdict.in_place += 1,
            Some(content) if is_behind_hint(reduction, &original, text_of(content)).await => {
                verdict.behind_hint += 1;
            }
            _ => verdict.problems.push(format!(
                "the result of {} is neither shown nor stored",
                original.call.id
            )),
        }
    }
    verdict
}

/// Tells whether the hint shown leads to the original.
async fn is_behind_hint(
    reduction: &ToolReduction,
    original: &Original,
    shown: Option<&str>,
) -> bool {
    let (Some(text), Some(hint)) = (text_of(&original.parts), shown.and_then(Hint::parse)) else {
        return false;
    };
    let Some(location) = hint.location else {
        return false;
    };
    if holds(reduction, &location, text).await {
        return true;
    }
    // A page of stored content is not stored again: its hint leads to that content. Reading the
    // same page again must give the same bytes.
    let page = Hint::parse(text).and_then(|page| page.location);
    let again = reduction.read_file_tool().call(&original.call).await;
    page == Some(location)
        && matches!(again, Ok(page) if matches!(&page.body, Body::Parts(parts) if *parts == original.parts))
}

async fn holds(reduction: &ToolReduction, location: &Location, text: &str) -> bool {
    matches!(reduction.read_original(location).await, Some(Ok(bytes)) if bytes == text.as_bytes())
}

/// Tells whether all of a call's arguments are stored, or one of their strings.
async fn is_part(reduction: &ToolReduction, location: &Location, arguments: &str) -> bool {
    let Some(Ok(bytes)) = reduction.read_original(location).await else {
        return false;
    };
    let text = String::from_utf8_lossy(&bytes);
    text == arguments || arguments.contains(&serde_json::json!(text).to_string())
}

#[cfg(test)]
mod tests {
    use offcut::backend::Memory;
    use offcut::{Part, ToolCall};

    use super::*;

    /// The verdict on one truncated result if the tally says that the tool returned `original`.
    async fn verdict(returned: &str, original: &str) -> Verdict {
        let backend = Memory::new();
        let tally = Tally::new(&backend);
        let reduction = ToolReduction::recommended(backend)
            .on_report(tally.observer())
            .build()
            .unwrap();
        let call = ToolCall::new("call_1", "read", "{}");
        let shown = reduction.truncate(&call, returned).await.unwrap();
        tally.record(&call, &[Part::from(original)], false);
        verify(
            &reduction,
            &tally,
            &[Message::tool(&call, shown.parts, false)],
        )
        .await
    }

    #[tokio::test]
    async fn stored_originals_are_verified() {
        let text = "a line of a long result\n".repeat(1_000);
        let verdict = verdict(&text, &text).await;
        assert_eq!(
            (
                verdict.stored,
                verdict.verified,
                verdict.behind_hint,
                verdict.lost()
            ),
            (1, 1, 1, 0)
        );
    }

    #[tokio::test]
    async fn a_differing_byte_counts_as_a_loss() {
        let text = "a line of a long result\n".repeat(1_000);
        let verdict = verdict(&text, &text.replacen("long", "lang", 1)).await;
        assert_eq!((verdict.stored, verdict.verified), (1, 0));
        assert!(verdict.lost() > 0);
    }

    #[tokio::test]
    async fn a_missing_result_counts_as_a_loss() {
        assert!(verdict("short", "another").await.lost() > 0);
    }
}
