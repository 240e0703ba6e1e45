//! Stored content that other readers than ours return (R3).

use futures_util::stream;
use offcut::backend::{Backend, Memory};
use offcut::hint::{Hint, Kind};
use offcut::report::Outcome;
use offcut::{Chunk, ToolCall, ToolError, ToolOutput};
use proptest::collection::vec;
use proptest::prelude::{prop_assert_eq, proptest};
use proptest::sample::Index;
use serde_json::{Value, json};

use super::{next_offset, small, store_result, wrapped};
use crate::common::{lines, memory, stored, text};

/// Several readers' ways to show a file.
fn foreign_readings(content: &str) -> Vec<(&'static str, String)> {
    let numbered = |format: fn(usize, &str) -> String| {
        content
            .lines()
            .zip(1..)
            .map(|(line, number)| format(number, line))
            .collect::<Vec<_>>()
            .join("\n")
    };
    vec![
        ("whole", content.to_owned()),
        ("without the last line feed", content.trim_end().to_owned()),
        (
            "cat -n",
            numbered(|number, line| format!("{number:6}\t{line}")),
        ),
        (
            "arrow",
            numbered(|number, line| format!("{number:>6}→{line}")),
        ),
        (
            "grep -n",
            numbered(|number, line| format!("{number}:{line}")),
        ),
        ("bar", numbered(|number, line| format!("{number:5}|{line}"))),
        ("header", format!("<file>\n{}\n</file>", content.trim_end())),
        (
            "from line 100 on",
            content.lines().skip(99).collect::<Vec<_>>().join("\n"),
        ),
    ]
}

#[tokio::test]
async fn r3_another_readers_output_is_cut_to_a_page() {
    let text_of = "The quick brown fox jumps over the lazy dog, and 狐狸 too.\n";
    let original: String = (0..300).map(|n| format!("{n} {text_of}")).collect();
    let one_line = "0123456789".repeat(2_000);
    for original in [original, one_line] {
        for (how, output) in foreign_readings(&original) {
            if output.len() <= 1_000 {
                continue;
            }
            let store = memory();
            let reduction = small(&store).build().unwrap();
            let location = store_result(&reduction, "a", original.clone()).await;
            let cat = ToolCall::new(
                "b",
                "cat",
                json!({"file": location, "flags": ["-n"]}).to_string(),
            );
            let shown = reduction.truncate(&cat, output.clone()).await.unwrap();
            assert_eq!(shown.report.decisions[0].outcome, Outcome::Paged, "{how}");
            let length: usize = shown
                .parts
                .iter()
                .map(|part| text(std::slice::from_ref(part)).len())
                .sum();
            assert!(length <= 1_000, "{how}: {length}");
            let page = Hint::parse(text(&shown.parts[shown.parts.len() - 1..])).unwrap();
            assert_eq!(page.location.as_ref().unwrap().as_str(), location, "{how}");
            assert!(next_offset(&page).is_some(), "{how}");
            assert_eq!(store.len(), 1, "{how}: nothing is stored");
            assert_eq!(
                wrapped(&reduction, &cat, &output).await,
                shown.parts,
                "{how}"
            );
        }
    }
}

/// The page of a stream that broke off goes on where the stream did not.
#[tokio::test]
async fn r3_a_stream_that_breaks_off_is_cut_to_a_page_too() {
    let (store, original) = (memory(), lines(400));
    let reduction = small(&store).build().unwrap();
    let location = store_result(&reduction, "a", original.clone()).await;
    let cat = ToolCall::new("b", "cat", json!({"file": location}).to_string());
    let chunks = [
        Ok(Chunk::Bytes(original[9..3_000].to_owned().into())),
        Err(ToolError::new("the pipe broke")),
    ];
    let output = ToolOutput::stream(stream::iter(chunks));
    let shown = reduction.truncate(&cat, output).await.unwrap();
    assert_eq!(shown.report.decisions[0].outcome, Outcome::Paged);
    let page = Hint::parse(text(&shown.parts)).unwrap();
    assert!(original[9..].starts_with(&page.preview), "{page:?}");
    assert!(next_offset(&page).is_some());
    assert_eq!(shown.interrupted.unwrap().to_string(), "the pipe broke");
    assert_eq!(store.len(), 1, "nothing is stored");
}

