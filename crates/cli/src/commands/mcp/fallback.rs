//! Settings and servers that can't be used.

use std::ffi::OsString;

use offcut_mcp::McpGateway;

use crate::failure::Failure;
use crate::{child, output};

/// The gateway, or one that changes nothing.
pub(super) fn or_passing(gateway: Result<McpGateway, Failure>) -> McpGateway {
    gateway.unwrap_or_else(|failure| {
        output::report(&failure);
        output::warn("passing everything as it is, without offcut");
        McpGateway::passing().log(output::warn)
    })
}

/// The failure of a server that does not start.
pub(super) fn not_started(words: &[OsString], error: &std::io::Error) -> Failure {
    let advice = "write the server's own command after `offcut mcp --`";
    child::not_started(&words[0], error, advice)
}
