//! Builds a store.

use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStore;
use offcut::backend::{BackendError, Fs, Key, StoreUrl};
use tokio::sync::Semaphore;

use crate::error::mistake;
use crate::objects::Objects;
use crate::retry::Retry;
use crate::upload::MAX_PARTS_IN_MEMORY;

/// Maximum length of the prefix in bytes. A key of up to 900 follows it, and most stores allow
/// names of up to 1024.
const MAX_PREFIX: usize = 120;

/// Builds [`Objects`] over a store of `object_store`.
///
/// ```
/// use std::sync::Arc;
/// use object_store::memory::InMemory;
/// use offcut_object_store::Objects;
///
/// # let spool = tempfile::tempdir()?;
/// # let spool = spool.path();
/// let store = Objects::builder(Arc::new(InMemory::new()), "memory://mine").prefix("agents").spool(spool).build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Default
///
/// - prefix: none.
/// - spool: `offcut/spool` in the user's directory for state: `$XDG_STATE_HOME` or
///   `~/.local/state`, `~/Library/Application Support` on macOS, `%LOCALAPPDATA%` on Windows.
/// - timeout: 120 seconds.
/// - retries: 2, in addition to those of `object_store`. Back-off: 100 milliseconds.
#[must_use = "nothing happens until `build`"]
pub struct Builder {
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) shown: String,
    pub(crate) prefix: String,
    pub(crate) spool: Option<PathBuf>,
    pub(crate) retry: Retry,
    /// Distinguishes the store from others with the same `shown`, in every process. `None` for a
    /// store that exists only in this process.
    pub(crate) origin: Option<String>,
}

impl Objects {
    /// Creates a builder over any store of `object_store`.
    ///
    /// `shown` is the start of every location and names the store's root: `s3://bucket`. Two stores
    /// with different content should not have the same `shown`: a configuration with both does not
    /// build.
    pub fn builder(store: Arc<dyn ObjectStore>, shown: impl Into<String>) -> Builder {
        Builder {
            store,
            shown: shown.into(),
            prefix: String::new(),
            spool: None,
            retry: Retry::default(),
            origin: None,
        }
    }
}

impl Builder {
    /// Sets the path below which all objects are stored: one or more safe segments as in a [`Key`],
    /// at most 120 bytes in all.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets the directory for content that has no name yet or could not be uploaded. It is created
    /// if missing, with mode 0700 (Unix). Each store has its own directory in it.
    ///
    /// Content that could not be uploaded stays there, and only processes that use the directory can
    /// read it. So it should outlive the process and belong to this user alone, and have room for the
    /// longest results. A killed process may leave files in its `.staging`, which a sweep removes.
    pub fn spool(mut self, directory: impl Into<PathBuf>) -> Self {
        self.spool = Some(directory.into());
        self
    }

    /// Sets the time limit for a call in all, for each part of an upload, and for each wait for
    /// more of a list; at most an hour.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.retry.timeout = timeout;
        self
    }

    /// Sets the number of retries of a request that stores, if it failed for a temporary reason or its
    /// outcome is unknown; at most 20. The stores of `object_store` retry most requests themselves,
    /// which does not count here.
    pub fn retries(mut self, retries: u32) -> Self {
        self.retry.retries = retries;
        self
    }

    /// Sets the pause before the first retry, more than zero. It doubles with each retry, up to 15
    /// seconds.
    pub fn backoff(mut self, pause: Duration) -> Self {
        self.retry.backoff = pause;
        self
    }

    /// Checks everything. Sends no request and writes nothing: the spool is created when the first
    /// content is written. Does blocking I/O to resolve the spool's path.
    ///
    /// # Errors
    ///
    /// Names the field and the remedy.
    pub fn build(self) -> Result<Objects, BackendError> {
        let Self {
            store,
            shown,
            prefix,
            spool,
            retry,
            origin,
        } = self;
        retry.check()?;
        let root = shown.strip_suffix('/').unwrap_or(&shown);
        if root.is_empty()
            || root.contains(|c: char| {
                c.is_control() || c.is_whitespace() || matches!(c, '"' | '?' | '#' | '@')
            })
        {
            let must = "name the store, without spaces, quotes, `?`, `#` and `@`: `s3://bucket`";
            return Err(mistake("`shown`", must));
        }
        let prefix = prefix.strip_prefix('/').unwrap_or(&prefix);
        let prefix = match prefix.strip_suffix('/').unwrap_or(prefix) {
            "" => String::new(),
            prefix if prefix.len() <= MAX_PREFIX && Key::new(prefix).is_ok() => {
                format!("{prefix}/")
            }
            _ => {
                let must = "be a path of at most 120 bytes, of letters, digits, `.`, `_` and `-`: `agents/a-1`";
                return Err(mistake("`prefix`", must));
            }
        };
        let shown = format!("{root}/{prefix}");
        let store_id = match &origin {
            // 32 bits fit a `usize` on every platform.
            Some(origin) => {
                BuildHasherDefault::<DefaultHasher>::new().hash_one(origin) as u32 as usize
            }
            None => Arc::as_ptr(&store).cast::<()>().addr(),
        };
        let directory = match spool {
            Some(directory) => directory,
            None => default_spool(|name| std::env::var_os(name).map(PathBuf::from))
                .ok_or_else(|| mistake("`spool`", "be set: there is no home directory"))?,
        };
        // A digest: keys alone determine the paths in it, and two stores may have the same keys.
        let directory = directory.join(Key::session_segment(origin.as_ref().unwrap_or(&shown)));
        // Content kept there is the only copy, so it is synced. Staging files never are, so nothing
        // else gets slower.
        let spool = Fs::open(directory).map_err(|error| {
            error.while_doing("the spool's directory can't be used, set another one with `spool`")
        })?;
        Ok(Objects {
            objects: store,
            prefix,
            shown,
            store_id,
            spool: spool.durable(true),
            retry,
            parts: Arc::new(Semaphore::new(MAX_PARTS_IN_MEMORY)),
            proven: Arc::default(),
        })
    }
}

