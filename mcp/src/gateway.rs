//! A gateway between a client and a server.

mod conversation;
mod known;
pub(crate) mod lines;
pub(crate) mod message;
mod pipes;
mod settings;
mod tools;
mod waiting;

pub use conversation::{Conversation, FromClient, FromServer, ReaderCall};
pub use pipes::run;
pub use settings::McpGateway;
