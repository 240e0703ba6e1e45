//! Arguments that several commands share.

use offcut::backend::StoreUrl;

/// Settings and store of a command around agents.
#[derive(Debug, clap::Args)]
pub(crate) struct OfUser {
    /// Settings: a .toml or .json file, or the name of a built-in policy. Default:
    /// OFFCUT_HOME/offcut.toml if it is there, else recommended.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<String>,
    /// Store, overriding the settings: a path, memory:, or s3://bucket/prefix. Default without any:
    /// OFFCUT_HOME/store, by default ~/.local/share/offcut/store.
    #[arg(long, value_name = "URL")]
    pub(crate) backend: Option<StoreUrl>,
}

/// Settings, store and session of a command in a pipeline.
#[derive(Debug, clap::Args)]
pub(crate) struct Reduction {
    /// Settings: a .toml or .json file, or the name of a built-in policy. Default: recommended; for
    /// `read` without --backend, OFFCUT_HOME/offcut.toml if it is there.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<String>,
    /// Store for content, overriding the settings: a path, memory:, or s3://bucket/prefix. Unless these
    /// name one, which the built-in policies do not, it is required; `read` uses OFFCUT_HOME/store.
    /// Relative paths, also in settings files, are relative to the working directory.
    #[arg(long, value_name = "URL")]
    pub(crate) backend: Option<StoreUrl>,
    /// Id of the conversation, if several share a store: each stores under its own prefix.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
}
