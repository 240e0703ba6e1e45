//! Configuration errors, with advice.

use std::sync::Arc;

use crate::hint::WrongTemplate;

use crate::backend::{ErrorChain, KeyError, StoreUrl, debug_as_chain};

/// A configuration that does not build.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Truncation stores the text it cuts off, but there is no store.
    #[error("no backend for {}: set `backend`, or `skip_truncation`", of(.tool))]
    NoBackend {
        /// The tool, or `None` for all tools.
        tool: Option<String>,
    },
    /// The settings name a store that can't be opened.
    #[error("the `backend` of {}, `{url}`, can't be opened: {}", of(.tool), ErrorChain(&**.cause))]
    Open {
        /// The tool, or `None` for all tools.
        tool: Option<String>,
        /// The store's URL, shown without its secrets.
        url: StoreUrl,
        /// The reason. It is part of the message, so it is not the error's `source()`.
        cause: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// A policy names a store by a URL that was never opened.
    #[error(
        "the `backend` of the tool `{tool}`, `{url}`, was not opened: make the policy part of the settings that \
         `Builder::settings` takes, or set it with `ToolPolicy::backend`"
    )]
    NotOpened {
        /// The tool.
        tool: String,
        /// The store's URL, shown without its secrets.
        url: StoreUrl,
    },
    /// A tool's name has a `*`. Names are compared exactly, so it would match nothing.
    #[error(
        "`{option}` names the tool `{tool}`: names of tools are exact, and `*` matches nothing; name each tool"
    )]
    ToolPattern {
        /// The option with the name.
        option: &'static str,
        /// The name.
        tool: String,
    },
    /// A threshold of zero would clear everything.
    #[error("`max_tokens_for_clear` is 0: set at least 1, or turn the phase off with `skip_clear`")]
    ZeroThreshold,
    /// Two stores give the same location to different content, so a hint would be ambiguous.
    #[error(
        "two backends give the same location to different content: use one of them for all tools, or give them \
         names (`Memory::named`)"
    )]
    SameLocations,
    /// A length's curve has an invalid scale or exponent.
    #[error(
        "`{field}` of {} is not a valid curve: set `scale` above 0, and `exponent` above 0 and at most 1, or give a number of bytes",
        of(.tool)
    )]
    InvalidCurve {
        /// The field.
        field: &'static str,
        /// The tool, or `None` for all tools.
        tool: Option<String>,
    },
    /// No page of stored content would fit under the limit.
    #[error(
        "`max_length_for_trunc` of {} is {limit}, too small for a page of stored content: raise it to at least {at_least}, or \
         turn the phase off with `skip_truncation`",
        of(.tool)
    )]
    LimitTooSmall {
        /// The tool, or `None` for all tools.
        tool: Option<String>,
        /// The limit as it was set, in bytes.
        limit: usize,
        /// A value that is allowed.
        at_least: usize,
    },
    /// The prefix is not a safe path.
    #[error(
        "`root_dir` must be a safe path of at most 8 segments and 400 bytes without `trunc`, `clear` or `meta`: leave it \
         empty, or use a name such as `agent-1`"
    )]
    RootDir {
        /// Reason why the path is not a safe key; `None` for other problems.
        #[source]
        source: Option<KeyError>,
    },
    /// The reader has no name.
    #[error(
        "`read_file_tool_name` is empty: set the reader's name, or `None` (`false` in files) for hints that name no tool"
    )]
    NamelessReader,
    /// The template of a sentence can't be used.
    #[error(transparent)]
    Template(#[from] WrongTemplate),
    /// Support for the counter was not compiled in.
    #[error("this `token_counter` needs the feature `tiktoken`: enable it, or use the estimate")]
    CounterNotCompiledIn,
}

debug_as_chain!(BuildError);

fn of(tool: &Option<String>) -> String {
    match tool {
        Some(tool) => format!("the tool `{tool}`"),
        None => "all tools".to_owned(),
    }
}
