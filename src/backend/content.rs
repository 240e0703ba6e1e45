//! The place of a result in a store: prefixes, taken names, and reading stored content.
//!
//! The library `offcut` names, stores and reads its results by this module. A store of your own needs
//! none of it.

mod names;
mod reuse;

use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

use crate::backend::key::digest;
use crate::backend::layout::{Phase, is_reserved};
use crate::backend::{Backend, BackendError, ErrorKind, Key, Location, ReadRange, Writer};

pub(crate) use names::{DIGEST_EXAMPLE, Id, media_type, suffix};
use names::{ending, longest_name};
pub use reuse::REUSED_FOR;
pub(crate) use reuse::{Marks, day, is_outdated, is_taken};

/// Number of bytes of content that are read at once.
pub(crate) const BLOCK: u64 = 1 << 20;

/// Content of at most this many bytes is read whole if a text must be compared with it.
pub(crate) const MAX_WHOLE: u64 = 64 << 20;

/// The prefix under which one session stores, in every backend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Roots {
    /// Empty, or safe segments, each followed by a slash.
    prefix: String,
    /// Length of the part of the prefix that does not come from a session.
    root: usize,
    /// Length of the prefix of all conversations of a tenant, if this is one of them. What any of
    /// them stored is read.
    tenant: Option<usize>,
}

impl Roots {
    /// The roots of a configuration with a `root_dir`.
    pub(crate) fn of(root_dir: &Key) -> Self {
        let prefix = format!("{root_dir}/");
        Self {
            root: prefix.len(),
            prefix,
            tenant: None,
        }
    }

    /// The roots of the session `id` within this one. If that leaves no room for a key, a digest
    /// replaces all sessions on the way.
    pub(crate) fn session(&self, id: &str) -> Self {
        let mut prefix = format!("{}{}/", self.prefix, Key::session_segment(id));
        let longest = longest_name(true);
        if Key::new(format!("{prefix}{}/{longest}", Phase::Truncate.folder())).is_err() {
            let sessions = digest(&prefix.as_bytes()[self.root..]);
            prefix = format!("{}{sessions}/", &prefix[..self.root]);
        }
        Self {
            prefix,
            root: self.root,
            tenant: None,
        }
    }

    /// The roots of one of the conversations of a tenant. It reads what any of them stored: a
    /// conversation that was compacted or forked is another one, with the old hints.
    pub(crate) fn conversation(&self, tenant: &str, id: &str) -> Self {
        let all = self.session(tenant);
        let one = all.session(id);
        Self {
            tenant: one
                .prefix
                .starts_with(&all.prefix)
                .then_some(all.prefix.len()),
            ..one
        }
    }

    /// The beginning of every key of the session, and of sessions made from it.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns true if `key` names something that this session stored: exactly
    /// `<prefix><phase>/<name>`.
    pub(crate) fn owns(&self, key: &Key) -> bool {
        let Some((prefix, folder, _)) = key.parts() else {
            return false;
        };
        let sibling = self.tenant.and_then(|tenant| {
            let session = prefix.strip_prefix(&self.prefix[..tenant])?;
            session.strip_suffix('/')
        });
        let is_sibling = sibling.is_some_and(|id| !id.contains('/') && !is_reserved(id));
        Key::FOLDERS.contains(&folder) && (prefix == self.prefix || is_sibling)
    }
}

/// A key as long as any below `roots`.
pub(crate) fn longest_key(roots: &Roots, has_given_ids: bool) -> Key {
    let (prefix, folder) = (&roots.prefix, Phase::Truncate.folder());
    safe_key(format!("{prefix}{folder}/{}", longest_name(has_given_ids)))
}

/// The key under which a trial of a store stores its content, which has this `digest`: among the
/// notes, where no conversation stores anything.
pub(crate) fn probe_key(roots: &Roots, digest: &str) -> Key {
    safe_key(format!("{}{}/check-{digest}", roots.prefix, Key::META))
}

/// The common beginning of the store's locations; `key` may be any key.
pub(crate) fn place_of(store: &dyn Backend, key: &Key) -> Location {
    let location = store.locate(key);
    let place = location.as_str().strip_suffix(key.as_str());
    place.map(Location::new).unwrap_or(location)
}

