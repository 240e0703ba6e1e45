//! A failing store: the suite shows its error and all causes.
#![allow(clippy::unwrap_used)]

use std::error::Error;
use std::io;
use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use offcut::backend::{
    Backend, BackendError, Entry, ErrorKind, Key, Location, Memory, PutOutcome, ReadRange, Writer,
};
use offcut_testkit::backend::conformance;

/// An error with a cause.
#[derive(Debug, thiserror::Error)]
#[error("no connection to the database")]
struct NoConnection(#[source] io::Error);

/// A store that can't store anything.
#[derive(Debug)]
struct Unreachable(Memory);

#[async_trait]
impl Backend for Unreachable {
    fn locate(&self, key: &Key) -> Location {
        self.0.locate(key)
    }

    fn resolve(&self, location: &str) -> Option<Key> {
        self.0.resolve(location)
    }

    async fn put(&self, _: &Key, _: Bytes) -> Result<PutOutcome, BackendError> {
        let source = NoConnection(io::Error::other("the port is 5433"));
        Err(BackendError::new(ErrorKind::Unavailable, "nothing can be stored").with_source(source))
    }

    async fn writer(&self) -> Result<Box<dyn Writer>, BackendError> {
        self.0.writer().await
    }

    async fn read(&self, key: &Key, range: Range<u64>) -> Result<ReadRange, BackendError> {
        self.0.read(key, range).await
    }

    fn list(&self) -> BoxStream<'_, Result<Entry, BackendError>> {
        self.0.list()
    }
}

#[tokio::test]
async fn the_causes_of_an_error_are_shown() -> Result<(), Box<dyn Error>> {
    let suite = tokio::spawn(conformance(async || Unreachable(Memory::new())));
    let panic = suite.await.unwrap_err().into_panic();
    let said = panic.downcast_ref::<String>().ok_or("no text")?;
    assert!(
        said.ends_with(
            "a put of 0 bytes under a key of 12 failed: nothing can be stored: no connection to the database: \
             the port is 5433 (Unavailable)"
        ),
        "{said}"
    );
    Ok(())
}
