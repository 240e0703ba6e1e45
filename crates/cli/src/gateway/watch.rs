//! Figures of the conversations that pass: what each would have sent and did send, and what was
//! replaced. It holds sizes, tools' names and reasons, and no content.

mod figures;
mod miss;
mod prompt;

pub use figures::RequestRecord;
pub(crate) use figures::{AwaitedBill, Look, Watch};
pub(crate) use miss::{MissSums, RecentPrompts};
pub(crate) use prompt::Prompt;
pub use prompt::Size;
