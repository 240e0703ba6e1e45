//! Previews of results: strategies, lengths that grow, and results within the limit.

use crate::common::{builder, call, clear, content, lines, memory, round, stored, text};
use futures_util::stream;
use offcut::backend::Memory;
use offcut::hint::Hint;
use offcut::preview::Preview;
use offcut::report::{Outcome, Reason};
use offcut::{
    BuildError, Builder, Chunk, Part, PreviewLength, Settings, ToolCall, ToolOutput, ToolPolicy,
    Truncated,
};

const ALL: [Preview; 4] = [
    Preview::HeadTail,
    Preview::Lines,
    Preview::Index,
    Preview::Mixed,
];

/// A module with `n` functions.
fn source(n: usize) -> String {
    let function =
        |n| format!("fn read_part_{n}(store: &Store) {{\n    store.read_range({n}..);\n}}\n\n");
    (1..=n).map(function).collect()
}

fn small(store: &Memory) -> Builder {
    builder(store)
        .max_length_for_trunc(4_000)
        .preview_length(600)
}

fn hint(truncated: &Truncated) -> Hint {
    Hint::parse(text(&truncated.parts)).expect("a hint")
}

fn read(id: &str) -> ToolCall {
    ToolCall::new(id, "Read", r#"{"file_path":"/src/part.rs"}"#)
}

#[tokio::test]
async fn t2_every_preview_is_the_same_for_a_stream() {
    let content = source(400);
    for preview in ALL {
        let whole = small(&memory())
            .preview(preview)
            .build()
            .unwrap()
            .truncate(&call("a", "f"), content.clone())
            .await
            .unwrap();
        assert_eq!(hint(&whole).preview, preview.show(&content, 600));
        for size in [7, 999, 50_000] {
            let chunks = || -> Vec<_> {
                content
                    .as_bytes()
                    .chunks(size)
                    .map(|bytes| Ok(Chunk::Bytes(bytes.to_vec().into())))
                    .collect()
            };
            let reduction = small(&memory()).preview(preview).build().unwrap();
            let output = ToolOutput::stream(stream::iter(chunks()));
            let streamed = reduction.truncate(&call("a", "f"), output).await.unwrap();
            assert_eq!(streamed.parts, whole.parts);
        }
    }
}

#[tokio::test]
async fn a_preview_grows_with_its_text() {
    let curve = PreviewLength::curve(10.0, 0.6, 3_000);
    let reduction = small(&memory())
        .preview(Preview::Mixed)
        .preview_length(curve)
        .build()
        .unwrap();
    for functions in [100, 400, 4_000] {
        let content = source(functions);
        let shown = reduction
            .truncate(&call("a", "f"), content.clone())
            .await
            .unwrap();
        let length = curve.bytes_for(content.len() as u64);
        assert_eq!(hint(&shown).preview, Preview::Mixed.show(&content, length));
        assert!(
            (length * 3 / 4..=length).contains(&hint(&shown).preview.len()),
            "{length}"
        );
    }
    // Several texts share the preview length of one text of their total length.
    let parts = vec![Part::Text(source(100)), Part::Text(source(100))];
    let shown = reduction
        .truncate(&call("b", "f"), ToolOutput::parts(parts))
        .await
        .unwrap();
    let hints: Vec<Hint> = shown
        .parts
        .iter()
        .map(|part| match part {
            Part::Text(text) => Hint::parse(text).expect("a hint"),
            other => panic!("{other:?}"),
        })
        .collect();
    let share = curve.bytes_for(2 * source(100).len() as u64) / 2;
    assert_eq!(
        hints
            .iter()
            .map(|hint| hint.preview.clone())
            .collect::<Vec<_>>(),
        vec![Preview::Mixed.show(&source(100), share); 2]
    );
}

#[tokio::test]
async fn results_within_the_limit_are_previewed_above_a_length() {
    let store = memory();
    let reduction = small(&store)
        .preview(Preview::Mixed)
        .preview_above(1_000)
        .build()
        .unwrap();
    let shown = reduction
        .truncate(&call("a", "f"), lines(100))
        .await
        .unwrap();
    assert_eq!(
        shown.report.decisions[0].outcome,
        Outcome::Kept(Reason::WithinLimit)
    );
    let content = source(30);
    assert!((1_000..4_000).contains(&content.len()));
    let shown = reduction
        .truncate(&call("b", "f"), content.clone())
        .await
        .unwrap();
    assert_eq!(shown.report.decisions[0].outcome, Outcome::Truncated);
    assert_eq!(hint(&shown).preview, Preview::Mixed.show(&content, 600));
    assert_eq!(
        stored(&store).await,
        [(
            "memory://t/trunc/b".to_owned(),
            content.clone().into_bytes()
        )]
    );
    // The replacement is over `preview_above` but gets no preview again.
    let reduction = reduction_with_hints_over(1_000);
    let first = reduction
        .truncate(&call("c", "f"), source(90))
        .await
        .unwrap();
    assert!(text(&first.parts).len() > 1_000);
    let again = reduction
        .truncate(&call("d", "f"), text(&first.parts))
        .await
        .unwrap();
    assert_eq!(
        (text(&again.parts), again.report.is_change()),
        (text(&first.parts), false)
    );
    // So it is in another conversation, after the beginning of what a program has put out.
    let other = format!("{}{}", lines(20), text(&first.parts));
    let again = reduction
        .session("other")
        .truncate(&call("d", "f"), other.clone())
        .await
        .unwrap();
    assert_eq!(text(&again.parts), other);
    // If a preview gains nothing, everything stays whole, including the other texts.
    let parts = vec![Part::Text(lines(60)), Part::Text("x_1 ".repeat(270))];
    let eager = small(&memory())
        .preview_length(3_000)
        .preview_above(1_000)
        .build()
        .unwrap();
    let shown = eager
        .truncate(&call("e", "f"), ToolOutput::parts(parts.clone()))
        .await
        .unwrap();
    assert_eq!(shown.parts, parts);
}

fn reduction_with_hints_over(above: usize) -> offcut::ToolReduction {
    small(&memory())
        .preview(Preview::Mixed)
        .preview_length(1_500)
        .preview_above(above)
        .build()
        .unwrap()
}

#[tokio::test]
async fn file_reads_within_the_limit_stay_whole() {
    let store = memory();
    let content = source(30);
    let keeps = small(&store).preview_above(1_000);
    let shown = keeps
        .clone()
        .build()
        .unwrap()
        .truncate(&read("a"), content.clone())
        .await
        .unwrap();
    assert_eq!(text(&shown.parts), content);
    let shown = keeps
        .clone()
        .build()
        .unwrap()
        .truncate(&read("b"), source(100))
        .await
        .unwrap();
    assert_eq!(
        shown.report.decisions[0].outcome,
        Outcome::Truncated,
        "over the limit"
    );
    let shown = keeps
        .keep_file_reads(false)
        .build()
        .unwrap()
        .truncate(&read("c"), content.clone())
        .await
        .unwrap();
    assert_eq!(shown.report.decisions[0].outcome, Outcome::Truncated);
}

#[tokio::test]
async fn o1_a_tool_can_have_its_own_preview_above() {
    let policy = ToolPolicy::new()
        .preview_above(3_000)
        .preview(Preview::Index);
    let reduction = small(&memory())
        .preview_above(1_000)
        .tool("own", policy)
        .build()
        .unwrap();
    let content = source(30);
    assert!(
        !reduction
            .truncate(&call("a", "own"), content.clone())
            .await
            .unwrap()
            .report
            .is_change()
    );
    assert!(
        reduction
            .truncate(&call("b", "other"), content)
            .await
            .unwrap()
            .report
            .is_change()
    );
}

#[tokio::test]
async fn c5_a_preview_becomes_a_stub_of_the_stored_content() {
    for preview in ALL {
        let store = memory();
        let stub = PreviewLength::curve(5.0, 0.4, 300);
        let reduction = small(&store)
            .preview(preview)
            .stub_length(stub)
            .max_tokens_for_clear(1)
            .build()
            .unwrap();
        let content_of = source(400);
        let shown = reduction
            .truncate(&call("a", "f"), content_of.clone())
            .await
            .unwrap();
        let mut messages = [round("a", "f", text(&shown.parts)), round("b", "f", "ok")].concat();
        let report = clear(&reduction, &mut messages).await;
        assert_eq!(
            report.decisions[0].outcome,
            Outcome::Shortened,
            "{preview:?}"
        );
        let short = Hint::parse(text(content(&messages[1]))).unwrap();
        assert_eq!(
            short.preview,
            preview.show(&content_of, stub.bytes_for(content_of.len() as u64))
        );
        assert_eq!(stored(&store).await.len(), 1);
        assert!(!clear(&reduction, &mut messages).await.is_change());
    }
}

#[test]
fn l11_invalid_lengths_do_not_build() {
    let error = |builder: Builder| builder.build().unwrap_err();
    for (scale, exponent) in [
        (0.0, 0.5),
        (-1.0, 0.5),
        (f64::NAN, 0.5),
        (f64::INFINITY, 0.5),
        (1.0, 0.0),
        (1.0, 1.1),
        (1.0, f64::NAN),
    ] {
        let curve = PreviewLength::curve(scale, exponent, 100);
        assert!(matches!(
            error(small(&memory()).preview_length(curve)),
            BuildError::InvalidCurve {
                field: "preview_length",
                tool: None
            }
        ));
        let policy = ToolPolicy::new().stub_length(curve);
        assert!(matches!(
            error(small(&memory()).tool("f", policy)),
            BuildError::InvalidCurve {
                field: "stub_length",
                tool: Some(_)
            }
        ));
    }
    // A curve may grow as long as the limit has room for the preview and its hint.
    let curve = PreviewLength::curve(1.0, 1.0, 3_999);
    let reduction = small(&memory()).preview_length(curve).build().unwrap();
    assert!(matches!(
        reduction.settings().preview_length,
        PreviewLength::Curve {
            at_most: 3_000..3_900,
            ..
        }
    ));
    insta::assert_snapshot!(error(small(&memory()).preview_length(PreviewLength::curve(0.0, 1.0, 1))), @"`preview_length` of all tools is not a valid curve: set `scale` above 0, and `exponent` above 0 and at most 1, or give a number of bytes");
}

#[test]
fn lengths_are_read_from_files() {
    let length = |json: &str| {
        Settings::from_json(json)
            .map(|settings| settings.preview_length)
            .map_err(|e| e.to_string())
    };
    assert_eq!(
        length(r#"{"preview_length": 12}"#),
        Ok(PreviewLength::Bytes(12))
    );
    let curve = r#"{"preview_length": {"scale": 10, "exponent": 0.6, "at_most": 500}}"#;
    assert_eq!(length(curve), Ok(PreviewLength::curve(10.0, 0.6, 500)));
    for json in [
        r#"{"preview_length": {"scale": 10, "exponent": 0.6}}"#,
        r#"{"preview_length": {"scale": 10, "power": 0.6}}"#,
    ] {
        let error = length(json).unwrap_err();
        assert!(
            error.starts_with("line 1, `preview_length`: write a whole number of bytes"),
            "{error}"
        );
    }
}
