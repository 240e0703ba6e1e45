//! How the keys of stored content are made up.

use super::phase::Phase;
use crate::backend::{DIGEST, Key, digest, is_safe_segment};

/// How the keys of stored content are made up.
///
/// A result that was truncated is stored under `<prefix>trunc/<name>`, one that was cleared under
/// `<prefix>clear/<name>`; the prefix is the `root_dir`, if there is one, and a segment for each
/// session within a session. What a sweep has moved aside is one folder further down:
/// `<prefix>swept/trunc/<name>`. For programs that look into a store or take care of it; a loop
/// needs none of this.
impl Key {
    /// The folders of stored content: `trunc` for what was truncated, `clear` for what was cleared.
    pub const FOLDERS: [&str; 2] = [Phase::Truncate.folder(), Phase::Clear.folder()];

    /// The folder, before one of [`FOLDERS`](Self::FOLDERS), of what a sweep has moved aside.
    pub const SWEPT: &str = "swept";

    /// The key to which a sweep moves what is stored under this one; `None` if this is not a key of
    /// stored content, or is such a key itself.
    ///
    /// ```
    /// use offcut::backend::Key;
    ///
    /// let key = Key::new("chat-42/trunc/call_1")?;
    /// let moved = key.swept().expect("stored content");
    /// assert_eq!(moved.as_str(), "chat-42/swept/trunc/call_1");
    /// assert_eq!(moved.unswept(), Some(key));
    /// # Ok::<(), offcut::backend::KeyError>(())
    /// ```
    #[must_use]
    pub fn swept(&self) -> Option<Self> {
        let (prefix, rest) = parts(self).filter(|(prefix, _)| !is_swept(prefix))?;
        Self::new(format!("{prefix}{}/{rest}", Self::SWEPT)).ok()
    }

    /// The key under which was stored what a sweep has moved to this one: the inverse of
    /// [`swept`](Self::swept).
    #[must_use]
    pub fn unswept(&self) -> Option<Self> {
        let (prefix, rest) = parts(self)?;
        let prefix = prefix.strip_suffix('/')?.strip_suffix(Self::SWEPT)?;
        if !prefix.is_empty() && !prefix.ends_with('/') {
            return None;
        }
        Self::new(format!("{prefix}{rest}")).ok()
    }

    /// The segments, in a prefix, of the session that
    /// [`ToolReduction::session`](crate::ToolReduction::session) makes of `id`: that under which it
    /// stores, and that under which it stored while fewer ids were reserved, which it still reads.
    /// The two are nearly always the same: the id where that is a safe name, else its digest.
    ///
    /// ```
    /// use offcut::backend::Key;
    /// assert_eq!(Key::session_segments("chat-42"), ["chat-42", "chat-42"]);
    /// assert_eq!(Key::session_segments("../etc"), ["f7f9121fdb53d8de", "f7f9121fdb53d8de"]);
    /// assert_eq!(Key::session_segments("trunc")[1], "trunc"); // before it was reserved
    /// ```
    #[must_use]
    pub fn session_segments(id: &str) -> [String; 2] {
        [session_segment(id), former_session_segment(id)]
    }
}

/// The longest id of a call or a session, in bytes, that is used as a name.
pub(crate) const MAX_ID: usize = 64;

/// Whether `segment` is what swept keys are told by, on file systems too that do not tell cases
/// apart.
pub(crate) fn is_swept_segment(segment: &str) -> bool {
    segment.eq_ignore_ascii_case(Key::SWEPT)
}

/// Whether the store itself uses `segment`, so that no session, no id and no part of a root may be
/// named so: a file with this name would stand where another session needs a folder. Cases are not
/// told apart, as on some file systems.
pub(crate) fn is_reserved(segment: &str) -> bool {
    is_swept_segment(segment)
        || Key::FOLDERS
            .iter()
            .any(|folder| segment.eq_ignore_ascii_case(folder))
}

/// A key of stored content in two: what comes before the phase, empty or ending in a slash, and the
/// rest.
fn parts(key: &Key) -> Option<(&str, &str)> {
    let key = key.as_str();
    let mut slashes = key.rmatch_indices('/').map(|(at, _)| at);
    let phase_end = slashes.next()?;
    let phase_at = slashes.next().map_or(0, |slash| slash + 1);
    Key::FOLDERS
        .contains(&&key[phase_at..phase_end])
        .then(|| key.split_at(phase_at))
}

fn is_swept(prefix: &str) -> bool {
    prefix
        .strip_suffix('/')
        .is_some_and(|prefix| is_swept_segment(prefix.rsplit('/').next().unwrap_or(prefix)))
}

/// As long as a session's segment gets.
pub(crate) fn longest_session() -> String {
    "x".repeat(MAX_ID)
}

/// A segment for the session `id`: the id where that is safe, else its digest. An id that looks
/// like a digest is not safe: it may be that of another session's id, whose content would be read.
pub(crate) fn session_segment(id: &str) -> String {
    if is_reserved(id) {
        digest(id.as_bytes())
    } else {
        former_session_segment(id)
    }
}

/// The segment that a session `id` had while only `swept` was reserved. What is stored below it is
/// still read and kept.
pub(crate) fn former_session_segment(id: &str) -> String {
    let is_like_a_digest = id.len() == DIGEST && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_name =
        id.len() <= MAX_ID && is_safe_segment(id) && !is_like_a_digest && !is_swept_segment(id);
    if is_name {
        id.to_owned()
    } else {
        digest(id.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(path: &str) -> Key {
        Key::new(path).unwrap()
    }

    #[test]
    fn swept_keys_lead_back() {
        for (path, place) in [
            ("trunc/call_1", "swept/trunc/call_1"),
            ("clear/call_1-args", "swept/clear/call_1-args"),
            ("agent/s1/trunc/a.png", "agent/s1/swept/trunc/a.png"),
            ("trunc/clear/trunc", "trunc/swept/clear/trunc"),
        ] {
            assert_eq!(key(path).swept(), Some(key(place)));
            assert_eq!(key(place).unswept(), Some(key(path)));
            assert_eq!(
                (key(place).swept(), key(path).unswept()),
                (None, None),
                "{path}"
            );
        }
        for foreign in [
            "call_1",
            "trunc",
            "swept/lease-1",
            "notes/trunc.txt",
            "a/trunc/b/c",
            "Swept/trunc/call_1",
        ] {
            assert_eq!(key(foreign).swept(), None, "{foreign}");
        }
        assert_eq!(key("unswept/trunc/a").unswept(), None);
    }
}
