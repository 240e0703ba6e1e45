//! The layout of the keys of stored content.

use serde::Serialize;

use crate::backend::key::{DIGEST_LENGTH, Key, digest, is_safe_segment};

/// A moment at which results are looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Phase {
    /// After a tool has returned. What is too long is stored as `<root>/trunc/<id>`.
    Truncate,
    /// Before the model is called. What is old is stored as `<root>/clear/<id>`.
    #[default]
    Clear,
}

impl Phase {
    /// The name of its folder.
    pub(crate) const fn folder(self) -> &'static str {
        match self {
            Self::Truncate => "trunc",
            Self::Clear => "clear",
        }
    }
}

/// The layout of the keys of stored content.
///
/// A truncated result is stored under `<prefix>trunc/<name>`, a cleared one under
/// `<prefix>clear/<name>`, and what the library notes about the conversation under
/// `<prefix>meta/<name>`. The prefix is the `root_dir`, if there is one, and a segment for each
/// session within a session. These methods are for programs that inspect or maintain a store; a loop
/// does not need them.
impl Key {
    /// The folders of stored content: `trunc` for truncated results, `clear` for cleared ones.
    pub const FOLDERS: [&str; 2] = [Phase::Truncate.folder(), Phase::Clear.folder()];

    /// The folder of notes: records of decisions (`decided-…`), days on which old content was read
    /// (`read-…`), and others. No hint leads to a note.
    pub const META: &str = "meta";

    /// The prefix of the conversation that this key belongs to: empty, or segments with a slash after
    /// each. `None` if it is neither stored content, nor a record of decisions, nor a day of reading.
    ///
    /// ```
    /// use offcut::backend::Key;
    ///
    /// let conversation = |key| Key::new(key).map(|key| key.conversation().map(str::to_owned));
    /// assert_eq!(conversation("agent/chat-42/trunc/call_1")?.as_deref(), Some("agent/chat-42/"));
    /// assert_eq!(conversation("clear/call_1-args")?.as_deref(), Some(""));
    /// assert_eq!(conversation("notes/today")?, None);
    /// # Ok::<(), offcut::backend::KeyError>(())
    /// ```
    #[must_use]
    pub fn conversation(&self) -> Option<&str> {
        let (prefix, folder, name) = self.parts()?;
        let is_note = || name.starts_with("decided-") || name.starts_with("read-");
        let is_part = Self::FOLDERS.contains(&folder) || folder == Self::META && is_note();
        is_part.then_some(prefix)
    }

    /// The prefix, the folder and the name of something in a folder.
    pub(crate) fn parts(&self) -> Option<(&str, &str, &str)> {
        let (path, name) = self.as_str().rsplit_once('/')?;
        let folder = path.rsplit('/').next()?;
        Some((&path[..path.len() - folder.len()], folder, name))
    }

    /// The prefix segment of the session that `ToolReduction::session` makes of `id`: the id if that is a
    /// safe name, else its digest. An id that looks like a digest is not safe: it could be the digest of
    /// another session's id, whose content it would read.
    ///
    /// ```
    /// use offcut::backend::Key;
    /// assert_eq!(Key::session_segment("chat-42"), "chat-42");
    /// assert_eq!(Key::session_segment("../etc"), "f7f9121fdb53d8de");
    /// ```
    #[must_use]
    pub fn session_segment(id: &str) -> String {
        let is_like_a_digest =
            id.len() == DIGEST_LENGTH && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_name =
            id.len() <= MAX_ID && is_safe_segment(id) && !is_like_a_digest && !is_reserved(id);
        if is_name {
            id.to_owned()
        } else {
            digest(id.as_bytes())
        }
    }
}

/// Maximum length, in bytes, of a call's or session's id that is used as a name.
pub(crate) const MAX_ID: usize = 64;

/// Returns true if the store itself uses `segment`. No session, id or part of a root may then have
/// this name: such a file would stand where another session needs a folder. Ignores case, as some
/// file systems do.
pub(crate) fn is_reserved(segment: &str) -> bool {
    segment.eq_ignore_ascii_case(Key::META)
        || Key::FOLDERS
            .iter()
            .any(|folder| segment.eq_ignore_ascii_case(folder))
}

/// A segment as long as any session's.
pub(crate) fn longest_session() -> String {
    "x".repeat(MAX_ID)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_belong_to_the_conversation_before_their_folder() {
        for (path, conversation) in [
            ("trunc/call_1", Some("")),
            ("agent/s1/clear/a.png", Some("agent/s1/")),
            ("trunc/clear/trunc", Some("trunc/")),
            ("s1/meta/decided-0123456789abcdef-0", Some("s1/")),
            ("meta/read-20000", Some("")),
            ("call_1", None),
            ("trunc", None),
            ("meta/naming-secret", None),
            ("s1/meta/check-0123456789abcdef", None),
            ("notes/trunc.txt", None),
            ("a/trunc/b/c", None),
            ("a/Trunc/b", None),
        ] {
            assert_eq!(
                Key::new(path).unwrap().conversation(),
                conversation,
                "{path}"
            );
        }
    }
}
