//! The settings of a gateway.

use std::fmt;
use std::sync::Arc;

use offcut::ToolReduction;
use tokio::sync::Semaphore;

/// Maximum length of a message that is read, in bytes, unless it is set.
const MAX_MESSAGE: usize = 64 << 20;

/// Maximum number of bytes of tools' names and output schemas that are kept for all clients together.
const MAX_TOOLS: usize = 16 << 20;

/// Maximum number of bytes of a line that is not a message, in the log.
const MAX_LINE: usize = 1024;

/// Takes a line for the log.
pub(super) type Log = dyn Fn(&str) + Send + Sync;

/// A gateway around an MCP server: the settings of its [`Conversation`](crate::Conversation)s.
///
/// Everything passes as raw JSON, in both directions and in order, but for:
///
/// - **Results of `tools/call`** over the limit, which [`reduce`](crate::reduce) shortens.
/// - **`tools/list`**, which has the reader at the end of its first page. If the server has a tool of that
///   name, the reader takes another.
/// - **Calls of the reader**, which the gateway answers itself.
///
/// If the client calls a tool before it has asked for the list of tools, the gateway asks for the
/// first page itself, for the tools' schemas.
///
/// # Default
///
/// - messages over 64 MiB are refused
/// - nothing is logged
pub struct McpGateway {
    /// `None` if nothing is to change.
    pub(super) reduction: Option<ToolReduction>,
    pub(crate) max_message: usize,
    pub(super) room_for_tools: Arc<Semaphore>,
    pub(crate) log: Box<Log>,
}

impl McpGateway {
    /// A gateway that bounds results with `reduction`.
    #[must_use]
    pub fn new(reduction: ToolReduction) -> Self {
        Self {
            reduction: Some(reduction),
            ..Self::passing()
        }
    }

    /// A gateway that changes nothing.
    #[must_use]
    pub fn passing() -> Self {
        Self {
            reduction: None,
            max_message: MAX_MESSAGE,
            room_for_tools: Arc::new(Semaphore::new(MAX_TOOLS)),
            log: Box::new(|_| {}),
        }
    }

    /// Sets the maximum length of a message in bytes. For a longer one, whoever waits gets an error.
    #[must_use]
    pub fn max_message(mut self, bytes: usize) -> Self {
        self.max_message = bytes;
        self
    }

    /// The reason why a message is refused.
    pub(crate) fn too_long(&self) -> String {
        let most = self.max_message;
        format!("longer than {most} bytes, or more than there is room for: raise --max-message")
    }

    /// Logs that a message is refused.
    pub(crate) fn note_long(&self, from: &str) {
        (self.log)(&format!("a message of {from} is {}", self.too_long()));
    }

    /// Logs what a server has written where messages belong.
    pub(crate) fn note_other(&self, line: &[u8]) {
        let line = line.trim_ascii();
        let start = String::from_utf8_lossy(&line[..line.len().min(MAX_LINE)]);
        (self.log)(&format!(
            "the server has written to stdout what is not a message: {start:?}"
        ));
    }

    /// Sends `log` a line about each message that is refused, or passes unchanged though it should not, and the beginnings of
    /// lines that a server writes to stdout though they are not messages. Other lines hold no content; names of
    /// tools are escaped.
    #[must_use]
    pub fn log(mut self, log: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.log = Box::new(log);
        self
    }
}

impl fmt::Debug for McpGateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpGateway")
            .field("reduction", &self.reduction)
            .field("max_message", &self.max_message)
            .finish_non_exhaustive()
    }
}
