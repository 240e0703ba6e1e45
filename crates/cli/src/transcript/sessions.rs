//! Sessions in agents' own formats: pi, Gemini CLI, SWE-agent, ATIF.

mod atif;
mod gemini_cli;
mod pi;
mod swe_agent;

use offcut::format::Message;
use serde_json::Value;

/// Reads the transcripts of a session, as a list of messages each; `None` for other formats.
/// `documents` holds the single document of a file, or one for each of its lines.
pub(super) fn read(documents: &[Value]) -> Option<Vec<Vec<Message>>> {
    if pi::is_session(documents) {
        return Some(pi::read(documents));
    }
    if gemini_cli::is_session(documents) {
        return Some(gemini_cli::read(documents));
    }
    let by_document = |is_one: fn(&Value) -> bool, read: fn(&Value) -> Vec<Vec<Message>>| {
        (!documents.is_empty() && documents.iter().all(is_one))
            .then(|| documents.iter().flat_map(read).collect())
    };
    by_document(swe_agent::is_trajectory, swe_agent::read)
        .or_else(|| by_document(atif::is_trajectory, atif::read))
}
