//! A server between agents and their providers: long tool results leave the context of any agent
//! that has a base URL to set.
//!
//! Whatever it does not replace passes byte for byte: bodies, headers, queries, streams and errors.
//! [The page on it](https://github.com/offcut-rs/offcut/blob/main/docs/serve.md) says how to run it.

/// Makes an enum of rows: a name in code, and what belongs to it, which `row` gives.
macro_rules! rows {
    ($(#[$doc:meta])* $name:ident: $row:ty { $($variant:ident => $value:expr,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum $name {
            $($variant),*
        }

        impl $name {
            #[allow(dead_code)] // Not each of them is walked through.
            pub(crate) const ALL: &[Self] = &[$(Self::$variant),*];

            pub(crate) fn row(self) -> $row {
                match self {
                    $(Self::$variant => $value),*
                }
            }
        }
    };
}

mod answer;
mod body;
mod breaker;
mod credentials;
mod encoding;
mod jobs;
mod metrics;
mod naming;
mod outcome;
mod own;
mod page;
mod pass;
mod plug;
mod reader;
mod reducer;
mod reply;
mod secret;
mod send;
mod server;
mod service;
mod settings;
mod upstream;
mod watch;
mod whose;
mod work;

pub use page::figures;
pub use secret::Secret;
pub use server::Gateway;
pub use settings::{GatewayError, OnFailure, ServeSettings};
pub(crate) use watch::{MissSums, Prompt, RecentPrompts};
pub use watch::{RequestRecord, Size};
