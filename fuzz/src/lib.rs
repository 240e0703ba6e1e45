//! Fuzz targets: each takes any bytes and panics if a law does not hold.
//!
//! They are plain functions, so that a test can run them over their corpora without a fuzzer.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "to panic is how a target says what it found"
)]
#![allow(
    missing_docs,
    reason = "each target says what it is at the top of its file"
)]

mod body;
mod formats;
mod hint;
mod key;
mod laws;
mod mcp;
mod mcp_events;
mod mcp_http;
mod preview;
mod reader;
mod replay;
mod schema;
mod settings_file;
mod splitter;

/// A function that takes any bytes and panics if a law does not hold.
pub type Target = fn(&[u8]);

/// All targets, by the name of their corpus.
pub const TARGETS: [(&str, Target); 16] = [
    ("anthropic", formats::anthropic),
    ("body", body::body),
    ("gemini", formats::gemini),
    ("hint", hint::hint),
    ("key", key::key),
    ("mcp", mcp::mcp),
    ("mcp_events", mcp_events::mcp_events),
    ("mcp_http", mcp_http::mcp_http),
    ("openai_chat", formats::openai_chat),
    ("preview", preview::preview),
    ("reader", reader::reader),
    ("replay", replay::replay),
    ("responses", formats::responses),
    ("schema", schema::schema),
    ("settings_file", settings_file::settings_file),
    ("splitter", splitter::splitter),
];

/// Runs the target of this name.
///
/// # Panics
///
/// Panics if there is no such target, or if a law does not hold.
pub fn run(target: &str, data: &[u8]) {
    let (_, target) = TARGETS
        .iter()
        .find(|(name, _)| *name == target)
        .expect("a target of this name");
    target(data);
}
