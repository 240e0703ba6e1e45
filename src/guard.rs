//! Calls to users' code that catch its panics.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::FutureExt;

/// A failure of a handler or a callback.
pub type HandlerError = Box<dyn std::error::Error + Send + Sync>;

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
