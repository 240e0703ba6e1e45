//! Live names: everything that a running conversation may still name.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use crate::backend::{Key, Location};
use crate::format::{Conversation, PartRef, Piece};

use super::folder;
use super::index::Index;
use super::names::Names;
use super::report::SweepError;

/// Everything that a [sweep](crate::sweep) must keep: the conversations of all that these messages,
/// texts, folders, locations and sessions name.
///
/// It is gathered from texts of any kind: whatever could be the name of stored content is kept, so
/// it keeps too much rather than too little. It takes memory once for each name, however often and
/// however long it is spelled, and time in proportion to the texts.
///
/// ```
/// use offcut::sweep::Live;
///
/// # let transcripts = tempfile::tempdir()?;
/// # std::fs::write(transcripts.path().join("chat-1.jsonl"), "{}")?;
/// let live = Live::new()
///     .folder(transcripts.path())? // where the agents keep their transcripts
///     .text("a note: the log is in /store/chat-7/trunc/call_1")
///     .session("chat-9");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Live {
    names: Names,
    /// Segments of whole sessions, in lower case, as names are.
    sessions: BTreeSet<String>,
}

impl Live {
    /// Names nothing yet. A sweep with this removes all that its policy selects.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds everything that a conversation names, in any format; see
    /// [`Messages`](crate::format::Messages). It is sought in texts, JSON and the arguments of
    /// calls, not in media.
    #[must_use]
    pub fn messages(mut self, conversation: &dyn Conversation) -> Self {
        for message in 0..conversation.len() {
            conversation.visit(message, &mut |piece| match piece {
                Piece::Call(call) => self.names.read(&call.arguments.to_string()),
                Piece::Content(PartRef::Text(text) | PartRef::Link { url: text, .. }) => {
                    self.names.read(text);
                }
                Piece::Content(PartRef::Json(value) | PartRef::Opaque(value)) => {
                    self.names.read(&value.to_string());
                }
                Piece::Content(PartRef::Media { .. }) | Piece::Role(_) | Piece::Result(_) => {}
            });
        }
        self
    }

    /// Adds everything that a text names, such as a transcript from a file or a database, JSON or
    /// not.
    #[must_use]
    pub fn text(mut self, text: &str) -> Self {
        self.names.read(text);
        self
    }

    /// Adds everything that the files below the folder `path`, or the file `path`, name. Each file
    /// is read as text, and read again if it changes in the meantime. Does blocking I/O.
    ///
    /// # Errors
    ///
    /// Fails if a file can't be read to its end or is not UTF-8 text, such as a compressed file or
    /// a database (but below `tool-results`), or if there is no file at all. A sweep would then remove what that file names,
    /// so don't sweep.
    pub fn folder(mut self, path: impl AsRef<Path>) -> Result<Self, SweepError> {
        folder::read(path.as_ref(), &mut self.names)?;
        Ok(self)
    }

    /// Adds what is stored at `location`.
    #[must_use]
    pub fn location(self, location: &Location) -> Self {
        self.text(location.as_str())
    }

    /// Adds everything that the session `id` has stored, below any root; see
    /// [`ToolReduction::session`](crate::ToolReduction::session). For loops that pass in their
    /// originals every turn, whose transcripts hold no hints.
    #[must_use]
    pub fn session(mut self, id: &str) -> Self {
        let segment = Key::session_segment(id);
        self.sessions.insert(segment.to_ascii_lowercase());
        self
    }

    /// Marks the conversations that this names as live in `index`; `all` are all of them.
    pub(super) fn name<'k>(&self, index: &mut Index<'k>, all: impl Iterator<Item = &'k str>) {
        self.names.iter().for_each(|name| index.name(name));
        for prefix in all {
            let session = prefix.trim_end_matches('/').rsplit('/').next();
            let session = session.unwrap_or_default().to_ascii_lowercase();
            if self.sessions.contains(&session) {
                index.keep(prefix);
            }
        }
    }
}

