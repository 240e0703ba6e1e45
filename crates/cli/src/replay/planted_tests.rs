//! Losses planted in a store or in its reader, each of which every figure that claims to see it must flag.

use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use offcut::backend::{
    Backend, BackendError, Entry, ErrorKind, Key, Location, Memory, PutOutcome, ReadRange, Writer,
};
use offcut::format::Message;
use offcut::{Settings, ToolCall, ToolReduction};

use super::agent::replay;
use super::{Prices, Read, Replay, Ruler, Script};
use crate::evidence::Kind;
use crate::{settings, stores};

/// A loss that a store has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    None,
    /// Stored content is gone.
    Gone,
    /// Hints lead to another text.
    Elsewhere,
    /// The reader returns lines from 300 before those that were asked for.
    OtherLines,
    /// The reader returns the beginning of the text and takes it for the whole.
    CutShort,
}

/// A store with a loss.
#[derive(Debug)]
struct Planted {
    inner: Memory,
    loss: Loss,
}

impl Planted {
    fn altered(&self, content: &Bytes, is_reader: bool) -> Bytes {
        match self.loss {
            Loss::Elsewhere => "nothing of this was ever said\n".repeat(90).into(),
            Loss::OtherLines if is_reader => [&b"a line before it\n".repeat(300)[..], content]
                .concat()
                .into(),
            Loss::CutShort if is_reader => content.slice(..content.len().min(600)),
            _ => content.clone(),
        }
    }
}

#[async_trait]
impl Backend for Planted {
    fn locate(&self, key: &Key) -> Location {
        self.inner.locate(key)
    }

    fn resolve(&self, location: &str) -> Option<Key> {
        self.inner.resolve(location)
    }

    async fn put(&self, key: &Key, content: Bytes) -> Result<PutOutcome, BackendError> {
        self.inner.put(key, content).await
    }

    async fn writer(&self) -> Result<Box<dyn Writer>, BackendError> {
        self.inner.writer().await
    }

    async fn read(&self, key: &Key, range: Range<u64>) -> Result<ReadRange, BackendError> {
        let ReadRange {
            bytes: whole,
            stored_at,
            ..
        } = self.inner.read(key, 0..u64::MAX).await?;
        if self.loss == Loss::Gone {
            return Err(BackendError::new(ErrorKind::NotFound, "it was lost"));
        }
        // The replay looks at the whole, and the reader at blocks.
        let bytes = self.altered(&whole, range.end != u64::MAX);
        let total = bytes.len() as u64;
        let place = |at: u64| usize::try_from(at.min(total)).unwrap();
        let range = place(range.start)..place(range.end.max(range.start));
        Ok(ReadRange {
            bytes: bytes.slice(range),
            total,
            stored_at,
        })
    }

    fn list(&self) -> BoxStream<'_, Result<Entry, BackendError>> {
        self.inner.list()
    }
}

/// A session that looks at a long file, names what is in its middle, edits it, and goes on.
fn session() -> Vec<Message> {
    let call = |id: &str, name: &str, arguments: &str| ToolCall::new(id, name, arguments);
    let filler = "nothing of note in this line\n".repeat(60);
    let file = format!("{filler}let limit_of_reads = 4177; // --dry-run\n{filler}the end");
    let look = call("c1", "shell", "{}");
    let edit = call(
        "c2",
        "edit",
        r#"{"old_string": "let limit_of_reads = 4177;"}"#,
    );
    vec![
        Message::user("go"),
        Message::calls(vec![look.clone()]),
        Message::tool(&look, vec![file.into()], false),
        Message::calls(vec![edit.clone()]),
        Message::tool(&edit, vec!["Done.".into()], false),
        Message::assistant("It was 4177, with --dry-run."),
        Message::user("and?"),
        Message::assistant("That is all."),
    ]
}

/// Replays the session over a store that has `loss`, as results are shortened on arrival.
fn with(loss: Loss) -> Replay {
    let messages = session();
    let (read, ruler) = (Read::of(&messages), Ruler::new().unwrap());
    let script = Script::new(&messages, &read, &ruler);
    let policy = "max_length_for_trunc = 900\npreview_length = 300\nskip_clear = true";
    let policy = Settings::from_toml(policy).unwrap();
    let store = Planted {
        inner: Memory::new(),
        loss,
    };
    let reduction = ToolReduction::builder()
        .settings(policy, stores::open)
        .backend(store)
        .preview_with(|_| "122|the end\n[… 3527 B …]".to_owned())
        .build()
        .unwrap();
    let runtime = settings::runtime().unwrap();
    runtime.block_on(replay(&script, Some(&reduction))).unwrap()
}

/// The claims that a loss must change: where hints lead, and the price of reading back.
fn claims(replay: &Replay) -> (bool, bool, bool, u64) {
    let seen = replay.figures.seen;
    let all = [Kind::Number, Kind::Flag, Kind::Edit];
    let is_readable = all.map(|kind| seen.count(kind)).iter().all(|count| {
        assert!(count.needed > 0 && count.seen == 0, "{count:?}");
        count.readable == count.needed
    });
    assert!(!replay.misses.is_empty());
    let names = seen.count(Kind::Name);
    (
        names.readable == names.needed,
        is_readable,
        replay.misses.iter().all(|miss| miss.is_reachable),
        replay.figures.pages,
    )
}

#[test]
fn each_planted_loss_is_flagged_by_every_figure_that_claims_to_see_it() {
    let sound = with(Loss::None);
    assert_eq!(claims(&sound), (true, true, true, 1));
    let bill = |replay: &Replay| replay.figures.bill_with_pages(&Prices::weights(0.1, 1.0));
    // Nothing leads to it: the tool has to be called again.
    for loss in [Loss::Gone, Loss::Elsewhere] {
        let lost = with(loss);
        assert_eq!(claims(&lost), (false, false, false, 1), "{loss:?}");
        assert!(bill(&lost) > bill(&sound) + 100.0, "{loss:?}");
        assert_eq!(lost.figures.tokens, sound.figures.tokens, "{loss:?}");
    }
    // A hint leads to it, but the reader does not return it: a page for nothing, and the tool again.
    for loss in [Loss::OtherLines, Loss::CutShort] {
        let lost = with(loss);
        let (reachable, readable, missed, pages) = claims(&lost);
        assert!(reachable && readable && missed, "{loss:?}");
        assert!(pages > 1, "{loss:?}");
        assert!(bill(&lost) > bill(&sound) + 100.0, "{loss:?}");
    }
}
