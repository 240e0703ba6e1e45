//! A name in a text keeps its content, however the text spells it.

use offcut::backend::{Backend, Memory};
use offcut::sweep::Live;

use super::clocked::{Clock, Clocked};
use super::rules::sweep;
use super::{DAY, key};

const KEY: &str = "s-1/trunc/call_1";

/// Number of stored contents, one or none, that `text` keeps.
async fn kept(text: &str) -> u64 {
    let store = Clocked::new(Memory::named("t").unwrap(), &Clock::new());
    store.put(&key(KEY), "content".into()).await.unwrap();
    store.clock.turn(3 * DAY);
    let report = sweep(&store, &Live::new().text(text)).await;
    assert_eq!(report.live.count + report.removed.count, 1, "{text}");
    report.live.count
}

/// The key with its slashes, dash and underscore in these spellings.
fn with(slash: &str, dash: &str, underscore: &str) -> String {
    format!("/store/{KEY}")
        .replace('/', "\0")
        .replace('-', dash)
        .replace('_', underscore)
        .replace('\0', slash)
}

/// The whole path, with each character written by `spell`.
fn all(spell: impl Fn(char) -> String) -> String {
    format!("/store/{KEY}").chars().map(spell).collect()
}

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn percent(text: &str) -> String {
    text.chars()
        .map(|char| {
            if char.is_ascii_alphanumeric() {
                char.to_string()
            } else {
                format!("%{:02X}", u32::from(char))
            }
        })
        .collect()
}

fn html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('"', "&quot;")
        .replace('<', "&lt;")
}

#[tokio::test]
async fn w3_documented_spellings_keep_content() {
    let mut spelled = vec![
        // JSON, and JSON in JSON.
        with("/", r"\u002d", r"\u005f"),
        with(r"\/", r"\u002D", r"\u005F"),
        with(r"\\\/", r"\\u002d", r"\\\\u005f"),
        with(r"\u002f", r"-", r"_"),
        all(|char| format!("\\u{:04x}", u32::from(char))),
        // Percent-encoding, once, twice and more often.
        with("%2F", "%2D", "%5F"),
        with("%2f", "%2d", "%5f"),
        with("%252F", "%252D", "%255F"),
        with("%25252f", "%2525252d", "%252525255F"),
        all(|char| format!("%{:02x}", u32::from(char))),
        // HTML, and HTML in HTML.
        with("&sol;", "&hyphen;", "&lowbar;"),
        with("&sol;", "&dash;", "&UnderBar;"),
        with("&#47;", "&#45;", "&#95;"),
        with("&#047;", "&#00045;", "&#0095;"),
        with("&#x2f;", "&#x2D;", "&#X5f;"),
        with(
            "&#x002f;",
            "&#x0000000000000000000000000000002d;",
            "&#x05F;",
        ),
        with("&amp;sol;", "&amp;#45;", "&amp;amp;lowbar;"),
        all(|char| format!("&#{};", u32::from(char))),
        // Markdown.
        with("/", r"\-", r"\_"),
    ];
    // Layers of several kinds, in any order.
    let path = format!("/store/{KEY}");
    for layers in [
        [percent, json, html],
        [json, percent, html],
        [html, percent, json],
        [percent, percent, json],
        [json, json, html],
    ] {
        spelled.push(layers.iter().fold(path.clone(), |text, layer| layer(&text)));
        spelled.push(
            layers
                .iter()
                .fold(with("&#47;", "-", "&lowbar;"), |text, layer| layer(&text)),
        );
        spelled.push(
            layers
                .iter()
                .fold(with(r"\/", r"\u002d", r"\u005f"), |text, layer| {
                    layer(&text)
                }),
        );
    }
    for text in &spelled {
        for around in [
            "{}",
            "see {}.",
            r#"{"path":"{}"}"#,
            "a\\n{}\\n",
            "?path={}&more=1",
            "%20{}%20",
        ] {
            assert_eq!(
                kept(&around.replace("{}", text)).await,
                1,
                "{}",
                around.replace("{}", text)
            );
        }
    }
}

#[tokio::test]
async fn w3_names_that_may_be_meant_literally_stay_too() {
    for text in [
        // Windows has backslashes between the directories above a store.
        r"C:\s-1/trunc/call_1",
        r"C:\tmp\s-1/trunc/call_1",
        r"C:\\new\\s-1/trunc/call_1",
        "s-1/trunc/call_1%5F",
        "s-1/trunc/call_1%2Fmore",
        "s-1/trunc/call_1%252Fmore",
        r"s-1/trunc/call_1\u002d",
        "s-1/trunc/call_1&lowbar;",
        "%20s-1/trunc/call_1",
        "50%s-1/trunc/call_1",
        r"\u003es-1/trunc/call_1",
    ] {
        assert_eq!(kept(text).await, 1, "{text}");
    }
    for text in [
        "s-1/trunc/call_12",
        "s-1/trunc/call%5F2",
        "xs-1/trunc/call_1",
        "s-1/trunc/call",
        "s-1%20/trunc/call_1",
    ] {
        assert_eq!(kept(text).await, 0, "{text}");
    }
}

/// Spellings that docs/sweeping.md says are not read.
#[tokio::test]
async fn w3_spellings_that_are_not_promised_are_as_documented() {
    for text in [
        "L3N0b3JlL3MtMS90cnVuYy9jYWxsXzE=",
        "2f73746f72652f732d312f7472756e632f63616c6c5f31",
        r"s-1\x2ftrunc\x2fcall_1",
        "s-1/trunc/call\n_1",
        "s-1/trunc/\u{1b}[1mcall_1",
        r#"{"delta":"s-1/trunc/ca"}{"delta":"ll_1"}"#,
        "s-1&#47trunc&#47call_1",
    ] {
        assert_eq!(kept(text).await, 0, "{text}");
    }
}

#[tokio::test]
async fn w3_long_spellings_are_found_in_long_lines() {
    let spelled = with(r"\\\\\/", "%25252D", "&amp;amp;#0000000095;");
    for filler in ["-", "a/", "%25", "\\", "&amp;", "trunc/"] {
        let text = format!(
            "{}/{spelled} {}",
            filler.repeat(200_000 / filler.len()),
            filler.repeat(200_000 / filler.len())
        );
        assert_eq!(kept(&text).await, 1, "after {filler}");
    }
    assert_eq!(
        kept(&format!("/s-1/trunc/call_1{}", "-".repeat(60_000))).await,
        1,
        "a line below it"
    );
}
