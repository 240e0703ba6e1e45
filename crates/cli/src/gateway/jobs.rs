//! Work on bodies, off the threads that serve connections, within a time and within memory.

use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use crate::gateway::encoding::ContentEncoding;
use crate::gateway::outcome::PassReason;
use crate::gateway::settings::{GatewayError, ServeSettings};

/// Bytes of memory that one permit stands for.
const UNIT: usize = 1024 * 1024;

/// Time after the deadline in which work may still say how far it has come.
const OVERTIME: Duration = Duration::from_millis(500);

/// Bytes of memory that a body may take for each of its own.
const FACTOR: usize = 16;
/// Bytes of memory that any body may take.
const ALWAYS: usize = 32 * 1024 * 1024;

/// The memory that a body of `bytes` may take while it is worked on.
pub(crate) fn memory_for(bytes: usize) -> usize {
    bytes.saturating_mul(FACTOR).saturating_add(ALWAYS)
}

/// The permits for a body of `bytes`.
fn units(bytes: usize) -> u32 {
    u32::try_from(memory_for(bytes) / UNIT).unwrap_or(u32::MAX >> 3)
}

/// Works on bodies: on as many at once as together may take as much memory as the longest one.
pub(crate) struct Jobs {
    /// Permits for memory, one for each [`UNIT`].
    room: Arc<Semaphore>,
    /// Threads that work on bodies, until this is dropped.
    workers: Option<Runtime>,
    max_body: usize,
    patience: Duration,
}

impl Jobs {
    pub(crate) fn new(settings: &ServeSettings) -> Result<Self, GatewayError> {
        let max_body = settings.max_body_bytes();
        let processors = available_parallelism().map_or(1, NonZero::get);
        let mut workers = Builder::new_current_thread();
        // They are few and stay, since the tables of tokens keep some 8 MiB for each thread that has counted, up to 1 GiB.
        workers
            .max_blocking_threads(processors.saturating_mul(2).max(8))
            .thread_keep_alive(Duration::from_secs(u32::MAX.into()));
        Ok(Self {
            workers: Some(workers.build().map_err(GatewayError::Threads)?),
            room: Arc::new(Semaphore::new(units(max_body) as usize)),
            max_body,
            patience: Duration::from_secs(settings.reduce_seconds),
        })
    }

    /// Decodes a body and works on it, until a deadline that `work` sees to. Waiting for room counts too.
    ///
    /// # Errors
    ///
    /// The body can't be decoded, the deadline has passed, or the work has panicked.
    pub(crate) async fn run<T, F>(
        &self,
        body: &Bytes,
        encoding: ContentEncoding,
        work: impl FnOnce(Bytes, Instant) -> F + Send + 'static,
    ) -> Result<T, PassReason>
    where
        T: Send + 'static,
        F: Future<Output = T>,
    {
        let deadline = Instant::now() + self.patience;
        let (body, max) = (body.clone(), self.max_body);
        let units = units(encoding.longest(body.len(), max));
        let job = async {
            let place = self.room.clone().acquire_many_owned(units).await;
            let runtime = Handle::current();
            let workers = self.workers.as_ref().ok_or(PassReason::Bug)?;
            // The place goes along: a thread that has begun can't be stopped.
            let working = workers.spawn_blocking(move || {
                let text = encoding.decode(&body, max).ok_or(PassReason::Encoding)?;
                let done = runtime.block_on(async { work(text, deadline).await });
                drop(place);
                Ok(done)
            });
            working.await.unwrap_or(Err(PassReason::Bug))
        };
        let done = timeout_at(deadline + OVERTIME, job).await;
        done.unwrap_or(Err(PassReason::TooSlow))
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        if let Some(workers) = self.workers.take() {
            workers.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::thread;

    use super::*;

    #[tokio::test]
    async fn few_threads_work_however_many_bodies_come() {
        let jobs = Jobs::new(&ServeSettings::default()).unwrap();
        let most = available_parallelism().unwrap().get().max(4) * 2;
        let body = Bytes::from_static(b"{}");
        let mut seen = HashSet::new();
        for _ in 0..10 {
            let run = || {
                let work = |_, _| async {
                    tokio::task::yield_now().await;
                    thread::current().id()
                };
                jobs.run(&body, ContentEncoding::Identity, work)
            };
            let ran = futures_util::future::join_all((0..20).map(|_| run())).await;
            seen.extend(ran.into_iter().map(|thread| thread.ok().unwrap()));
        }
        assert!(seen.len() <= most, "{}", seen.len());
    }
}
