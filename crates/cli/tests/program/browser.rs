//! The report in a real browser: no script errors, no requests, and nothing wider than the screen,
//! at two widths and in both themes.
//!
//! Needs Chromium, from `OFFCUT_CHROMIUM` or `PATH`. Without it, the test says that it was skipped,
//! and passes.
// Helpers are part of the tests.

use std::io::Write;
use std::path::Path;

use crate::chromium::{Browser, chromium};
use crate::support::{succeed, text};
use serde_json::json;

/// Opens everything that can be opened, and describes what is there.
const LOOK: &str = r##"(() => {
  const looks = [];
  const wide = () => document.documentElement.scrollWidth - document.documentElement.clientWidth;
  for (const trace of document.getElementById("trace").options) {
    for (const policy of document.getElementById("policy").options) {
      for (const [id, value] of [["trace", trace.value], ["policy", policy.value]]) {
        const select = document.getElementById(id);
        select.value = value;
        select.dispatchEvent(new Event("change"));
      }
      document.querySelectorAll("details").forEach((details) => { details.open = true; });
      document.querySelectorAll("#contexts svg").forEach((svg) => {
        const box = svg.getBoundingClientRect();
        svg.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + box.width / 2, clientY: box.top + 5 }));
      });
      looks.push({
        trace: trace.value, policy: policy.text, wide: wide(),
        rows: document.querySelectorAll("#policies tbody tr").length,
        charts: document.querySelectorAll("#contexts svg polyline").length,
        reading: document.querySelector("#contexts .reading")?.textContent ?? "",
        changes: document.querySelectorAll("#changes details").length,
        tools: [...document.querySelectorAll("#changes > .wide tbody tr")].map((row) => [...row.cells].slice(1, 4).map((cell) => Number(cell.textContent))),
        outcomes: [...new Set([...document.querySelectorAll("#changes details tbody tr")].map((row) => row.cells[2].textContent))],
        objects: /\[object|undefined|NaN/.test(document.body.innerText),
        moments: document.querySelectorAll("#moments details").length,
        marked: document.querySelector("#moments mark")?.textContent ?? "",
        smallest: Math.min(...[...document.querySelectorAll("p, td, th, text, summary")]
          .filter((it) => it.getClientRects().length).map((it) => parseFloat(getComputedStyle(it).fontSize))),
      });
    }
  }
  const ground = getComputedStyle(document.body).backgroundColor, ink = getComputedStyle(document.body).color;
  return { looks, ground, ink, marks: document.images.length, hacked: window.hacked === true };
})()"##;

/// Writes two transcripts in which a string is used long after its result, and which try to break
/// out of the page.
fn transcripts(folder: &Path) {
    for name in ["one", "two"] {
        let mut messages =
            vec![json!({"role": "user", "content": "go </script><script>hacked = true</script>"})];
        for round in 0..6 {
            let id = format!("c{round}");
            let line = |number: u64| {
                format!(
                    "needle_{number} </script><img src=\"https://example.org/x.png\"><svg onload=\"hacked = true\">{{{{style}}}}\n"
                )
            };
            // Among others of its form, a line does not stand out.
            let result: String = (1000..1200)
                .chain([round])
                .chain(1200..1400)
                .map(line)
                .collect();
            let call = json!({"id": id, "type": "function", "function": {"name": "<b>read</b>", "arguments": "{}"}});
            messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
            messages.push(json!({"role": "tool", "tool_call_id": id, "content": result}));
        }
        let old = json!({"old_string": "needle_0 </script>"}).to_string();
        let edit = json!({"id": "e", "type": "function", "function": {"name": "<b>edit</b>", "arguments": old}});
        messages.push(
            json!({"role": "assistant", "content": "I saw needle_0 </script><img src=x onerror=\"hacked = true\">", "tool_calls": [edit]}),
        );
        std::fs::write(
            folder.join(format!("{name}.json")),
            json!({"messages": messages}).to_string(),
        )
        .unwrap();
    }
}

