//! A trial of the stores, which finds one that can't be written to before there is anything to store.

use crate::backend::key::digest;
use bytes::Bytes;

use crate::backend::content::probe_key;
use crate::backend::{Backend, BackendError, ErrorKind, Key, PutOutcome};
use crate::session::Session;

/// The content that is stored for a trial: always the same, so that a store takes it once.
const PROBE: &[u8] = b"Offcut found out with this that content can be stored here and read back\n";

/// Tries out every store of `session` under its prefix.
pub(super) async fn check_stores(session: &Session) -> Result<(), BackendError> {
    let key = probe_key(&session.roots, &digest(PROBE));
    for store in session.stores() {
        check(&*store, &key).await.map_err(|error| {
            let probe = store.locate(&key);
            let place = probe.as_str();
            let place = place.strip_suffix(key.as_str()).unwrap_or(place);
            error.while_doing(format_args!(
                "the store {place} failed when it was tried out"
            ))
        })?;
    }
    Ok(())
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
