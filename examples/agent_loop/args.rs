//! The command-line options, and the store and model opened from them.

use std::path::PathBuf;
use std::sync::Arc;

use lexopt::{Arg, Parser, ValueExt};
use offcut::agent::{AgentError, ChatModel};
use offcut::backend::{Backend, Fs, Memory, StoreUrl};
use offcut::{BuildError, ErrorChain, Language, ToolReduction};

use crate::model::ScriptedModel;

pub(crate) const HELP: &str = "\
An agent explores a directory, and its context stays small.

Usage: cargo run --example agent_loop -- [OPTIONS]

  --dir PATH         the directory to explore [the source tree of this example]
  --backend WHERE    where results are stored: `memory`, a directory that is kept,
                     or, built with `--features s3`, `s3://bucket/prefix`
                     [a temporary directory, removed at the end]
  --max-length N     results over N bytes are truncated, and the preview is a
                     quarter of that, at most 2000 bytes [as in `recommended`]
  --max-tokens N     above N tokens, old results are cleared [12000]
  --keep-rounds N    the newest N rounds are never cleared [1]
  --language LANG    the language of hints, `en` or `zh` [en]
  --model NAME       built with `--features openai`, a real model: at OPENAI_BASE_URL,
                     or OpenAI's, with the key OPENAI_API_KEY [a script]
  --json             a last line with the totals as one JSON object
  -h, --help         this text

Without --model it needs no key and no network: the model is a script that reacts
to what it is shown. It ends with 0 if everything stored could be read back byte for byte,
with 1 if not, and with 2 if it was started in a way that cannot work.
";

/// The options of the example.
///
/// # Default
///
/// See [`HELP`].
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) dir: PathBuf,
    pub(crate) backend: Option<String>,
    pub(crate) max_length: Option<usize>,
    pub(crate) max_tokens: u64,
    pub(crate) keep_rounds: usize,
    pub(crate) language: Language,
    pub(crate) model: Option<String>,
    pub(crate) json: bool,
}

impl Options {
    /// Parses the arguments; `None` if help was requested.
    pub(crate) fn parse(mut from: Parser) -> Result<Option<Self>, Failure> {
        let mut options = Self {
            dir: default_dir(),
            backend: None,
            max_length: None,
            max_tokens: 12_000,
            keep_rounds: 1,
            language: Language::English,
            model: None,
            json: false,
        };
        while let Some(arg) = from.next()? {
            match arg {
                Arg::Long("dir") => options.dir = from.value()?.into(),
                Arg::Long("backend") => options.backend = Some(from.value()?.string()?),
                Arg::Long("max-length") => options.max_length = Some(from.value()?.parse()?),
                Arg::Long("max-tokens") => options.max_tokens = from.value()?.parse()?,
                Arg::Long("keep-rounds") => options.keep_rounds = from.value()?.parse()?,
                Arg::Long("language") => options.language = from.value()?.parse_with(language)?,
                Arg::Long("model") => options.model = Some(from.value()?.string()?),
                Arg::Long("json") => options.json = true,
                Arg::Short('h') | Arg::Long("help") => return Ok(None),
                other => return Err(other.unexpected().into()),
            }
        }
        Ok(Some(options))
    }
}

/// The workspace of this package under cargo, else the current directory.
fn default_dir() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| ".".into(), |package| PathBuf::from(package).join(".."))
}

fn language(text: &str) -> Result<Language, &'static str> {
    match text {
        "en" => Ok(Language::English),
        "zh" => Ok(Language::Chinese),
        _ => Err("use `en` or `zh`"),
    }
}

/// Opens the store that `text` names. To add a kind of store, add an arm.
pub(crate) async fn open_backend(text: Option<&str>) -> Result<Arc<dyn Backend>, Failure> {
    Ok(match text {
        None => Arc::new(Fs::open(std::env::temp_dir().join("offcut-agent-loop"))?),
        Some("memory") => Arc::new(Memory::new()),
        #[cfg(feature = "s3")]
        Some(url) if url.contains("://") => {
            let store = offcut_object_store::Objects::open(url)
                .map_err(|error| Failure::usage(ErrorChain(&error).to_string()))?;
            // Finds a wrong bucket or credentials here, not at the first long result.
            store.check().await?;
            Arc::new(store)
        }
        #[cfg(not(feature = "s3"))]
        Some(url) if url.contains("://") => {
            // Not the whole URL, which may contain a secret.
            let scheme = url.split("://").next().unwrap_or_default();
            return Err(Failure::usage(format!(
                "--backend {scheme}://…: built without it; add `--features s3`, or pass `memory` or a directory"
            )));
        }
        // Not `Fs::open`, which would take a misspelt URL for the name of a directory.
        Some(directory) => offcut::backend::open(directory)?,
    })
}

/// Opens the model called `name`, or else the script.
pub(crate) fn open_model(
    name: Option<&str>,
    reduction: &ToolReduction,
) -> Result<Arc<dyn ChatModel>, Failure> {
    Ok(match name {
        None => Arc::new(ScriptedModel::new(reduction.clone())),
        #[cfg(feature = "openai")]
        Some(name) => {
            let model = offcut_async_openai::OpenAiChatModel::named(name);
            Arc::new(model.map_err(|error| Failure::usage(ErrorChain(&error).to_string()))?)
        }
        #[cfg(not(feature = "openai"))]
        Some(_) => {
            return Err(Failure::usage(
                "--model: built without it; add `--features openai`",
            ));
        }
    })
}

/// A reason for ending early, with a message for the user.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) text: String,
    pub(crate) code: u8,
}

impl Failure {
    /// A wrong command line.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            code: 2,
        }
    }
}

impl From<lexopt::Error> for Failure {
    fn from(error: lexopt::Error) -> Self {
        // Argument values may be store URLs in the wrong place, so secrets in them are hidden.
        let shown = |value: &std::ffi::OsStr| StoreUrl::from(&*value.to_string_lossy());
        let text = match &error {
            lexopt::Error::UnexpectedArgument(value) => {
                format!("unexpected argument {:?}", shown(value))
            }
            lexopt::Error::UnexpectedValue { option, value } => {
                format!(
                    "unexpected argument for option '{option}': {:?}",
                    shown(value)
                )
            }
            lexopt::Error::NonUnicodeValue(value) => {
                format!("argument is invalid unicode: {:?}", shown(value))
            }
            lexopt::Error::ParsingFailed { value, error } => {
                format!("cannot parse argument {:?}: {error}", shown(value.as_ref()))
            }
            other => other.to_string(),
        };
        Self::usage(format!("{text}; --help lists all arguments"))
    }
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Self {
        Self::usage(ErrorChain(&error).to_string())
    }
}

impl From<offcut::backend::BackendError> for Failure {
    fn from(error: offcut::backend::BackendError) -> Self {
        Self::usage(ErrorChain(&error).to_string())
    }
}

impl From<AgentError> for Failure {
    fn from(error: AgentError) -> Self {
        Self {
            text: ErrorChain(&error).to_string(),
            code: 1,
        }
    }
}
