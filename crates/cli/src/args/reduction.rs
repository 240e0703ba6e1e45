//! Arguments that several commands share.

use offcut::backend::StoreUrl;

/// Settings, store and session of a command.
#[derive(Debug, clap::Args)]
pub(crate) struct Reduction {
    /// Settings: a .toml or .json file, or the name of a built-in policy.
    #[arg(long, value_name = "FILE", default_value = "recommended")]
    pub(crate) config: String,
    /// Store for content, overriding the settings: a path, memory:, or s3://bucket/prefix. Required
    /// unless the settings name a store, which the built-in policies do not. Relative paths, also in
    /// settings files, are relative to the working directory.
    #[arg(long, value_name = "URL")]
    pub(crate) backend: Option<StoreUrl>,
    /// Id of the conversation, if several share a store: each stores under its own prefix.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
}
