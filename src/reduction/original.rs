//! Stores content that other code takes out of a conversation, as a clear pass would.

use crate::backend::key::digest;
use crate::backend::layout::Phase;
use bytes::Bytes;

use crate::backend::content::{Id, Target};
use crate::backend::{BackendError, ErrorKind, Location};
use crate::ours::{Classified, classify};
use crate::reduction::ToolReduction;
use crate::session::Session;

impl ToolReduction {
    /// Stores `text`, which your own code is about to drop or condense, and returns its location,
    /// so that you can tell the model: `<root>/clear/<name>-<digest>` in the backend of all tools.
    /// A name that is not safe as part of a path is left out. An equal text is stored at most once
    /// in 24 hours.
    ///
    /// If the text consists of hints or pages of this session, it is not stored again, nor are their sentences, and
    /// the locations of its originals are returned, one or more. `None` means that it looks like such
    /// hints but shows something else than what is stored. Any text may look like that, so keep it.
    ///
    /// ```
    /// # use offcut::{backend::Memory, ToolReduction};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let reduction = ToolReduction::recommended(Memory::named("demo")?).build()?;
    /// let at = reduction.store_original("notes", "what I found").await?.expect("not a hint");
    /// assert_eq!(at[0].as_str(), "memory://demo/clear/notes-7235ae76648904ff");
    /// let read = reduction.read_original(&at[0]).await.transpose()?;
    /// assert_eq!(read.as_deref(), Some(&b"what I found"[..]));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The store failed, or the reduction has no backend.
    pub async fn store_original(
        &self,
        name: &str,
        text: &str,
    ) -> Result<Option<Vec<Location>>, BackendError> {
        match classify(&self.session, text).await? {
            Classified::Content => {
                let stored = store(&self.session, name, text).await?;
                Ok(Some(vec![stored]))
            }
            Classified::Hints(locations) => Ok(Some(locations)),
            Classified::Imitation => Ok(None),
        }
    }
}

async fn store(session: &Session, name: &str, text: &str) -> Result<Location, BackendError> {
    // Use the backend that a result of an unnamed tool would use.
    let Some(backend) = session.policy("").backend() else {
        let message = "this reduction has no backend: set one with `Builder::backend`";
        return Err(BackendError::new(ErrorKind::Other, message));
    };
    let content = Bytes::copy_from_slice(text.as_bytes());
    let digest = digest(&content);
    // A name may be anything; only a safe one becomes part of a path (L6).
    let id = Id::of_call(name);
    let mut target = Target::new(&session.roots, Phase::Clear, &id, "", None, &digest);
    if id.text.is_some() {
        target = target.second_only();
    }
    target.save(&**backend, content).await
}