/// `offcut/spool` in the user's own directory for state. The system's directory for temporary files would not do: all
/// users share it, and it is emptied while hints still point there.
fn default_spool(env: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    // A relative path would be another directory in each process.
    let absolute = |path: &PathBuf| path.is_absolute();
    let (variable, below_home) = if cfg!(windows) {
        ("LOCALAPPDATA", "AppData/Local")
    } else if cfg!(target_os = "macos") {
        ("", "Library/Application Support")
    } else {
        ("XDG_STATE_HOME", ".local/state")
    };
    let home = || std::env::home_dir().map(|home| home.join(below_home));
    let state = env(variable).filter(absolute).or_else(home);
    Some(state.filter(absolute)?.join("offcut").join("spool"))
}

/// Shows no credentials. `shown` is not checked yet, so it goes through `StoreUrl`, which hides
/// them.
impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("shown", &StoreUrl::from(self.shown.as_str()))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;

    fn builder() -> (Builder, tempfile::TempDir) {
        let home = tempfile::tempdir().unwrap();
        (
            Objects::builder(Arc::new(InMemory::new()), "memory://mine").spool(home.path()),
            home,
        )
    }

    #[test]
    fn l11_wrong_settings_do_not_build() {
        let error = |change: &dyn Fn(Builder) -> Builder| {
            change(builder().0).build().unwrap_err().to_string()
        };
        assert_eq!(
            error(&|builder| builder.backoff(Duration::ZERO)),
            "`backoff` must be more than 0 and at most 15 seconds: `100ms`"
        );
        assert!(error(&|builder| builder.backoff(Duration::MAX)).contains("backoff"));
        assert!(error(&|builder| builder.timeout(Duration::ZERO)).contains("timeout"));
        assert!(error(&|builder| builder.timeout(Duration::MAX)).contains("timeout"));
        assert!(error(&|builder| builder.retries(21)).contains("retries"));
        for prefix in ["..", "a//b", "a b", ".hidden", "a/../b"] {
            assert!(
                error(&|builder| builder.prefix(prefix)).starts_with("`prefix` must"),
                "{prefix}"
            );
        }
        assert!(error(&|builder| builder.prefix("x".repeat(121))).starts_with("`prefix` must"));
        for shown in [
            "",
            "/",
            "s3://a b",
            "s3://a\n",
            "s3://a?b",
            "s3://a\"b",
            "s3://me:pass@a",
        ] {
            let home = tempfile::tempdir().unwrap();
            let built = Objects::builder(Arc::new(InMemory::new()), shown)
                .spool(home.path())
                .build();
            assert!(
                built.is_err_and(|error| error.to_string().starts_with("`shown` must")),
                "{shown:?}"
            );
        }
    }

    #[test]
    fn l11_the_defaults_are_those_of_the_docs() {
        let Builder {
            store: _,
            shown: _,
            prefix,
            spool,
            retry,
            origin: _,
        } = Objects::builder(Arc::new(InMemory::new()), "memory://mine");
        assert_eq!((prefix.as_str(), spool), ("", None));
        assert_eq!(
            (retry.timeout, retry.retries, retry.backoff),
            (Duration::from_secs(120), 2, Duration::from_millis(100))
        );
    }

    #[test]
    fn two_stores_with_the_same_shown_name_are_distinguished() {
        use offcut::backend::Backend;
        let (one, _home) = builder();
        let (two, _other) = builder();
        let (one, two) = (one.build().unwrap(), two.build().unwrap());
        assert_ne!(one.store_id(), two.store_id());
        assert_eq!(one.store_id(), one.clone().store_id());
    }

    #[cfg(all(unix, not(target_os = "macos")))]
    #[test]
    fn the_spool_is_where_state_is_kept() {
        let env = |value: &'static str| {
            move |name: &str| (name == "XDG_STATE_HOME").then(|| PathBuf::from(value))
        };
        assert_eq!(
            default_spool(env("/home/me/state")),
            Some(PathBuf::from("/home/me/state/offcut/spool"))
        );
        // A relative path would be another directory in each process.
        assert!(
            default_spool(env("state"))
                .is_some_and(|path| path.ends_with(".local/state/offcut/spool"))
        );
    }
}
