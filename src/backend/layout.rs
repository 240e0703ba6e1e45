//! The layout of the keys of stored content.

use crate::backend::key::{DIGEST_LENGTH, Key, digest, is_safe_segment};

pub(crate) use crate::backend::phase::Phase;

/// The layout of the keys of stored content.
///
/// A truncated result is stored under `<prefix>trunc/<name>`, a cleared one under
/// `<prefix>clear/<name>`. The prefix is the `root_dir`, if there is one, and a segment for each
/// session within a session. Content that a sweep has moved aside is one folder further down:
/// `<prefix>swept/trunc/<name>`. These methods are for programs that inspect or maintain a store; a
/// loop does not need them.
impl Key {
    /// The folders of stored content: `trunc` for truncated results, `clear` for cleared ones.
    pub const FOLDERS: [&str; 2] = [Phase::Truncate.folder(), Phase::Clear.folder()];

    /// The folder of content that a sweep has moved aside; one of [`FOLDERS`](Self::FOLDERS)
    /// follows it.
    pub const SWEPT: &str = "swept";

    /// The key to which a sweep moves the content of this one; `None` if this is not a key of
    /// stored content, or has already been moved.
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

    /// The key from which a sweep moved content to this one: the inverse of [`swept`](Self::swept).
    #[must_use]
    pub fn unswept(&self) -> Option<Self> {
        let (prefix, rest) = parts(self)?;
        let prefix = prefix.strip_suffix('/')?.strip_suffix(Self::SWEPT)?;
        if !prefix.is_empty() && !prefix.ends_with('/') {
            return None;
        }
        Self::new(format!("{prefix}{rest}")).ok()
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

/// Returns true if `segment` marks swept keys. Ignores case, as some file systems do.
pub(crate) fn is_swept_segment(segment: &str) -> bool {
    segment.eq_ignore_ascii_case(Key::SWEPT)
}

/// Returns true if the store itself uses `segment`. No session, id or part of a root may then have
/// this name: such a file would stand where another session needs a folder. Ignores case, as some
/// file systems do.
pub(crate) fn is_reserved(segment: &str) -> bool {
    is_swept_segment(segment)
        || Key::FOLDERS
            .iter()
            .any(|folder| segment.eq_ignore_ascii_case(folder))
}

/// Splits a key of stored content before its folder. The first half is empty or ends in a slash.
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

/// A segment as long as any session's.
pub(crate) fn longest_session() -> String {
    "x".repeat(MAX_ID)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(path: &str) -> Key {
        Key::new(path).unwrap()
    }

    #[test]
    fn unswept_inverts_swept() {
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
