//! Settings from a file, with errors that give the place and advice.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde::Deserializer;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_path_to_error::Segment;

use super::Settings;
use super::advice::advise;
use crate::backend::{StoreUrl, debug_as_chain};

/// The options that a file has, by name.
type PresentOptions = BTreeMap<String, IgnoredAny>;

/// Maximum length in bytes of a file of settings.
const MAX_LENGTH: u64 = 16 * 1024 * 1024;

/// Settings can't be read. The error names the file, the line and the field. For an unknown name it
/// suggests the nearest known one.
///
/// ```
/// # use offcut::Settings;
/// let error = Settings::from_json("{\n  \"max_length_for_trunk\": 8000\n}").unwrap_err();
/// assert_eq!(error.to_string(), "line 2, `max_length_for_trunk`: unknown field; did you mean `max_length_for_trunc`?");
/// ```
#[derive(Default)]
#[non_exhaustive]
pub struct SettingsError {
    /// The file, if the settings came from one.
    pub file: Option<PathBuf>,
    /// The line, counted from 1.
    pub line: Option<usize>,
    /// Path of the field, such as `tool_config.grep.preview`; empty for the whole file.
    pub field: String,
    /// The problem, and advice.
    pub problem: String,
}

debug_as_chain!(SettingsError);

impl std::error::Error for SettingsError {}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.as_ref().map(|file| file.display().to_string());
        let line = self.line.map(|line| format!("line {line}"));
        let field = (!self.field.is_empty()).then(|| format!("`{}`", self.field));
        let place: Vec<String> = [file, line, field].into_iter().flatten().collect();
        let colon = if place.is_empty() { "" } else { ": " };
        write!(f, "{}{colon}{}", place.join(", "), self.problem)
    }
}

impl Settings {
    /// Reads settings from TOML. Missing fields get their defaults; unknown fields are errors.
    ///
    /// TOML has no null: `read_file_tool_name = false` names no reader.
    ///
    /// ```
    /// # use offcut::Settings;
    /// let settings = Settings::from_toml("max_length_for_trunc = 20_000\n[tool_config.grep]\nbackend = \"memory:grep\"")?;
    /// assert_eq!(settings.max_length_for_trunc, 20_000);
    /// # Ok::<(), offcut::SettingsError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A [`SettingsError`] with line and field.
    #[cfg(feature = "toml")]
    pub fn from_toml(text: &str) -> Result<Self, SettingsError> {
        let settings: Self = read_toml(text)?;
        let options: PresentOptions = toml::from_str(text).unwrap_or_default();
        Ok(settings.over_preset(|name| options.contains_key(name)))
    }

    /// Reads settings from JSON. Missing fields get their defaults; unknown fields are errors.
    ///
    /// # Errors
    ///
    /// A [`SettingsError`] with line and field.
    pub fn from_json(text: &str) -> Result<Self, SettingsError> {
        let settings: Self = read_json(text)?;
        let options: PresentOptions = serde_json::from_str(text).unwrap_or_default();
        Ok(settings.over_preset(|name| options.contains_key(name)))
    }

    /// Reads settings from a regular file of at most 16 MiB. Its extension must be `.json`, or `.toml`
    /// with the feature `toml`.
    ///
    /// # Errors
    ///
    /// A [`SettingsError`] with file, line and field.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, SettingsError> {
        let path = path.as_ref();
        let ending = path.extension().and_then(|ending| ending.to_str());
        let settings = match ending {
            Some("json") => read_text(path).and_then(|text| Self::from_json(&text)),
            #[cfg(feature = "toml")]
            Some("toml") => read_text(path).and_then(|text| Self::from_toml(&text)),
            #[cfg(not(feature = "toml"))]
            Some("toml") => Err(SettingsError::of_file(
                None,
                "TOML needs the feature `toml`: enable it, or write JSON",
            )),
            _ => Err(SettingsError::of_file(
                None,
                "unknown file type: settings files must end in `.toml` or `.json`",
            )),
        };
        settings.map_err(|error| SettingsError {
            file: Some(path.to_owned()),
            ..error
        })
    }
}

