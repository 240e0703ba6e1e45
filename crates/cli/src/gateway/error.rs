//! The error of a server that can't be set up or run.

use crate::gateway::secret::Secret;

/// A server can't be set up, or can't go on. The message says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// The table `[serve]` can't be read.
    #[error(transparent)]
    File(offcut::SettingsError),
    /// The settings of the server are wrong.
    #[error("`serve.{field}`: {problem}")]
    Settings {
        /// The field, such as `upstreams.openai`.
        field: String,
        /// The problem, and what to do about it.
        problem: String,
    },
    /// The certificates that the system trusts can't be used.
    #[error("the system's certificates can't be used; install its package of CA certificates")]
    Certificates(#[source] rustls::Error),
    /// The settings of the reduction are wrong, or a store can't be opened.
    #[error(transparent)]
    Reduction(offcut::BuildError),
    /// No thread can be started to work on requests.
    #[error("the server can't start its threads")]
    Threads(#[source] std::io::Error),
    /// No connection can be accepted.
    #[error("the server can't accept connections")]
    Listen(#[source] std::io::Error),
}

/// Returns true if a name has letters, digits, `-` and `_` only.
pub(crate) fn is_plain(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    !name.is_empty() && name.bytes().all(is_plain)
}

impl GatewayError {
    pub(crate) fn settings(field: impl Into<String>, problem: impl Into<String>) -> Self {
        let (field, problem) = (field.into(), problem.into());
        Self::Settings { field, problem }
    }

    /// A problem with the entry `name` of a table. A name that could be a key, or a URL with a password, written at
    /// its value's place, is not shown.
    pub(crate) fn entry(table: &str, name: &str, problem: impl Into<String>) -> Self {
        match name.len() < Secret::MIN && is_plain(name) {
            true => Self::settings(format!("{table}.{name}"), problem),
            false => Self::settings(table, problem),
        }
    }
}