#[expect(
    clippy::expect_used,
    reason = "prefix, phase and name are all made of safe segments of bounded length"
)]
fn safe_key(path: String) -> Key {
    Key::new(path).expect("safe segments")
}

/// The names that content may get: its own, which is an id if that is safe, else its digest; one that is free even if
/// the first is taken; and one for each day, for content that was stored under both long ago.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) first: Key,
    second: Key,
    /// Folder of both.
    folder: String,
    digest: String,
    ending: &'static str,
}

impl Target {
    /// A target for content with this `digest`, named by its id and a suffix, with the file ending of its media type.
    pub(crate) fn new(
        roots: &Roots,
        phase: Phase,
        id: &Id,
        suffix: &str,
        mime: Option<&str>,
        digest: &str,
    ) -> Self {
        let folder = format!("{}{}/", roots.prefix, phase.folder());
        let stem = id.text.as_deref().unwrap_or(digest);
        let ending = mime.map_or("", ending);
        Self {
            first: safe_key(format!("{folder}{stem}{suffix}{ending}")),
            second: safe_key(format!("{folder}{stem}{suffix}-{digest}{ending}")),
            folder,
            digest: digest.to_owned(),
            ending,
        }
    }

    /// Drops the first name, which is known to be taken.
    pub(crate) fn second_only(self) -> Self {
        Self {
            first: self.second.clone(),
            ..self
        }
    }

    /// The location that the content gets if its own name is free.
    pub(crate) fn expected(&self, backend: &dyn Backend) -> Location {
        backend.locate(&self.first)
    }

    /// The keys to try, in this order, at the present of the store.
    pub(crate) fn keys(&self, now: SystemTime) -> Vec<Key> {
        let (folder, digest) = (&self.folder, &self.digest);
        // Four digits until 2149.
        let day = format!("{:04x}", day(now));
        let third = safe_key(format!("{folder}{day}-{digest}{}", self.ending));
        let mut keys = vec![self.first.clone(), self.second.clone(), third];
        keys.dedup();
        keys
    }

    /// Stores `content` and returns its location. Never overwrites stored content.
    pub(crate) async fn save(
        &self,
        backend: &dyn Backend,
        content: Bytes,
    ) -> Result<Location, BackendError> {
        for key in self.keys(backend.now()) {
            let put = backend.put(&key, content.clone()).await?;
            if !is_taken(backend, &put) {
                return Ok(backend.locate(&key));
            }
        }
        Err(self.all_taken())
    }

    /// Names the bytes written to `writer`, one of `store`, and returns their location.
    pub(crate) async fn name(
        &self,
        store: &dyn Backend,
        writer: &mut dyn Writer,
    ) -> Result<Location, BackendError> {
        for key in self.keys(store.now()) {
            let put = writer.finish(&key).await?;
            if !is_taken(store, &put) {
                return Ok(store.locate(&key));
            }
        }
        Err(self.all_taken())
    }

    fn all_taken(&self) -> BackendError {
        let message = format!(
            "`{}` and `{}` already hold other content: nothing was stored",
            self.first, self.second
        );
        BackendError::new(ErrorKind::Other, message)
    }
}

/// Stored content and its location.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    /// The store that has it.
    pub backend: Arc<dyn Backend>,
    /// Its key there.
    pub key: Key,
    /// Its location, as hints show it.
    pub location: Location,
    /// The conversations that were read from today; `None` for reading that keeps none.
    pub marks: Option<Arc<Marks>>,
}

impl Stored {
    /// The content of `key` in `backend`, for reading that leaves no mark.
    pub(crate) fn new(backend: Arc<dyn Backend>, key: Key) -> Self {
        Self {
            location: backend.locate(&key),
            backend,
            key,
            marks: None,
        }
    }

    /// Reads `range`. If the content is old, a note says that its conversation was read from today.
    pub(crate) async fn read(&self, range: Range<u64>) -> Result<ReadRange, BackendError> {
        let page = self.backend.read(&self.key, range).await?;
        if let Some(marks) = &self.marks
            && is_outdated(&*self.backend, page.stored_at)
        {
            marks.mark(&*self.backend, &self.key).await;
        }
        Ok(page)
    }