#[test]
fn the_report_works_in_a_browser() {
    let Some(program) = chromium() else {
        let skipped = "SKIPPED the_report_works_in_a_browser: there is no Chromium in PATH or OFFCUT_CHROMIUM";
        writeln!(std::io::stderr(), "{skipped}").unwrap();
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    transcripts(folder.path());
    // Previews of head and tail do not show what is needed from the middle.
    let blind = |preset: &str| {
        let file = folder.path().join(format!("{preset}.toml"));
        std::fs::write(
            &file,
            format!("preset = \"{preset}\"\nmax_length_for_trunc = 8000\npreview_length = 2000\npreview = \"head_tail\""),
        )
        .unwrap();
        format!("{preset}={}", text(&file))
    };
    succeed(
        &[
            "replay",
            text(folder.path()),
            "--policy",
            &blind("recommended"),
            "--policy",
            &blind("eino"),
            "--html",
            text(&page),
        ],
        "",
    );

    let url = format!("file://{}", text(&page));
    let mut browser = Browser::open(&program);
    let mut grounds = Vec::new();
    for (width, is_phone) in [(360, true), (1280, false)] {
        for theme in ["light", "dark"] {
            let at = format!("{width} pixels, {theme}");
            browser.view(width, is_phone, theme);
            browser.load(&url);
            let seen = browser.evaluate(LOOK);
            assert_eq!(
                (&seen["hacked"], &seen["marks"]),
                (&json!(false), &json!(0)),
                "{at}: content is markup"
            );
            grounds.push((
                theme,
                seen["ground"].as_str().unwrap().to_owned(),
                seen["ink"].as_str().unwrap().to_owned(),
            ));
            let looks = seen["looks"].as_array().unwrap();
            assert_eq!(
                looks.len(),
                9,
                "{at}: three transcripts to choose, three policies"
            );
            for look in looks {
                let at = format!("{at}: {look}");
                assert!(
                    look["wide"].as_f64().unwrap() <= 0.0,
                    "wider than the screen: {at}"
                );
                assert!(
                    look["smallest"].as_f64().unwrap() >= 12.0,
                    "too small to read: {at}"
                );
                assert_eq!(look["rows"], 3, "{at}");
                let (is_all, is_none) = (look["trace"] == "-1", look["policy"] == "none");
                assert_eq!(look["charts"], if is_all { 6 } else { 3 }, "{at}");
                assert_eq!(
                    look["reading"].as_str().unwrap().starts_with("Call "),
                    !is_all,
                    "{at}"
                );
                assert_eq!(
                    look["changes"].as_u64().unwrap() > 0,
                    !is_all && !is_none,
                    "{at}"
                );
                assert_eq!(look["objects"], false, "{at}");
                let sums = look["tools"].as_array().unwrap();
                assert!(
                    is_none || sums.iter().any(|sums| sums[0].as_u64() > Some(0)),
                    "{at}"
                );
                let outcomes = look["outcomes"].as_array().unwrap();
                assert!(
                    is_all || is_none || outcomes.contains(&json!("truncated")),
                    "{at}"
                );
                assert_eq!(look["moments"].as_u64().unwrap() > 0, !is_none, "{at}");
                assert_eq!(
                    look["marked"],
                    if is_none { "" } else { "needle_0" },
                    "{at}"
                );
            }
        }
    }
    assert_eq!(
        grounds[..2],
        grounds[2..],
        "the themes are the same at both widths"
    );
    assert!(
        grounds[0].1 != grounds[1].1 && grounds[0].2 != grounds[1].2,
        "the themes differ: {grounds:?}"
    );

    browser.assert_quiet(&url);
    let requests = browser
        .events
        .iter()
        .filter(|event| event["method"] == "Network.requestWillBeSent")
        .count();
    assert_eq!(
        requests, 4,
        "the page itself, each time: the browser does say what it requests"
    );
}
