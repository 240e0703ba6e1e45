//! The gateway for settings that can't be used.

use offcut_mcp::McpGateway;

use crate::failure::Failure;
use crate::output;

/// The gateway, or one that changes nothing.
pub(super) fn or_passing(gateway: Result<McpGateway, Failure>) -> McpGateway {
    gateway.unwrap_or_else(|failure| {
        output::report(&failure);
        output::warn("passing everything as it is, without offcut");
        McpGateway::passing().log(output::warn)
    })
}
