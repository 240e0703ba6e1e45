//! The contract of a backend, kept by an object store.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::TryFutureExt;
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStoreExt};
use offcut::backend::{
    Backend, BackendError, Entry, ErrorKind, Key, Location, PutOutcome, ReadRange, Writer,
};
use sha2::{Digest, Sha256};

use crate::error::Kind;
use crate::objects::{Objects, PROBE, missing_bucket};
use crate::put::{Content, MAX_SINGLE_PUT};
use crate::writer::ObjectWriter;

#[async_trait]
impl Backend for Objects {
    fn locate(&self, key: &Key) -> Location {
        self.location(key)
    }

    fn resolve(&self, location: &str) -> Option<Key> {
        Key::new(location.strip_prefix(&self.shown)?).ok()
    }

    /// Identifies the endpoint and the bucket, or a store that was passed in, since two of these
    /// may have the same locations.
    fn store_id(&self) -> Option<usize> {
        Some(self.store_id)
    }

    async fn put(&self, key: &Key, content: Bytes) -> Result<PutOutcome, BackendError> {
        let is_long = content.len() as u64 > MAX_SINGLE_PUT;
        if is_long && !key.is_addressed_by(&Sha256::digest(&content).into()) {
            return Ok(PutOutcome::Taken);
        }
        self.store(key, &mut Content::Whole(content)).await
    }

    async fn writer(&self) -> Result<Box<dyn Writer>, BackendError> {
        Ok(Box::new(ObjectWriter::open(self).await?))
    }

    async fn read(&self, key: &Key, range: Range<u64>) -> Result<ReadRange, BackendError> {
        let page = self.page_of(key, range).await;
        page.map_err(|trouble| self.failed("reading", key, trouble))
    }

    fn list(&self) -> BoxStream<'_, Result<Entry, BackendError>> {
        let listed = self.listed();
        listed
            .map_ok(|entries| stream::iter(entries.into_values().map(Ok)))
            .try_flatten_stream()
            .boxed()
    }

    /// Looks at the time, then removes: object stores do not do both in one step.
    async fn remove(&self, key: &Key, before: SystemTime) -> Result<(), BackendError> {
        self.spool.remove(key, before).await?;
        let path = self.path(key);
        let removed = self.within_timeout(async {
            if self.read_length(&path).await?.stored_at < before {
                self.objects.delete(&path).await?;
            }
            Ok(())
        });
        match removed.await {
            // It is not there. S3 does not answer this to a removal, but some stores do.
            Err(trouble) if trouble.kind == Kind::NotFound => Ok(()),
            removed => removed.map_err(|trouble| self.failed("removing", key, trouble)),
        }
    }

    async fn tidy(&self, before: SystemTime) -> Result<u64, BackendError> {
        self.spool.tidy(before).await
    }
}

impl Objects {
    /// Checks that the store works: connects, stores the object that proves that nothing is
    /// overwritten, reads it back, and requests a missing one. Then tries the spool.
    ///
    /// Call it once at the start of a program to find a wrong bucket or wrong credentials. Without
    /// it, the first call that stores finds them.
    ///
    /// # Errors
    ///
    /// Names the problem and the remedy: no such bucket, wrong credentials, another region, an
    /// unreachable endpoint, a store that overwrites, or a spool that can't be written to.
    pub async fn check(&self) -> Result<(), BackendError> {
        let checked = self.within_timeout(async {
            self.prove_create_only().await?;
            self.page(&self.path_of(PROBE), 0..u64::MAX).await?;
            // Without the right to list, S3 answers 403 for missing objects.
            match self.page(&self.path_of(".offcut-nothing"), 0..1).await {
                Err(trouble) if trouble.kind != Kind::NotFound => Err(trouble),
                _ => Ok(()),
            }
        });
        let checked = checked.await;
        checked.map_err(|trouble| trouble.while_doing(format_args!("checking {}", self.shown)))?;
        self.spool.check().await
    }

    /// The objects and what is spooled, of which another machine may have stored some too.
    async fn listed(&self) -> Result<BTreeMap<Key, Entry>, BackendError> {
        let mut entries = BTreeMap::<Key, Entry>::new();
        let mut take = |entry: Entry| {
            let known = entries.entry(entry.key.clone()).or_insert(entry.clone());
            known.stored_at = known.stored_at.max(entry.stored_at);
        };
        let mut spooled = self.spool.list();
        while let Some(entry) = spooled.next().await {
            take(entry?);
        }
        let prefix = self.prefix.strip_suffix('/').map(Path::from);
        let mut objects = self.objects.list(prefix.as_ref());
        loop {
            // The timeout applies to each wait, of which a long list has many. A list that is not found means
            // that the bucket is missing.
            let next = objects
                .try_next()
                .map_err(|error| missing_bucket(error.into()));
            let next = self.within_timeout(next).await;
            let doing = format_args!("listing {}", self.shown);
            let Some(meta) = next.map_err(|trouble| trouble.while_doing(doing))? else {
                return Ok(entries);
            };
            self.entry(&meta)?.into_iter().for_each(&mut take);
        }
    }

    /// Returns the entry for an object, if it was stored under a key.
    fn entry(&self, meta: &ObjectMeta) -> Result<Option<Entry>, BackendError> {
        let name = meta.location.as_ref().strip_prefix(&self.prefix);
        let within = name.and_then(|name| name.strip_suffix(PROBE));
        if let Some(prefix) = within.filter(|prefix| prefix.ends_with('/')) {
            // Its own agents opened it at that prefix, so its content has other names here.
            let why = format!(
                "listing {} failed: another store was opened below it, at `{prefix}`: open that one instead",
                self.shown
            );
            return Err(BackendError::new(ErrorKind::Other, why));
        }
        let key = name.and_then(|name| Key::new(name).ok());
        Ok(key.map(|key| Entry {
            key,
            bytes: meta.size,
            stored_at: SystemTime::from(meta.last_modified),
        }))
    }
}
