//! The live page of `offcut serve` in a real browser: no script errors, no requests to others, and nothing
//! wider than the screen, at two widths and in both themes.
//!
//! Needs Chromium, from `OFFCUT_CHROMIUM` or `PATH`. Without it, the test says that it was skipped,
//! and passes.

#![cfg(all(feature = "serve", unix))]

use std::io::Write;

use crate::chromium::{Browser, chromium};
use crate::serving::{User, answering};
use crate::support::text;
use serde_json::{Value, json};

/// A name that breaks out of a page that takes text for markup.
const HOSTILE: &str = "<img src=x onerror='hacked = true'>";

/// Waits for the figures, opens the first conversation, and describes what is there.
const LOOK: &str = r##"(async () => {
  const seen = (is) => new Promise((done) => {
    const look = () => is() && (observer.disconnect(), done());
    const observer = new MutationObserver(look);
    observer.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
    look();
  });
  const texts = (selector) => [...document.querySelectorAll(selector)].map((it) => it.textContent);
  await seen(() => document.getElementById("state").textContent.startsWith("Live"));
  document.querySelector("#rows button").click();
  await seen(() => document.querySelector("#sizes polyline"));
  const tiles = Object.fromEntries(texts("#tiles dt").map((name, at) => [name, texts("#tiles dd")[at]]));
  return {
    tiles, rows: texts("#rows td"), heads: texts("thead th"), changes: texts("#changes td"), passed: texts("#passed td"), state: texts("#state")[0],
    wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    smallest: Math.min(...[...document.querySelectorAll("p, td, th, text, dt, dd")]
      .filter((it) => it.getClientRects().length).map((it) => parseFloat(getComputedStyle(it).fontSize))),
    focus: document.activeElement.id, images: document.images.length, hacked: window.hacked === true,
    ground: getComputedStyle(document.body).backgroundColor,
  };
})()"##;

#[test]
fn the_live_page_works_in_a_browser() {
    let Some(program) = chromium() else {
        let skipped = "SKIPPED the_live_page_works_in_a_browser: there is no Chromium in PATH or OFFCUT_CHROMIUM";
        writeln!(std::io::stderr(), "{skipped}").unwrap();
        return;
    };
    let user = User::new();
    let provider = answering("200 OK", "{}".to_owned());
    let card = user.path("card.toml");
    let prices = "cached = 0.3\nfresh = 3.0\ncurrency = \"USD\"\nsource = \"<b>a list</b>\"\ndate = \"2026-01-31\"\n";
    std::fs::write(&card, prices).unwrap();
    let table = "cut_without_reader = true\nreduce_seconds = 10";
    let args = ["--listen", "127.0.0.1:0", "--prices", text(&card)];
    let server = user.serve(&provider, table, &args);
    (0..=4).for_each(|n| server.call_of(HOSTILE, n));

    let mut browser = Browser::open(&program);
    let mut grounds = Vec::new();
    for (width, is_phone) in [(390, true), (1400, false)] {
        for theme in ["light", "dark"] {
            browser.view(width, is_phone, theme);
            // An address that differs in its fragment alone would not be loaded again.
            browser.load("about:blank");
            browser.load(&server.page);
            let seen = browser.evaluate(LOOK);
            let at = format!("{width} pixels, {theme}: {seen}");
            assert_eq!(
                (&seen["hacked"], &seen["images"]),
                (&json!(false), &json!(0)),
                "{at}"
            );
            assert!(seen["wide"].as_f64().unwrap() <= 0.0, "{at}");
            assert!(seen["smallest"].as_f64().unwrap() >= 12.0, "{at}");
            assert_eq!(seen["focus"], "title", "{at}");
            for (tile, shown) in [
                ("conversations", "1"),
                ("calls", "5"),
                ("results cut", "4"),
                ("read back", "0"),
                ("passed open", "0"),
            ] {
                assert_eq!(seen["tiles"][tile], shown, "{tile} {at}");
            }
            assert!(
                seen["tiles"]["cost after"]
                    .as_str()
                    .unwrap()
                    .starts_with("USD 0."),
                "{at}"
            );
            let rows = seen["rows"].as_array().unwrap();
            assert_eq!(rows[..3], ["1", "openai", "4"].map(Value::from), "{at}");
            assert_eq!(seen["changes"].as_array().unwrap()[2], HOSTILE, "{at}");
            assert!(
                seen["state"]
                    .as_str()
                    .unwrap()
                    .contains("<b>a list</b>, 2026-01-31"),
                "{at}"
            );
            grounds.push(seen["ground"].clone());
        }
    }
    assert_eq!(grounds[..2], grounds[2..]);
    assert_ne!(grounds[0], grounds[1], "the themes differ");
    browser
        .events
        .retain(|event| event["params"]["request"]["url"] != "about:blank");
    browser.assert_quiet(&server.url);
    // A server that is gone is said to be, and a new one has another token.
    drop(server);
    let gone = browser.evaluate(
        "new Promise((done) => { const state = document.getElementById('state'); const look = () => state.textContent.startsWith('Live') || done(state.textContent); \
         new MutationObserver(look).observe(state, { childList: true, characterData: true, subtree: true }); look(); })",
    );
    assert_eq!(gone, "The server does not answer. Trying again.");
}
