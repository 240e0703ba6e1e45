//! `offcut config`.

use std::collections::BTreeSet;
use std::process::ExitCode;

use offcut::Settings;
use offcut::backend::StoreUrl;
use serde_json::json;

use crate::failure::{Failure, OrFail as _};
use crate::policies::READY;
use crate::{output, settings, stores};

/// Every option with its value in the preset `recommended`.
const DEFAULT: &str = include_str!("default.toml");

pub(crate) fn default(policy: Option<&str>, json: bool) -> Result<ExitCode, Failure> {
    let ready = READY.iter();
    let named = ready.filter(|(name, _)| Some(*name) == policy && *name != "recommended");
    let text = named.map(|(_, text)| *text).next().unwrap_or(DEFAULT);
    match json {
        true => output::write_json(&Settings::from_toml(text).or_fail(settings::HELP)?)?,
        false => output::write(text)?,
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn check(file: &str, json: bool) -> Result<ExitCode, Failure> {
    let runtime = settings::runtime()?;
    let _inside = runtime.enter();
    let settings = settings::load(file)?;
    let mut with_store = settings.clone();
    let url = &mut with_store.backend_url;
    url.get_or_insert_with(|| settings::MEMORY.into());
    settings::build(&with_store, file)?;
    #[cfg(feature = "serve")]
    let of_server = crate::serving::check(file, &settings)?;
    let urls: BTreeSet<&StoreUrl> = stores::named_in(&settings).collect();
    for url in urls {
        let checked = runtime.block_on(stores::check(url.as_str()));
        checked.or_advise(file, "the settings are fine: fix the store. Until then nothing is stored, and `on_offload_error` decides what is shown")?;
    }
    if json {
        output::write_json(&json!({"ok": true, "settings": shown(settings.clone())}))?;
    } else {
        output::write(&format!("{file} is fine\n"))?;
    }
    if let Some(said) = settings::without_preset(file) {
        output::warn(&said.join(": "));
    }
    if settings.backend_url.is_none() {
        output::note(
            "it names no backend: commands store in OFFCUT_HOME/store, and a program of yours sets its own",
        );
    }
    #[cfg(feature = "serve")]
    for note in of_server {
        output::note(&format!("`offcut serve`: {note}"));
    }
    let directories = stores::named_in(&settings).filter_map(StoreUrl::directory);
    for missing in directories.filter(|directory| !directory.exists()) {
        output::note(&format!(
            "the directory {} does not exist yet: it is made on first use",
            missing.display()
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Hides secrets in the stores' URLs: printed settings may end up in a log.
fn shown(mut settings: Settings) -> Settings {
    let of_tools = settings
        .tool_config
        .values_mut()
        .map(|tool| &mut tool.backend_url);
    for url in of_tools.chain([&mut settings.backend_url]).flatten() {
        *url = StoreUrl::from(url.to_string());
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file with its options uncommented.
    fn uncommented() -> String {
        let lines = DEFAULT.lines().filter_map(|line| line.strip_prefix("#: "));
        lines.map(|line| format!("{line}\n")).collect()
    }

    #[test]
    fn every_option_is_printed_with_its_recommended_value() {
        assert_eq!(
            Settings::from_toml(DEFAULT).unwrap(),
            Settings::recommended(),
            "all but the preset is comments"
        );
        assert_eq!(
            Settings::from_toml(&uncommented()).unwrap(),
            Settings::recommended()
        );
        let serde_json::Value::Object(fields) = serde_json::to_value(Settings::default()).unwrap()
        else {
            panic!()
        };
        for field in fields.keys() {
            let is_listed = DEFAULT.lines().any(|line| {
                let line = line.trim_start_matches(['#', ':', ' ', '[']);
                line.strip_prefix(field.as_str())
                    .is_some_and(|rest| rest.starts_with([' ', '.']))
            });
            assert!(is_listed, "`{field}` is missing in default.toml");
        }
    }

    #[test]
    fn options_without_a_default_are_valid_examples() {
        let examples = DEFAULT.lines().filter_map(|line| line.strip_prefix("# "));
        let is_setting = |line: &&str| line.starts_with('[') || line.split(' ').nth(1) == Some("=");
        let text: String = examples
            .filter(is_setting)
            .map(|line| format!("{line}\n"))
            .collect();
        let settings = Settings::from_toml(&text).unwrap();
        assert_eq!(settings.tool_config.len(), 1, "{text}");
        assert_eq!(settings.templates.len(), 1, "{text}");
        assert!(settings.backend_url.is_some(), "{text}");
    }
}