/// Shows how many names there are, never the names.
impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live")
            .field("names", &self.names.len())
            .field("sessions", &self.sessions.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use crate::format::{Message, Messages, Plain};
    use crate::{Part, ToolCall};

    use super::super::folder::BUFFER;
    use super::*;

    fn keeps(live: &Live, key: &str) -> bool {
        let key = Key::new(key).unwrap();
        let Some(conversation) = key.conversation() else {
            return false;
        };
        let mut index = Index::new([(conversation, &key)]);
        live.name(&mut index, [conversation].into_iter());
        index.is_live(conversation)
    }

    #[test]
    fn messages_name_every_location_in_them() {
        let call = ToolCall::new("call_9", "read_file", r#"{"path":"memory:\/s1\/trunc\/a"}"#);
        let json = serde_json::json!({"nested": [{"where": "memory:/s1/trunc/b"}]});
        let mut messages = vec![
            Message::calls(vec![call.clone()]),
            Message::tool(
                &call,
                vec![
                    Part::Json(json),
                    Part::Text("x memory:/s1/clear/c x".into()),
                ],
                false,
            ),
        ];
        let live = Live::new().messages(&Messages::new(Plain, &mut messages));
        for key in ["s1/trunc/a", "s1/trunc/b", "s1/clear/c"] {
            assert!(keeps(&live, key), "{key}");
        }
        assert!(!keeps(&live, "s1/trunc/call_9"));
        assert_eq!(format!("{live:?}"), "Live { names: 3, sessions: 0 }");
    }

    #[test]
    fn sessions_are_kept_whole() {
        let live = Live::new()
            .session("chat-9")
            .session("meta")
            .location(&Location::new("/x/s1/trunc/a"));
        for key in [
            "chat-9/trunc/call_1",
            "agents/chat-9/clear/call_2-args",
            "s1/trunc/a",
        ] {
            assert!(keeps(&live, key), "{key}");
        }
        for key in [
            "chat-9",
            "chat-9/x/trunc/a",
            "trunc/chat-9",
            "swept/trunc/a",
        ] {
            assert!(!keeps(&live, key), "{key}");
        }
    }

    #[test]
    fn folders_are_read_whole_or_not_at_all() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("a");
        std::fs::create_dir_all(folder.join("b/c")).unwrap();
        let error = Live::new().folder(&folder).unwrap_err();
        assert!(format!("{error:?}").contains("holds no files"), "{error:?}");
        // A name across the end of a buffer, and an incomplete character at the end.
        let mut long = vec![b' '; BUFFER - 9];
        long.extend_from_slice("é/s1/trunc/call_1 \u{547c}".as_bytes());
        long.pop();
        std::fs::write(folder.join("b/c/one"), &long).unwrap();
        std::fs::write(folder.join("two.md"), "s1/trunc/call_2").unwrap();
        let live = Live::new().folder(&folder).unwrap();
        assert!(keeps(&live, "s1/trunc/call_1") && keeps(&live, "s1/trunc/call_2"));
        assert!(keeps(
            &Live::new().folder(folder.join("two.md")).unwrap(),
            "s1/trunc/call_2"
        ));
        for bytes in [&b"\x1f\x8b\x08packed"[..], b"u\0t\0f\0"] {
            std::fs::write(folder.join("b/three"), bytes).unwrap();
            let error = Live::new().folder(&folder).unwrap_err();
            assert!(
                format!("{error:?}").contains("is not UTF-8 text")
                    && matches!(&error, SweepError::Unread { path, .. } if path.ends_with("b/three")),
                "{error:?}"
            );
        }
        assert!(Live::new().folder(home.path().join("missing")).is_err());
    }

    #[test]
    fn h3_a_file_name_adds_no_line_to_an_error() {
        let missing = Path::new("/nowhere/a\nerror: all is well\u{1b}[2K");
        let error = Live::new().folder(missing).unwrap_err();
        let (said, source) = (error.to_string(), error.source().unwrap().to_string());
        assert!(!said.contains(&source), "{said} {source}");
        assert!(
            !said.contains(char::is_control) && said.contains(r"a\nerror"),
            "{said}"
        );
    }

    #[test]
    fn a_folder_is_read_while_agents_write_in_it() {
        use std::sync::atomic::{AtomicBool, Ordering};
        let home = tempfile::tempdir().unwrap();
        let folder = |number: usize| home.path().join(format!("{}", number % 7));
        (0..7).for_each(|number| std::fs::create_dir(folder(number)).unwrap());
        let write = |number: usize| {
            // Transcripts are rewritten like this: whole, then moved over the old one.
            let (new, path) = (
                folder(number).join(format!("{number}.new")),
                folder(number).join(format!("{number}")),
            );
            std::fs::write(&new, format!("s{number}/trunc/call_1")).unwrap();
            std::fs::rename(new, path).unwrap();
        };
        (0..300).for_each(write);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (0..300)
                    .cycle()
                    .take_while(|_| !is_over.load(Ordering::Relaxed))
                    .for_each(write);
            });
            for _ in 0..20 {
                let live = Live::new().folder(home.path());
                let missing = |live: &Live| {
                    (0..300).find(|number| !keeps(live, &format!("s{number}/trunc/call_1")))
                };
                let missing = live.map(|live| missing(&live));
                if !matches!(missing, Ok(None)) {
                    is_over.store(true, Ordering::Relaxed);
                    panic!("{missing:?}");
                }
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_cycles_end() {
        let home = tempfile::tempdir().unwrap();
        let (folder, other) = (home.path().join("a"), home.path().join("b"));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::create_dir_all(&other).unwrap();
        std::fs::write(other.join("one"), "s1/trunc/call_1").unwrap();
        std::os::unix::fs::symlink(&other, folder.join("link")).unwrap();
        std::os::unix::fs::symlink(&folder, other.join("back")).unwrap();
        assert!(keeps(
            &Live::new().folder(&folder).unwrap(),
            "s1/trunc/call_1"
        ));
        std::os::unix::fs::symlink(home.path().join("gone"), folder.join("broken")).unwrap();
        assert!(
            Live::new().folder(&folder).is_err(),
            "nobody knows what it names"
        );
    }
}
