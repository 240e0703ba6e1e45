//! Arguments that several commands share.

use offcut::backend::StoreUrl;

/// Settings, store and session of a command.
#[derive(Debug, clap::Args)]
pub(crate) struct Reduction {
    /// Settings: a .toml or .json file, or the name of a built-in policy. Default: recommended; for
    /// `run`, and for `read` without --backend, OFFCUT_HOME/offcut.toml if it is there.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<String>,
    /// Store for content, overriding the settings: a path, memory:, or s3://bucket/prefix. Unless these
    /// name one, which the built-in policies do not, it is required; `run` and `read` use
    /// OFFCUT_HOME/store. Relative paths, also in settings files, are relative to the working directory.
    #[arg(long, value_name = "URL")]
    pub(crate) backend: Option<StoreUrl>,
    /// Id of the conversation, if several share a store: each stores under its own prefix. Default for
    /// `run`: one for each day.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
}
