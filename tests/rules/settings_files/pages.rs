//! The pages about settings: their tables say what the code does, and their files work as pasted.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use offcut::backend::{self, Memory};
use offcut::{Settings, ToolCall, ToolReduction};

/// Keys of manifests and price cards, which some pages show in TOML too.
const OTHER_FILES: [&str; 3] = ["dependencies", "dev-dependencies", "currency"];

/// The rows of the first table after a heading of a docs page, cell by cell.
fn table(page: &str, heading: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("docs")
            .join(page),
    )
    .unwrap();
    let (_, text) = text.split_once(heading).unwrap();
    let rows = text
        .lines()
        .skip_while(|line| !line.starts_with("|---"))
        .skip(1)
        .take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        row.trim_matches('|')
            .split(" | ")
            .map(|cell| cell.trim().to_owned())
            .collect()
    })
    .collect()
}

#[cfg(feature = "tiktoken")]
#[test]
fn l11_the_table_of_options_has_every_option_with_its_default() {
    let said: Vec<(String, String)> = table("options.md", "")
        .into_iter()
        .map(|cells| {
            (
                cells[0].replace('`', ""),
                cells[1]
                    .replace('`', "")
                    .replace("none", "null")
                    .replace("empty", "\"\""),
            )
        })
        .collect();
    let settings = serde_json::to_value(Settings::default()).unwrap();
    let options = settings.as_object().unwrap().iter();
    // Parsed settings have no preset.
    let are: Vec<(String, String)> = std::iter::once(("preset".into(), "null".into()))
        .chain(options.map(|(name, value)| (name.clone(), value.to_string())))
        .collect();
    assert_eq!(said, are);
}

#[test]
fn every_row_about_eino_names_an_existing_test() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rules");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let tests = read("options.rs") + &read("handlers.rs");
    let rows = table("configuration.md", "## From Eino");
    assert!(rows.len() > 15, "{rows:?}");
    for row in rows {
        let name = row[2].replace(['`', '|'], "");
        assert!(
            tests.contains(&format!("async fn {}()", name.trim())),
            "{row:?}"
        );
    }
}

/// Every page of the repository, by its path.
fn pages() -> Vec<(PathBuf, String)> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()];
    let mut pages = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() && !name.starts_with('.') && name != "target" && name != "node_modules"
            {
                folders.push(path);
            } else if name.ends_with(".md") {
                let text = std::fs::read_to_string(&path).unwrap();
                pages.push((path, text));
            }
        }
    }
    pages
}

/// The settings files that a page shows, without the tables of the server.
fn settings_in(page: &str) -> Vec<&str> {
    let blocks = page
        .split("```toml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .map(|block| block.split("\n[serve").next().unwrap());
    blocks.filter(|block| is_settings(block)).collect()
}

fn is_settings(block: &str) -> bool {
    let table: toml::Table = block.parse().unwrap();
    let is_version = |value: &toml::Value| {
        value.get("version").is_some()
            || value
                .as_str()
                .is_some_and(|v| v.starts_with(char::is_numeric))
    };
    !table.keys().any(|key| OTHER_FILES.contains(&&**key)) && !table.values().all(is_version)
}

/// Somebody who pastes a file gets the measured settings, and what the file itself says.
#[test]
fn settings_on_every_page_are_recommended_but_for_what_they_say() {
    let recommended = serde_json::to_value(Settings::recommended()).unwrap();
    let mut other_presets = Vec::new();
    let mut count = 0;
    for (path, text) in pages() {
        for block in settings_in(&text) {
            let settings = Settings::from_toml(block)
                .unwrap_or_else(|error| panic!("{}: {error}\n{block}", path.display()));
            let table: toml::Table = block.parse().unwrap();
            count += 1;
            let preset = table.get("preset").and_then(toml::Value::as_str);
            if preset != Some("recommended") {
                other_presets.push(preset.map(str::to_owned));
                continue;
            }
            let pasted = serde_json::to_value(settings).unwrap();
            let changed: BTreeSet<&String> = pasted
                .as_object()
                .unwrap()
                .iter()
                .filter(|(name, value)| recommended[*name] != **value)
                .map(|(name, _)| name)
                .collect();
            let said: BTreeSet<&String> = table.keys().collect();
            assert!(
                changed.is_subset(&said),
                "{}: {changed:?} differ from `recommended`, and the file says {said:?}",
                path.display()
            );
        }
    }
    assert!(count >= 6, "only {count} files found");
    assert_eq!(other_presets, [Some("eino".to_owned())]);
}

#[tokio::test]
async fn the_examples_in_the_docs_are_settings() {
    let text = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/configuration.md"),
    )
    .unwrap();
    let examples: Vec<&str> = text
        .split("```toml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    let [first, eino] = examples[..] else {
        panic!("{} examples", examples.len())
    };
    // In memory, so that the tests create no folders.
    let open = |url: &str| Memory::named(url.trim_start_matches("memory:").trim_start_matches('.'));
    let build = |text: &str| {
        ToolReduction::builder()
            .settings(Settings::from_toml(text).unwrap(), open)
            .build()
            .unwrap()
    };
    assert!(
        backend::open("memory:all").is_ok() && !first.contains("= \"s3:"),
        "what the code below it opens"
    );
    build(first);
    // The pasted settings equal `recommended`, apart from the fields that they set themselves.
    let mut pasted = Settings::from_toml(first).unwrap();
    pasted.backend_url = None;
    pasted.tool_config.clear();
    assert_eq!(pasted, Settings::recommended());
    let reduction = build(eino);
    // Unlike in Eino, a tool's own store takes effect without a handler.
    let shown = reduction
        .truncate(&ToolCall::new("c", "grep", "{}"), "x".repeat(30_001))
        .await
        .unwrap();
    assert_eq!(
        shown.report.decisions[0].locations[0].as_str(),
        "memory://greps/data/agent/trunc/c"
    );
}
