//! Stores at `file:///directory` URLs.

use std::fmt;
use std::path::{Path as Directory, PathBuf};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use futures_util::stream::{self, BoxStream, StreamExt};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use offcut::backend::Fs;
use url::Url;

use crate::builder::Builder;
use crate::objects::Objects;
use crate::open_error::OpenError;

/// Opens a directory with `object_store`'s own layout. A missing directory is created with the
/// first object, with mode 0700 (Unix). Unlike `offcut::backend::Fs`, the store follows symbolic
/// links out of the directory, and its files are readable by everyone who can reach them.
pub(super) fn open(url: &Url) -> Result<Builder, OpenError> {
    let must = "name a directory by its absolute path, without `%`: `file:///var/lib/agent`";
    let refused = || OpenError::Url { must };
    let is_plain = !url.path().contains('%');
    let path = url
        .to_file_path()
        .ok()
        .filter(|_| is_plain)
        .ok_or_else(refused)?;
    // Makes the path absolute and resolves symbolic links, even if it does not exist yet. With any
    // other root, `object_store` panics if two calls store at the same time.
    let path = Fs::open(&path)
        .map_err(|error| OpenError::Refused {
            source: Box::new(error),
        })?
        .path()
        .to_owned();
    let shown = Url::from_directory_path(&path).map_err(|()| refused())?;
    let mut builder = Objects::builder(
        Arc::new(Files {
            path,
            store: OnceLock::new(),
        }),
        shown.as_str(),
    );
    builder.origin = Some(shown.into());
    Ok(builder)
}

/// A store in a directory that may not exist yet. `object_store` alone would treat that as an
/// error.
#[derive(Debug)]
struct Files {
    path: PathBuf,
    store: OnceLock<LocalFileSystem>,
}

impl Files {
    /// Returns the directory's store. If there is no directory, returns [`Error::NotFound`] for
    /// `location`.
    fn there(&self, location: &Path) -> Result<&LocalFileSystem> {
        if let Some(store) = self.store.get() {
            return Ok(store);
        }
        if !self.path.try_exists().map_err(generic)? {
            return Err(Error::NotFound {
                path: location.to_string(),
                source: "there is no directory".into(),
            });
        }
        let store = LocalFileSystem::new_with_prefix(&self.path)?.with_fsync(true);
        Ok(self.store.get_or_init(|| store))
    }

    /// Returns the directory's store, after creating the directory if it is missing.
    fn made(&self, location: &Path) -> Result<&LocalFileSystem> {
        if self.store.get().is_none() {
            make(&self.path).map_err(generic)?;
        }
        self.there(location)
    }
}

fn make(path: &Directory) -> std::io::Result<()> {
    let mut directory = std::fs::DirBuilder::new();
    directory.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut directory, 0o700);
    directory.create(path)
}

fn generic(error: std::io::Error) -> Error {
    Error::Generic {
        store: "LocalFileSystem",
        source: Box::new(error),
    }
}

impl fmt::Display for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "files in {}", self.path.display())
    }
}

#[async_trait]
impl ObjectStore for Files {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.made(location)?
            .put_opts(location, payload, options)
            .await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.made(location)?
            .put_multipart_opts(location, options)
            .await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.there(location)?.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        match self.there(&Path::default()) {
            Ok(store) => store.delete_stream(locations),
            Err(error) => stream::once(async { Err(error) }).boxed(),
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        match self.there(&Path::default()) {
            Ok(store) => store.list(prefix),
            Err(Error::NotFound { .. }) => stream::empty().boxed(),
            Err(error) => stream::once(async { Err(error) }).boxed(),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.there(&Path::default())?
            .list_with_delimiter(prefix)
            .await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.there(from)?.copy_opts(from, to, options).await
    }
}
