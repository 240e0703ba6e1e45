//! L9: a stream is never held whole. T2: chunk boundaries change nothing.
//!
//! The memory that a stream needs is measured in a separate process, by `tests/stream_memory.rs`.

mod failures;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{TryStreamExt, stream};
use offcut::backend::Backend;
use offcut::preview::Preview;
use offcut::report::Decision;
use offcut::{
    Chunk, Language, OnOffloadError, Part, TokenCounter, ToolCall, ToolError, ToolOutput,
    ToolReduction, Truncated,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use serde_json::json;

use super::generate::{Id, ids};
use super::text::{Kind, Text, texts};
use super::world::preview as strategies;
use super::{STORE, Violation, block_on, hold, require};

/// A streamed result, and everything that may affect its treatment.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) id: Id,
    /// True if other content is stored under the id's own name.
    pub(crate) is_taken: bool,
    pub(crate) pieces: Vec<Piece>,
    /// Sizes of the chunks, used cyclically.
    pub(crate) chunks: Vec<usize>,
    /// True if the tool fails at the end.
    pub(crate) breaks_off: bool,
    pub(crate) limit: usize,
    pub(crate) preview: usize,
    pub(crate) strategy: Preview,
    /// Size in bytes above which results within the limit get a preview.
    pub(crate) above: Option<usize>,
    pub(crate) language: Language,
}

#[derive(Clone, Debug)]
pub(crate) enum Piece {
    /// A text's bytes, with invalid bytes inserted at these positions. Two in a row are one text.
    Bytes(Text, Vec<(usize, u8)>),
    Raw(Vec<u8>),
    Text(Text),
    Json(Text),
    Media(usize),
    Link,
    Opaque(usize),
    /// Texts between links.
    Many(Text, usize),
}

impl Piece {
    fn render(&self) -> Vec<Chunk> {
        let link = || {
            Chunk::Part(Part::Link {
                mime: None,
                url: "https://example.org/a.png".into(),
            })
        };
        match self {
            Self::Bytes(text, odd) => {
                let mut bytes = text.render().into_bytes();
                for (at, byte) in odd {
                    bytes.insert(at % (bytes.len() + 1), *byte);
                }
                vec![Chunk::Bytes(bytes.into())]
            }
            Self::Raw(bytes) => vec![Chunk::Bytes(bytes.clone().into())],
            Self::Text(text) => vec![Chunk::Part(Part::Text(text.render()))],
            Self::Json(text) => vec![Chunk::Part(Part::Json(json!({ "rows": text.render() })))],
            Self::Media(length) => {
                vec![Chunk::Part(Part::Media {
                    mime: "image/png".into(),
                    data: vec![7; *length].into(),
                })]
            }
            Self::Link => vec![link()],
            Self::Opaque(length) => vec![Chunk::Part(Part::Opaque(
                json!({ "odd": "x".repeat(*length) }),
            ))],
            Self::Many(text, count) => (0..*count)
                .flat_map(|_| [Chunk::Bytes(text.render().into()), link()])
                .collect(),
        }
    }
}

fn pieces() -> impl Strategy<Value = Piece> {
    let odd = prop_oneof![
        4 => Just(Vec::new()),
        1 => vec((0_usize..9_000, prop_oneof![Just(0xff), Just(0xe2), Just(0xf0), Just(0x82)]), 1..4),
    ];
    let many = (0_usize..120, 2_usize..40)
        .prop_map(|(length, count)| Piece::Many(Text::new(Kind::Lines, length, 3), count));
    prop_oneof![
        12 => (texts(), odd).prop_map(|(text, odd)| Piece::Bytes(text, odd)),
        3 => texts().prop_map(Piece::Text),
        4 => texts().prop_map(Piece::Json),
        1 => (0_usize..5_000).prop_map(Piece::Media),
        1 => Just(Piece::Link),
        1 => (0_usize..5_000).prop_map(Piece::Opaque),
        1 => many,
        1 => vec(any::<u8>(), 0..3_000).prop_map(Piece::Raw),
    ]
}

fn cases() -> impl Strategy<Value = Case> {
    let pieces = prop_oneof![3 => vec(pieces(), 1..3), 4 => vec(pieces(), 1..9)];
    let sizes = prop_oneof![1_usize..6, 1_usize..300, 300_usize..9_000];
    let limit =
        prop_oneof![2 => Just(1_000_usize), 3 => 1_000_usize..4_000, 1 => 4_000_usize..20_000];
    let preview = prop_oneof![1 => 0_usize..160, 2 => 150_usize..200, 3 => 200_usize..3_000];
    let preview = (preview, strategies(), option::weighted(0.3, 0_usize..1_000));
    let language = prop_oneof![3 => Just(Language::English), 1 => Just(Language::Chinese)];
    let output = (
        pieces,
        vec(sizes, 1..5),
        prop_oneof![4 => Just(false), 1 => Just(true)],
    );
    let id = (ids(), prop_oneof![4 => Just(false), 1 => Just(true)]);
    (id, output, limit, preview, language).prop_map(
        |(
            (id, is_taken),
            (pieces, chunks, breaks_off),
            limit,
            (preview, strategy, above),
            language,
        )| Case {
            id,
            is_taken,
            pieces,
            chunks,
            breaks_off,
            limit,
            preview,
            strategy,
            above,
            language,
        },
    )
}