    /// Passes the content to `see` block by block until that returns `false`. Returns the content's
    /// length.
    pub(crate) async fn scan(
        &self,
        mut see: impl FnMut(&[u8], u64) -> bool + Send,
    ) -> Result<u64, BackendError> {
        let mut at = 0;
        loop {
            let ReadRange { bytes, total, .. } = self.read(at..at.saturating_add(BLOCK)).await?;
            if bytes.is_empty() && at < total {
                let location = &self.location;
                let message =
                    format!("`{location}` ends after {at} of {total} bytes: check the store");
                return Err(BackendError::new(ErrorKind::Other, message));
            }
            at += bytes.len() as u64;
            if !see(&bytes, total) || at >= total {
                return Ok(total);
            }
        }
    }

    /// The whole content, or `None` if it is longer than [`MAX_WHOLE`].
    pub(crate) async fn whole(&self) -> Result<Option<Bytes>, BackendError> {
        let mut content = Vec::new();
        let total = self
            .scan(|bytes, total| {
                if total <= MAX_WHOLE {
                    // As much as is missing; it fits, as it is at most that.
                    content.reserve_exact(total as usize - content.len());
                    content.extend_from_slice(bytes);
                }
                total <= MAX_WHOLE
            })
            .await?;
        Ok((content.len() as u64 == total).then(|| content.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_owns_only_its_own_keys() {
        let root = Roots::default().session("agent");
        let session = root.session("s1");
        let own = |roots: &Roots, key: &str| roots.owns(&Key::new(key).unwrap());
        assert!(own(&root, "agent/trunc/call_1") && own(&root, "agent/clear/call_1-args"));
        assert!(own(&session, "agent/s1/trunc/call_1"));
        for foreign in [
            "agent/s1/trunc/call_1",
            "trunc/call_1",
            "agent/meta/trunc/call_1",
            "agent/meta/read-1",
            "agent/trunc",
            "other/trunc/call_1",
        ] {
            assert!(!own(&root, foreign), "{foreign}");
        }
        assert!(!own(&session, "agent/trunc/call_1"));
        assert!(!own(&root.session("meta"), "agent/meta/trunc/call_1"));
        assert!(!own(&Roots::default(), "agent/trunc/call_1"));
    }

    #[test]
    fn a_conversation_of_a_tenant_owns_the_keys_of_all_of_them() {
        let one = Roots::default().conversation("tenant", "one");
        assert_eq!(one.prefix(), "tenant/one/");
        let own = |key: &str| one.owns(&Key::new(key).unwrap());
        assert!(own("tenant/one/trunc/a") && own("tenant/other/clear/a"));
        for foreign in [
            "tenant/trunc/a",
            "tenant/meta/trunc/a",
            "tenant/other/more/trunc/a",
            "tenant/other/meta/trunc/a",
            "tenants/one/trunc/a",
            "one/trunc/a",
        ] {
            assert!(!own(foreign), "{foreign}");
        }
    }

    #[test]
    fn content_is_named_by_its_id_or_its_digest() {
        let names = |id: &str, suffix: &str, mime| {
            let id = Id::of_call(id);
            let target = Target::new(&Roots::default(), Phase::Clear, &id, suffix, mime, "0d");
            [target.first, target.second].map(|key| key.to_string())
        };
        let own = names("call_1", "-2", Some("image/png"));
        assert_eq!(own, ["clear/call_1-2.png", "clear/call_1-2-0d.png"]);
        assert_eq!(
            names("../x", "-args", None),
            ["clear/0d-args", "clear/0d-args-0d"]
        );
    }

    #[test]
    fn the_longest_name_fits_a_key() {
        let roots =
            Roots::of(&Key::new(format!("{}/{}", "x".repeat(200), "x".repeat(199))).unwrap())
                .session(&crate::backend::layout::longest_session());
        assert!(
            longest_key(&roots, false).as_str().len() > 400 + 2 * 64,
            "a session and an id"
        );
        assert!(
            longest_key(&roots, true).as_str().len() > 400 + 64 + 200,
            "a session and a given id"
        );
    }
}
