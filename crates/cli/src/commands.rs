//! The commands, one file each.

#[cfg(feature = "serve")]
pub(crate) mod cache;
pub(crate) mod clear;
pub(crate) mod config;
pub(crate) mod gain;
pub(crate) mod hook;
pub(crate) mod install;
#[cfg(unix)]
pub(crate) mod mcp;
pub(crate) mod read;
pub(crate) mod replay;
#[cfg(unix)]
pub(crate) mod run;
#[cfg(feature = "serve")]
pub(crate) mod serve;
pub(crate) mod shell_files;
pub(crate) mod state;
#[cfg(feature = "serve")]
pub(crate) mod status;
pub(crate) mod store;
pub(crate) mod sweep;
pub(crate) mod tidy;
#[cfg(unix)]
pub(crate) mod trial;
pub(crate) mod truncate;
#[cfg(all(feature = "serve", unix))]
pub(crate) mod wrap;
