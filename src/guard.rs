//! Users' code, and calls to it that catch its panics.

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures_util::FutureExt;

/// A failure of a handler or a callback.
pub type HandlerError = Box<dyn std::error::Error + Send + Sync>;

/// A store or code of a user's. Two are equal if they are the same instance.
pub(crate) struct Hook<T: ?Sized>(pub(crate) Arc<T>);

impl<T: ?Sized> Clone for Hook<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: ?Sized> Deref for Hook<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized> PartialEq for Hook<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T: ?Sized> fmt::Debug for Hook<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::any::type_name::<T>())
    }
}

/// Runs user code. A panic becomes an error like any other. Error messages name the code as `what`.
pub(crate) fn guard<T>(
    what: &str,
    call: impl FnOnce() -> Result<T, HandlerError>,
) -> Result<T, HandlerError> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(format!("{what} failed: {error}").into()),
        Err(_) => Err(format!("{what} panicked").into()),
    }
}

/// Runs a future of user code, as [`guard`] does.
pub(crate) async fn guard_future<T>(
    what: &str,
    call: impl Future<Output = Result<T, HandlerError>>,
) -> Result<T, HandlerError> {
    let outcome = AssertUnwindSafe(call).catch_unwind().await;
    guard(what, || {
        outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