impl Case {
    fn call(&self) -> ToolCall {
        ToolCall::new(&self.id.0, "build", "{}")
    }

    /// The tool's output in as few chunks as possible: no two byte chunks in a row.
    fn whole(&self) -> Vec<Chunk> {
        let mut whole: Vec<Chunk> = Vec::new();
        for chunk in self.pieces.iter().flat_map(Piece::render) {
            match (whole.last_mut(), chunk) {
                (Some(Chunk::Bytes(before)), Chunk::Bytes(bytes)) => {
                    *before = [&**before, &*bytes].concat().into();
                }
                (_, chunk) => whole.push(chunk),
            }
        }
        whole
    }

    /// The same output cut into chunks of `sizes`, used cyclically.
    fn cut(&self, sizes: &[usize]) -> Vec<Chunk> {
        let mut sizes = sizes.iter().copied().cycle();
        let mut chunks = Vec::new();
        for chunk in self.whole() {
            match chunk {
                Chunk::Bytes(mut bytes) => {
                    while !bytes.is_empty() {
                        let size = sizes
                            .next()
                            .map_or(bytes.len(), |size| size.min(bytes.len()));
                        chunks.push(Chunk::Bytes(bytes.split_to(size)));
                    }
                }
                part @ Chunk::Part(_) => chunks.push(part),
            }
        }
        chunks
    }

    /// The texts that count towards the limit.
    fn texts(&self) -> Vec<Bytes> {
        let text = |chunk| match chunk {
            Chunk::Bytes(bytes) => (!bytes.is_empty()).then_some(bytes),
            Chunk::Part(Part::Text(text)) => Some(text.into()),
            Chunk::Part(Part::Json(json)) => {
                Some(json.to_string().into()).filter(|text: &Bytes| text.len() > self.limit)
            }
            Chunk::Part(_) => None,
        };
        self.whole().into_iter().filter_map(text).collect()
    }

    fn output(&self, chunks: Vec<Chunk>) -> ToolOutput {
        let error = self
            .breaks_off
            .then(|| Err(ToolError::new("the pipe broke")));
        ToolOutput::stream(stream::iter(chunks.into_iter().map(Ok).chain(error)))
    }

    fn reduction(&self, store: impl Backend, then: OnOffloadError) -> ToolReduction {
        let builder = ToolReduction::builder()
            .backend(store)
            .language(self.language)
            .on_offload_error(then);
        let builder = builder
            .token_counter(TokenCounter::Estimate)
            .max_length_for_trunc(self.limit)
            .preview(self.strategy)
            .preview_above(self.above);
        builder.preview_length(self.preview).build().unwrap()
    }

    /// Makes a reduction over a store.
    async fn over(&self, store: &Arc<dyn Backend>) -> ToolReduction {
        let reduction = self.reduction(Arc::clone(store), OnOffloadError::KeepOriginal);
        if self.is_taken {
            reduction
                .truncate(&self.call(), "something else\n".repeat(self.limit * 20))
                .await
                .unwrap();
        }
        reduction
    }
}

/// The outcome for a result: the stored content, the parts shown and the decision.
#[derive(Debug, PartialEq)]
struct Became {
    stored: BTreeMap<String, Bytes>,
    shown: Vec<Part>,
    error: Option<String>,
    decision: Decision,
}

async fn whole(case: &Case, output: ToolOutput) -> Became {
    let home = STORE();
    let store = home.open("t");
    let reduction = case.over(&store).await;
    let Truncated {
        parts: shown,
        interrupted,
        report,
        ..
    } = reduction.truncate(&case.call(), output).await.unwrap();
    let entries: Vec<_> = store.list().try_collect().await.unwrap();
    let mut stored = BTreeMap::new();
    for entry in entries {
        stored.insert(
            store.locate(&entry.key).to_string(),
            store.read(&entry.key, 0..u64::MAX).await.unwrap().bytes,
        );
    }
    Became {
        stored,
        shown,
        error: interrupted.map(|error| error.to_string()),
        decision: report.decisions[0].clone(),
    }
}

fn require_same(is: &Became, should: &Became, of: &str) -> Result<(), Violation> {
    require(is == should, "T2", || {
        format!("{of} is {is:#?}\ninstead of {should:#?}")
    })
}

pub(crate) async fn chunks_change_nothing(case: Case) -> Result<(), Violation> {
    let is_text = case.whole().iter().all(|chunk| match chunk {
        Chunk::Bytes(bytes) => std::str::from_utf8(bytes).is_ok(),
        Chunk::Part(_) => true,
    });
    // The texts of a long stream are one.
    let is_one = case.texts().len() <= 1;
    let should = whole(&case, case.output(case.whole())).await;
    if is_text && is_one && !case.breaks_off {
        let (parts, _) = case.output(case.whole()).into_parts().await;
        require_same(
            &whole(&case, ToolOutput::parts(parts)).await,
            &should,
            "what was no stream",
        )?;
    }
    require_same(
        &whole(&case, case.output(case.cut(&case.chunks))).await,
        &should,
        "the stream",
    )
}

#[test]
fn t2_the_chunks_of_a_result_do_not_matter() {
    hold(40, cases, |case| block_on(chunks_change_nothing(case)));
}
