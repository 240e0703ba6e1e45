//! Sessions in agents' own formats: pi, Gemini CLI, ATIF.

mod atif;
mod gemini_cli;
mod pi;

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
    let are_trajectories = !documents.is_empty() && documents.iter().all(atif::is_trajectory);
    are_trajectories.then(|| documents.iter().flat_map(atif::read).collect())
}