fn read_text(path: &Path) -> Result<String, SettingsError> {
    let text = read_file(path).and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other));
    text.map_err(|error| SettingsError::of_file(None, format!("can't be read: {error}")))
}

impl SettingsError {
    /// A mistake that is in no field.
    fn of_file(line: Option<usize>, problem: impl Into<String>) -> Self {
        Self {
            line,
            problem: problem.into(),
            ..Self::default()
        }
    }
}

/// Reads a file of settings: a regular one of at most 16 MiB. Opening a pipe would wait for its other end, and a device
/// may have no end.
///
/// # Errors
///
/// There is no such file, or it can't be read.
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let refused = |problem| Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    if !fs::metadata(path)?.is_file() {
        return refused("it is not a regular file");
    }
    let mut bytes = Vec::new();
    let mut file = File::open(path)?.take(MAX_LENGTH + 1);
    file.read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_LENGTH {
        return refused("it is longer than 16 MiB");
    }
    Ok(bytes)
}

/// Reads a program's own settings from JSON, with the errors that [`Settings::from_json`] has.
///
/// # Errors
///
/// A [`SettingsError`] with line and field.
pub fn read_json<T: DeserializeOwned>(text: &str) -> Result<T, SettingsError> {
    // serde would accept a list as the fields in order.
    if !text.trim_start().starts_with('{') {
        let problem = "settings must be a JSON object: begin with `{`";
        return Err(SettingsError::of_file(Some(1), problem));
    }
    let line = |error: &serde_json::Error| (error.line() > 0).then(|| error.line());
    let problem = |error: &serde_json::Error| {
        let message = error.to_string();
        let place = message.rfind(" at line ").unwrap_or(message.len());
        message[..place].to_owned()
    };
    let mut from = serde_json::Deserializer::from_str(text);
    let outermost = "write it beside `tool_config`, not in it";
    let settings = read(&mut from, line, problem, outermost)?;
    from.end()
        .map_err(|error| SettingsError::of_file(line(&error), problem(&error)))?;
    Ok(settings)
}

/// Reads a program's own settings from TOML, with the errors that [`Settings::from_toml`] has.
///
/// # Errors
///
/// A [`SettingsError`] with line and field.
#[cfg(feature = "toml")]
pub fn read_toml<T: DeserializeOwned>(text: &str) -> Result<T, SettingsError> {
    let line = |error: &toml::de::Error| {
        let before = text.get(..error.span()?.start)?;
        Some(1 + before.matches('\n').count())
    };
    let from = toml::Deserializer::parse(text)
        .map_err(|error| SettingsError::of_file(line(&error), error.message()))?;
    let outermost = "write it above the first `[table]` of the file";
    read(from, line, |error| error.message().to_owned(), outermost)
}

/// Reads settings. `outermost` says where the options for all tools belong.
fn read<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    from: D,
    line: impl Fn(&D::Error) -> Option<usize>,
    problem: impl Fn(&D::Error) -> String,
    outermost: &str,
) -> Result<T, SettingsError> {
    serde_path_to_error::deserialize(from).map_err(|error| {
        let (field, error) = (shown(error.path()), error.inner());
        let problem = advise(&problem(error), &field, outermost);
        SettingsError {
            field,
            ..SettingsError::of_file(line(error), problem)
        }
    })
}

/// A field's path. Hides secrets, since a store's URL may appear where a name belongs.
fn shown(path: &serde_path_to_error::Path) -> String {
    let segment = |segment: &Segment| match segment {
        Segment::Map { key } => StoreUrl::from(key.as_str()).to_string(),
        segment => segment.to_string(),
    };
    let path: Vec<_> = path.iter().map(segment).collect();
    // A question mark stands for an unreadable name; the problem text says which one.
    let path = path.join(".").replace(".[", "[");
    path.trim_end_matches(['?', '.']).to_owned()
}