#[tokio::test]
async fn r3_stored_content_is_known_by_other_spellings_of_its_path() {
    let original = lines(400);
    for session in [None, Some("s1")] {
        let store = memory();
        let reduction = small(&store).build().unwrap();
        let reduction = session.map_or(reduction.clone(), |id| reduction.session(id));
        let stored = store_result(&reduction, "call_1", original.clone()).await;
        let folder = stored.strip_prefix("memory://").unwrap();
        let folder = folder.strip_suffix("/call_1").unwrap();
        for (known, arguments) in [
            (true, json!({"command": format!("cat {folder}/call_1")})),
            (
                true,
                json!({"command": format!("tail -n +1 ./../{folder}/call_1 | cat")}),
            ),
            (true, json!({"command": format!("cat ~/x/{folder}/call_1")})),
            (
                true,
                json!({"command": format!("cat ~/x/{folder}//./call_1")}),
            ),
            (true, json!(format!("cat {folder}/call_1"))),
            (
                true,
                json!({"command": format!("cat \"$HOME/{folder}/call_1\"")}),
            ),
            (
                true,
                json!({"command": format!("cd {folder} && cat call_1")}),
            ),
            (
                true,
                json!({"command": format!("cd {folder}/; cat ./call_1")}),
            ),
            (
                true,
                json!({"command": ["cat", "call_1"], "workdir": format!("/w/{folder}")}),
            ),
            (
                true,
                json!({"path": format!("file:///my%20home/{folder}/call_1")}),
            ),
            (
                true,
                json!({"path": format!(r"C:\x\{}\call_1", folder.replace('/', r"\"))}),
            ),
            (
                true,
                json!({"command": format!("cat other/trunc/none {folder}/call_1")}),
            ),
            (false, json!({"command": "cat call_1"})),
            (false, json!({"command": format!("cat {folder}/call_2")})),
            (false, json!({"command": format!("cat {folder}/../call_1")})),
            (
                false,
                json!({"command": format!("cat {folder}/call_1/../../x")}),
            ),
        ] {
            // Some tools take free text.
            let text = arguments.as_str().map(str::to_owned);
            let text = text.unwrap_or_else(|| arguments.to_string());
            let cat = ToolCall::new("b", "cat", text);
            let shown = reduction.truncate(&cat, original.clone()).await.unwrap();
            let decision = &shown.report.decisions[0];
            assert_eq!(decision.outcome == Outcome::Paged, known, "{arguments}");
            assert!(!known || decision.locations[0].as_str() == stored);
        }
    }
}

#[tokio::test]
async fn r3_a_tools_name_alone_exempts_nothing() {
    let store = memory();
    let reduction = small(&store).build().unwrap();
    let location = store_result(&reduction, "a", lines(400)).await;
    // Our reader's name, but other content; the second call even asks for one of our locations.
    for (id, path) in [("b", "/etc/services"), ("c", location.as_str())] {
        let reader = ToolCall::new(id, "read_file", json!({"path": path}).to_string());
        let output = "something else entirely\n".repeat(100);
        let parts = wrapped(&reduction, &reader, &output).await;
        let hint = Hint::parse(text(&parts)).unwrap();
        assert_eq!(hint.kind, Kind::Truncated);
        let there = reduction
            .read_original(&hint.location.unwrap())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(there, output);
    }
    assert_eq!(store.len(), 3);
}

#[tokio::test]
async fn r3_content_with_additions_loses_nothing() {
    let store = memory();
    let reduction = small(&store).build().unwrap();
    let location = store_result(&reduction, "a", lines(400)).await;
    let output = format!(
        "{}{}",
        lines(400),
        "and what only this result says\n".repeat(50)
    );
    let cat = ToolCall::new("b", "cat", json!({"file": location}).to_string());
    let shown = reduction.truncate(&cat, output.clone()).await.unwrap();
    assert_eq!(shown.report.decisions[0].outcome, Outcome::Truncated);
    assert_eq!(stored(&store).await[1].1, output.as_bytes());
}

/// Drives a model that follows every hint with another reader than ours.
async fn read_every_hint(arguments: fn(&str) -> Value, output: fn(&str) -> String) -> Memory {
    let store = memory();
    let reduction = small(&store).build().unwrap();
    let mut location = store_result(&reduction, "first", lines(2_000)).await;
    for step in 0..20 {
        let key = store.resolve(&location).unwrap();
        let content = store.read(&key, 0..u64::MAX).await.unwrap().bytes;
        let cat = ToolCall::new(
            format!("call_{step}"),
            "cat",
            arguments(&location).to_string(),
        );
        let parts = wrapped(
            &reduction,
            &cat,
            &output(std::str::from_utf8(&content).unwrap()),
        )
        .await;
        let hint = Hint::parse(text(&parts[parts.len() - 1..])).unwrap();
        location = hint.location.unwrap().to_string();
    }
    store
}

#[tokio::test]
async fn r3_reading_every_hint_with_another_reader_ends() {
    assert_eq!(
        read_every_hint(|path| json!({"file": path}), str::to_owned)
            .await
            .len(),
        1
    );
    let numbered = |content: &str| {
        content
            .lines()
            .zip(1..)
            .map(|(line, n)| format!("{n:6}\t{line}\n"))
            .collect()
    };
    assert_eq!(
        read_every_hint(|path| json!({"file": path}), numbered)
            .await
            .len(),
        1
    );
}

#[tokio::test]
async fn r3_reading_every_hint_with_a_shell_ends() {
    let store = read_every_hint(
        |path| json!({"command": format!("cat {path}")}),
        str::to_owned,
    )
    .await;
    assert!(
        store.len() <= 2,
        "{} objects are stored after 20 readings of one",
        store.len()
    );
}

#[tokio::test]
async fn r3_reading_every_hint_with_a_numbering_reader_ends() {
    let numbered = |content: &str| {
        content
            .lines()
            .zip(1..)
            .map(|(line, n)| format!("{n}: {line}\n"))
            .collect()
    };
    let store = read_every_hint(|path| json!({"file": path}), numbered).await;
    assert!(
        store.len() <= 2,
        "{} objects are stored after 20 readings of one",
        store.len()
    );
}

#[tokio::test]
async fn r3_a_stretch_of_a_long_line_that_another_reader_returns_is_not_stored_again() {
    let store = memory();
    let reduction = small(&store).build().unwrap();
    let line: String = (0..100_000).map(|n| format!("{n:06},")).collect();
    let location = store_result(&reduction, "a", line.clone()).await;
    for step in 0..5 {
        let arguments = json!({"file": location, "bytes": 5_000, "from": step * 5_000});
        let head = ToolCall::new(format!("call_{step}"), "head", arguments.to_string());
        wrapped(&reduction, &head, &line[step * 5_000..][..5_000]).await;
    }
    assert_eq!(
        store.len(),
        1,
        "stretches of what is stored were stored again"
    );
}

#[tokio::test]
async fn l3_a_page_of_another_readers_output_saves_a_quarter_too() {
    let store = memory();
    let reduction = small(&store).build().unwrap();
    let line = "0123456789".repeat(400);
    let location = store_result(&reduction, "a", line.clone()).await;
    let cat = ToolCall::new("b", "cat", json!({"file": location}).to_string());
    let shown = reduction.truncate(&cat, &line[..1_100]).await.unwrap();
    assert_eq!(shown.report.decisions[0].outcome, Outcome::Paged);
    let length = text(&shown.parts).len();
    assert!(length <= 825, "{length}");
}

/// Checks that `output`, which shows some lines of stored content that its call names, is stored
/// whole, byte for byte.
async fn is_stored(content: &str, how: &str, output: String) {
    let store = memory();
    let reduction = small(&store).build().unwrap();
    let location = store_result(&reduction, "a", content.to_owned()).await;
    let shell = ToolCall::new(
        "b",
        "shell",
        json!({"command": format!("{how} {location}")}).to_string(),
    );
    let shown = reduction.truncate(&shell, output.clone()).await.unwrap();
    assert_eq!(
        shown.report.decisions[0].outcome,
        Outcome::Truncated,
        "{how}"
    );
    assert!(
        stored(&store)
            .await
            .contains(&("memory://t/trunc/b".to_owned(), output.into_bytes())),
        "{how}"
    );
}

#[tokio::test]
async fn l1_lines_that_another_tool_picks_from_stored_content_are_stored() {
    let content: String = (0..2_000)
        .map(|n| format!("{n} GET /page/{} by user{}\n", n * 7, n % 5))
        .collect();
    let pick = |keeps: &dyn Fn(usize) -> bool| -> Vec<(usize, &str)> {
        content
            .lines()
            .zip(1..)
            .filter(|(_, n)| keeps(*n))
            .map(|(line, n)| (n, line))
            .collect()
    };
    let plain = |rows: &[(usize, &str)]| {
        rows.iter()
            .map(|(_, line)| format!("{line}\n"))
            .collect::<String>()
    };
    let numbered = |rows: &[(usize, &str)]| {
        rows.iter()
            .map(|(n, line)| format!("{n}:{line}\n"))
            .collect::<String>()
    };
    let user1 = pick(&|n| n % 5 == 2);
    is_stored(&content, "grep user1", plain(&user1)).await;
    is_stored(&content, "grep -n user1", numbered(&user1)).await;
    is_stored(&content, "awk", plain(&pick(&|n| n % 400 != 0))).await;
    is_stored(&content, "grep -nv", numbered(&pick(&|n| n % 400 != 0))).await;
    is_stored(&content, "sed 1000d", plain(&pick(&|n| n != 1_000))).await;
    is_stored(
        &content,
        "sed -n '1,300p;302,900p'",
        plain(&pick(&|n| n < 900 && n != 301)),
    )
    .await;
    // The reader's own words interrupt the lines, or form a long header.
    let parts = [pick(&|n| n < 100), pick(&|n| (100..200).contains(&n))].map(|rows| plain(&rows));
    is_stored(&content, "with a break", parts.join("-- more --\n")).await;
    is_stored(
        &content,
        "with a long header",
        format!("{}\n{}", "x".repeat(300), parts[0]),
    )
    .await;
    // The numbers are not those of the lines.
    let shifted: Vec<_> = pick(&|n| n < 100)
        .into_iter()
        .map(|(n, line)| (n + 1, line))
        .collect();
    is_stored(&content, "nl -v2", numbered(&shifted)).await;
    // The same lines, each cut short.
    let cut: String = content
        .lines()
        .map(|line| format!("{}\n", &line[..line.len() - 1]))
        .collect();
    is_stored(&content, "cut -c", cut).await;
}

#[tokio::test]
async fn l1_line_feeds_are_not_a_page() {
    let content = format!("{}{}\n", "a line\n\n\n".repeat(300), "\n".repeat(30_000));
    is_stored(&content, "awk '{print $9}'", "\n".repeat(20_000)).await;
    let numbered: String = (901..2_000).map(|n| format!("{n}:\n")).collect();
    is_stored(&content, "grep -n '^$'", numbered).await;
}

#[tokio::test]
async fn r3_content_that_begins_with_line_feeds_is_not_stored_again_and_again() {
    let store = memory();
    let reduction = small(&store).build().unwrap();
    for (id, title, header) in [
        ("a", "", ""),
        ("b", "a title\n", ""),
        ("c", "a title\n", "File: x\n"),
    ] {
        let content = format!("{title}{}{}", "\n".repeat(5_000), lines(300));
        let location = store_result(&reduction, id, content.clone()).await;
        let cat = ToolCall::new("cat", "cat", json!({"file": location}).to_string());
        let shown = reduction
            .truncate(&cat, format!("{header}{content}"))
            .await
            .unwrap();
        assert_eq!(
            shown.report.decisions[0].outcome,
            Outcome::Paged,
            "{title}{header}"
        );
    }
}

#[tokio::test]
async fn r3_a_stretch_of_content_that_repeats_itself_is_found_or_gets_shorter() {
    let store = memory();
    let reduction = small(&store).build().unwrap();
    let content: String = (0..40)
        .map(|n| format!("{}run {n}\n", "ok\n".repeat(500)))
        .collect();
    let mut location = store_result(&reduction, "a", content.clone()).await;
    let mut text_of = content;
    for step in 0..50 {
        // The model leaves out the first lines each time, and reads the location that it is given.
        let output: String = text_of.split_inclusive('\n').skip(7).collect();
        if output.len() <= 1_000 {
            return;
        }
        let tail = ToolCall::new(
            format!("b{step}"),
            "tail",
            json!({"file": location}).to_string(),
        );
        let shown = reduction.truncate(&tail, output.clone()).await.unwrap();
        let decision = &shown.report.decisions[0];
        if decision.outcome == Outcome::Truncated {
            (location, text_of) = (decision.locations[0].to_string(), output);
        }
        // From then on, reading the whole content gives a page.
        let cat = ToolCall::new(
            format!("c{step}"),
            "cat",
            json!({"file": location}).to_string(),
        );
        let shown = reduction.truncate(&cat, text_of.clone()).await.unwrap();
        assert_eq!(shown.report.decisions[0].outcome, Outcome::Paged);
    }
}

#[tokio::test]
async fn r3_bytes_that_are_not_utf8_are_not_stored_again() {
    let store = memory();
    let reduction = small(&store).build().unwrap();
    let content: Vec<u8> = (0..9_000_u32).map(|n| (n * 7 % 251) as u8).collect();
    let location = store_result(&reduction, "a", ToolOutput::bytes(content.clone())).await;
    let cat = ToolCall::new("b", "cat", json!({"file": location}).to_string());
    let shown = reduction
        .truncate(&cat, ToolOutput::bytes(content))
        .await
        .unwrap();
    assert_eq!(shown.report.decisions[0].outcome, Outcome::Paged);
    assert_eq!(store.len(), 1);
}

#[tokio::test]
async fn r3_text_that_a_reader_adds_is_kept() {
    let store = memory();
    let reduction = small(&store).build().unwrap();
    let location = store_result(&reduction, "a", lines(400)).await;
    let cat = ToolCall::new("b", "cat", json!({"file": location}).to_string());
    let some: String = lines(400)
        .lines()
        .skip(99)
        .take(200)
        .map(|line| format!("{line}\n"))
        .collect();
    for (header, footer) in [
        ("File: x\n", ""),
        ("", "(2 more lines)\n"),
        ("<file>\n", "lines 100-299 of 400"),
    ] {
        let shown = reduction
            .truncate(&cat, format!("{header}{some}{footer}"))
            .await
            .unwrap();
        assert_eq!(
            shown.report.decisions[0].outcome,
            Outcome::Paged,
            "{header}{footer}"
        );
        let [beside, page] = &shown.parts[..] else {
            panic!("{:?}", shown.parts)
        };
        assert_eq!(
            text(std::slice::from_ref(beside)),
            format!("{header}{footer}")
        );
        let page = Hint::parse(text(std::slice::from_ref(page))).unwrap();
        assert!(
            some.starts_with(&page.preview)
                && matches!(page.kind, Kind::Page { from } if from.line == 100)
        );
    }
}

proptest! {
    #![proptest_config(proptest::test_runner::Config { cases: 64, ..Default::default() })]
    /// After any omission, insertion or repetition of stored content, the result can be put
    /// together again from the page.
    #[test]
    fn l1_only_one_unbroken_stretch_becomes_a_page(
        rows in vec("[ab]{0,3}\\PC{0,30}", 60..200), edits in vec((0_usize..4, proptest::prelude::any::<Index>()), 0..3),
        from in proptest::prelude::any::<Index>(), numbers in proptest::bool::ANY, repeats in 1_usize..4,
    ) {
        let rows: Vec<String> = rows.iter().cycle().take(rows.len() * repeats).cloned().collect();
        let content: String = rows.iter().map(|row| format!("{row}\n")).collect();
        let mut shown: Vec<(usize, String)> = rows.into_iter().zip(1..).map(|(row, n)| (n, row)).skip(from.index(40)).collect();
        for (edit, at) in edits {
            let at = at.index(shown.len());
            match edit {
                0 => drop(shown.remove(at)),
                1 => shown.insert(at, (at, "put in".into())),
                2 => shown.truncate(at.max(30)),
                _ => shown[at].1.push('!'),
            }
        }
        let shown = shown.into_iter().map(|(n, row)| if numbers { format!("{n:>6}\t{row}\n") } else { format!("{row}\n") });
        let output: String = shown.collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let store = memory();
            let reduction = small(&store).build().unwrap();
            let location = store_result(&reduction, "a", content.clone()).await;
            if !location.starts_with("memory") || output.len() <= 1_000 {
                return Ok(());
            }
            let cat = ToolCall::new("b", "cat", json!({"file": location}).to_string());
            let shown = reduction.truncate(&cat, output.clone()).await.unwrap();
            if shown.report.decisions[0].outcome != Outcome::Paged {
                let all = stored(&store).await;
                prop_assert_eq!(&all.iter().find(|(at, _)| at.ends_with("/b")).unwrap().1, output.as_bytes());
                return Ok(());
            }
            let [beside @ .., page] = &shown.parts[..] else { panic!("nothing is shown") };
            let beside = beside.first().map_or("", |part| text(std::slice::from_ref(part)));
            let Kind::Page { from } = Hint::parse(text(std::slice::from_ref(page))).unwrap().kind else { panic!("no page") };
            let there: Vec<&str> = content.split('\n').skip(from.line as usize - 1).collect();
            let there = there.join("\n");
            let numbered: String = there.lines().zip(from.line..).map(|(row, n)| format!("{n:>6}\t{row}\n")).collect();
            let there = if numbers { &numbered } else { &there[from.byte as usize..] };
            let is_whole = (0..=beside.len()).filter(|at| beside.is_char_boundary(*at)).any(|at| {
                let (header, footer) = beside.split_at(at);
                let stretch = output.strip_prefix(header).and_then(|rest| rest.strip_suffix(footer));
                stretch.is_some_and(|stretch| there.starts_with(stretch))
            });
            prop_assert_eq!(is_whole, true, "{:?} of {:?}", beside, output);
            Ok(())
        })?;
    }
}
