//! A gateway between a client and a server.

mod conversation;
mod known;
pub(crate) mod lines;
pub(crate) mod message;
mod pipes;
mod settings;
mod waiting;

pub use conversation::{Conversation, FromClient, FromServer};
#[cfg(feature = "http")]
pub(crate) use pipes::LAST_ANSWERS;
pub use pipes::run;
pub use settings::McpGateway;
