//! The proof that nothing in a conversation is lost.

use std::collections::BTreeSet;

use bytes::Bytes;
use futures_util::TryStreamExt;
use offcut::agent::Tool;
use offcut::backend::{Backend, ErrorKind, Location};
use offcut::format::{LoopFormat, OpenAiChat};
use offcut::hint::Hint;
use offcut::{Body, Part, ToolCall, ToolOutput, ToolReduction};
use offcut_testkit::replaced_arguments;
use serde_json::{Value, json};

use super::{ATTEMPTS, Conversation};
use crate::originals::Originals;
use crate::result::Result;
use crate::tally::Tally;

impl Conversation {
    /// Reads back everything that the messages or a report name, and compares it. `reduction` may
    /// belong to another process.
    pub(crate) async fn verify(&mut self, reduction: &ToolReduction) {
        for (location, original) in std::mem::take(&mut self.named) {
            let text = original.text(self.script.originals);
            match read(reduction, &location).await {
                Read::Bytes(bytes) if bytes == text.as_bytes() => {}
                Read::Bytes(_) => {
                    self.tally.overwritten += 1;
                    self.tally
                        .problem(format!("{location} is not {original:?} any more"));
                }
                Read::Nothing(why) => {
                    self.tally.dangling += 1;
                    self.tally
                        .problem(format!("{location}, {original:?}: {why}"));
                }
            }
        }
        for step in 0..self.step() {
            let (asks, answers) = (
                &self.messages[2 * step as usize],
                &self.messages[2 * step as usize + 1],
            );
            let number = self.script.number(step);
            let call = OpenAiChat.tool_calls(asks).pop().unwrap_or_default();
            let result = (
                text_of(&answers["content"]),
                self.script.originals.result(number),
            );
            let arguments = self.script.originals.arguments(number);
            let Some(mut texts) = replaced_arguments(&call.arguments, &arguments) else {
                self.tally.lost += 1;
                let shown = call.arguments;
                self.tally
                    .problem(format!("more than texts changed: {shown:.60}"));
                continue;
            };
            texts.push(result);
            for (shown, original) in texts {
                verify_shown(reduction, &shown, &original, &mut self.tally).await;
            }
        }
    }
}

/// Checks that `shown` is the original, or one hint that leads to it.
async fn verify_shown(reduction: &ToolReduction, shown: &str, original: &str, tally: &mut Tally) {
    if shown == original {
        return;
    }
    let Some(location) = Hint::parse(shown).and_then(|hint| hint.location) else {
        tally.lost += 1;
        return tally.problem(format!("neither shown nor stored: {original:.60}"));
    };
    match read(reduction, &location).await {
        Read::Bytes(bytes) if bytes == original.as_bytes() => {}
        Read::Bytes(_) => {
            tally.lost += 1;
            return tally.problem(format!("{location} is not {original:.60}"));
        }
        Read::Nothing(why) => {
            tally.dangling += 1;
            return tally.problem(format!("{location}: {why}"));
        }
    }
    // As the model would read it.
    let call = ToolCall::new("read", "read_file", json!({"path": location}).to_string());
    let page = match reduction.read_file_tool().call(&call).await {
        Ok(ToolOutput {
            body: Body::Parts(parts),
            ..
        }) => parts.into_iter().find_map(|part| match part {
            Part::Text(text) => Hint::parse(&text),
            _ => None,
        }),
        _ => None,
    };
    if !page.is_some_and(|page| !page.preview.is_empty() && original.starts_with(&page.preview)) {
        tally.dangling += 1;
        tally.problem(format!("the reader does not read {location}"));
    }
}

enum Read {
    Bytes(Bytes),
    Nothing(String),
}

/// Reads stored content. Tries again while the store is unavailable, which is not under test.
async fn read(reduction: &ToolReduction, location: &Location) -> Read {
    let mut last = "the session does not know it".to_owned();
    for _ in 0..ATTEMPTS {
        match reduction.read_original(location).await {
            Some(Ok(bytes)) => return Read::Bytes(bytes),
            Some(Err(error)) if error.kind() == ErrorKind::NotFound => {
                return Read::Nothing(error.to_string());
            }
            Some(Err(error)) => last = error.to_string(),
            None => break,
        }
    }
    Read::Nothing(last)
}

