//! Time limits for all calls, and threads for blocking work.

use std::time::Duration;

use tokio::runtime::Handle;

use crate::error::{Kind, Trouble};

/// Returns the result of `call`, or an error if it was too slow. Without a runtime there is no
/// clock, so `call` does not run.
pub(crate) async fn limited<T, E: Into<Trouble>>(
    timeout: Duration,
    call: impl Future<Output = Result<T, E>>,
) -> Result<T, Trouble> {
    runtime()?;
    match tokio::time::timeout(timeout, call).await {
        Ok(done) => done.map_err(Into::into),
        Err(_) => Err(Trouble::new(Kind::TooSlow, "timed out")),
    }
}

/// Runs the long computation `work` on one of tokio's blocking threads.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Trouble> {
    let done = runtime()?.spawn_blocking(work).await;
    done.map_err(|_| Trouble::new(Kind::Unreachable, "the runtime ended"))
}

fn runtime() -> Result<Handle, Trouble> {
    Handle::try_current().map_err(|_| Trouble::new(Kind::NoRuntime, "no tokio runtime"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_call_that_hangs_times_out() {
        let hung = limited(
            Duration::from_secs(60),
            std::future::pending::<Result<(), Trouble>>(),
        )
        .await;
        assert_eq!(hung.unwrap_err().kind, Kind::TooSlow);
    }

    #[test]
    fn l7_without_a_runtime_it_is_an_error() {
        let mut call = Box::pin(limited(
            Duration::from_secs(60),
            std::future::pending::<Result<(), Trouble>>(),
        ));
        let polled = call
            .as_mut()
            .poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
        assert!(
            matches!(polled, std::task::Poll::Ready(Err(_))),
            "{polled:?}"
        );
    }
}
