//! A trial of the stores, which finds one that can't be written to before there is anything to store.

use crate::backend::key::digest;
use bytes::Bytes;

use crate::backend::content::{place_of, probe_key};
use crate::backend::{Backend, BackendError, ErrorKind, Key, PutOutcome};
use crate::reduction::ToolReduction;

/// The content that is stored for a trial: always the same, so that a store takes it once.
const PROBE: &[u8] = b"Offcut found out with this that content can be stored here and read back\n";

impl ToolReduction {
    /// Tries out every store of this configuration: stores a few bytes under the root and the
    /// session's prefix, and reads them back. Includes the stores of single tools.
    ///
    /// Call it when a program starts. Later, results stay in the context if a store fails, and only
    /// the report and a `tracing` event say so.
    ///
    /// The bytes are always the same and stay there, as `<prefix>meta/check-<digest>`. No hint
    /// names them, and sweeps leave them. Without a backend, it does nothing.
    ///
    /// ```
    /// # use offcut::{backend::Memory, ToolReduction};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let reduction = ToolReduction::recommended(Memory::new()).build()?;
    /// reduction.check_stores().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The error of the first store that failed, with its place and what to do about it, and without
    /// secrets of its URL.
    pub async fn check_stores(&self) -> Result<(), BackendError> {
        let key = probe_key(&self.session.roots, &digest(PROBE));
        for store in self.session.stores() {
            check(&*store, &key).await.map_err(|error| {
                let place = place_of(&*store, &key);
                error.while_doing(format_args!(
                    "the store {place} failed when it was tried out"
                ))
            })?;
        }
        Ok(())
    }
}

/// Both ways to store, since short results go one and streams the other. A store that has the
/// content already may find that out without writing anything; a writer has to write.
async fn check(store: &dyn Backend, key: &Key) -> Result<(), BackendError> {
    let content = Bytes::from_static(PROBE);
    expect_stored(store.put(key, content.clone()).await?, key)?;
    let mut writer = store.writer().await?;
    writer.write(content.clone()).await?;
    expect_stored(writer.finish(key).await?, key)?;
    let stored = store.read(key, 0..u64::MAX).await?;
    if stored.bytes != content {
        let why = format!("`{key}` reads back as other content than was stored; use another store");
        return Err(BackendError::new(ErrorKind::Other, why));
    }
    Ok(())
}

fn expect_stored(put: PutOutcome, key: &Key) -> Result<(), BackendError> {
    match put {
        PutOutcome::Stored | PutOutcome::AlreadyThere { .. } => Ok(()),
        PutOutcome::Taken => {
            let why = format!(
                "`{key}` holds other content; remove it, for only a trial of the store has this name"
            );
            Err(BackendError::new(ErrorKind::Other, why))
        }
    }
}