/// Compares everything visible in `store` with the originals.
pub(crate) async fn verify_all(
    store: &dyn Backend,
    originals: Originals,
    tally: &mut Tally,
) -> Result<()> {
    let entries: Vec<_> = store.list().try_collect().await?;
    let keys: BTreeSet<_> = entries.into_iter().map(|entry| entry.key).collect();
    for key in keys {
        tally.writes += 1;
        let bytes = store.read(&key, 0..u64::MAX).await?.bytes;
        if !originals.has(&bytes) {
            tally.half_written += 1;
            tally.problem(format!(
                "{key}, {} bytes, is not a whole original",
                bytes.len()
            ));
        }
    }
    Ok(())
}

/// All text of a message's content.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use offcut::OnOffloadError;
    use offcut::backend::Fs;

    use super::super::{Script, reduction};
    use super::*;

    /// Lets `harm` damage a conversation over a store in a directory. Returns the checker's tally.
    async fn harmed(harm: impl FnOnce(&mut Conversation, &str)) -> Tally {
        let (home, originals) = (tempfile::tempdir().unwrap(), Originals { seed: 5 });
        let store = Fs::open(home.path()).unwrap();
        let reduction = reduction(store.clone(), OnOffloadError::Fail).unwrap();
        let mut conversation = Conversation::new(Script::new(originals, 0, 20), Vec::new());
        while !conversation.is_over() {
            conversation
                .go_on(&reduction, Duration::from_secs(60), |_, _| ())
                .await
                .unwrap();
        }
        let shown = Hint::parse(&text_of(&conversation.messages[9]["content"])).unwrap();
        harm(&mut conversation, shown.location.unwrap().as_str());
        conversation.verify(&reduction).await;
        verify_all(&store, originals, &mut conversation.tally)
            .await
            .unwrap();
        conversation.tally
    }

    #[tokio::test]
    async fn an_unharmed_conversation_holds() {
        let tally = harmed(|_, _| ()).await;
        assert!(tally.holds(), "{tally:?}");
        assert_eq!(tally.results, 20);
        assert!(tally.writes > 25, "results and arguments: {}", tally.writes);
        assert_eq!(Tally::from_json(&tally.to_json()), Some(tally));
    }

    #[tokio::test]
    async fn a_lost_result_is_found() {
        let tally = harmed(|conversation, _| {
            conversation.messages[9]["content"] = json!("result 4 of 5\n");
        })
        .await;
        assert_eq!((tally.lost, tally.holds()), (1, false));
    }

    #[tokio::test]
    async fn a_dangling_location_is_found() {
        let tally = harmed(|_, location| std::fs::remove_file(location).unwrap()).await;
        assert_eq!(
            (tally.dangling, tally.holds()),
            (2, false),
            "counted for the report's location and for the hint's"
        );
    }

    #[tokio::test]
    async fn overwritten_content_is_found() {
        let other = Originals { seed: 5 }.result(7);
        let tally = harmed(|_, location| std::fs::write(location, other).unwrap()).await;
        assert_eq!(
            (tally.overwritten, tally.lost, tally.half_written),
            (1, 1, 0)
        );
    }

    #[tokio::test]
    async fn half_written_content_is_found() {
        let half = |_: &mut Conversation, location: &str| {
            let file = std::fs::OpenOptions::new()
                .write(true)
                .open(location)
                .unwrap();
            file.set_len(file.metadata().unwrap().len() / 2).unwrap();
        };
        assert_eq!(harmed(half).await.half_written, 1);
    }

    #[tokio::test]
    async fn an_unreported_failure_is_found() {
        let home = tempfile::tempdir().unwrap();
        let (store, originals) = (
            offcut_testkit::Faulty::new(Fs::open(home.path()).unwrap()),
            Originals { seed: 5 },
        );
        store.fault_on_every_write(offcut_testkit::Fault::Fail(ErrorKind::Full));
        let reduction = reduction(store, OnOffloadError::KeepOriginal).unwrap();
        let mut conversation = Conversation::new(Script::new(originals, 9, 1), Vec::new());
        let call = conversation.script.call(0);
        let (_, mut report) = conversation.truncate(&reduction, &call).await.unwrap();
        assert_eq!(
            (
                conversation.note(&report, Some(0)),
                conversation.tally.hidden
            ),
            (1, 0)
        );
        report.decisions[0].error = None;
        assert_eq!(
            (
                conversation.note(&report, Some(0)),
                conversation.tally.hidden
            ),
            (0, 1)
        );
    }
}
