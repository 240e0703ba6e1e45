//! An MCP server with long results, and a client's view of it.
// Each test uses only a part of this module.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

pub(crate) mod client;
pub(crate) mod server;

use offcut::backend::Memory;
use offcut::{ToolPolicy, ToolReduction};

/// The limit, in bytes.
pub(crate) const LIMIT: usize = 2_000;

pub(crate) fn reduction() -> ToolReduction {
    ToolReduction::builder()
        .backend(Memory::named("t").unwrap())
        .max_length_for_trunc(LIMIT)
        .preview_length(500)
        .tool("exact", ToolPolicy::new().skip_truncation(true))
        .build()
        .unwrap()
}
