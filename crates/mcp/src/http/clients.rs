//! The clients of a server.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;

use super::Body;
use super::client::MAX_HEADERS;

/// Maximum number of bytes of a request's head.
const MAX_HEAD: usize = 64 * 1024;

/// The connections of a server's clients, which are cut off when this is dropped.
#[derive(Debug)]
pub struct Clients {
    places: Arc<Semaphore>,
    head: Duration,
    silence: Duration,
    connections: JoinSet<()>,
    graceful: GracefulShutdown,
}

impl Clients {
    /// Prepares for as many connections as `places` has permits; more have to wait. A request's head has to come within
    /// `head`, and whoever takes nothing of an answer for `silence` is cut off.
    #[must_use]
    pub fn new(places: Arc<Semaphore>, head: Duration, silence: Duration) -> Self {
        Self {
            places,
            head,
            silence,
            connections: JoinSet::new(),
            graceful: GracefulShutdown::new(),
        }
    }

    /// Accepts connections, and has `server` answer their requests, until `stop` is ready. A connection that fails ends
    /// only itself; `unaccepted` is told of those that are not even accepted.
    pub async fn accept<S, F>(
        &mut self,
        listener: TcpListener,
        server: &Arc<S>,
        answer: impl Fn(Arc<S>, Request<Incoming>) -> F + Copy + Send + 'static,
        unaccepted: impl Fn(&io::Error),
        stop: impl Future<Output = ()>,
    ) where
        S: Send + Sync + 'static,
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(self.head)
            .preserve_header_case(true)
            .max_headers(MAX_HEADERS)
            .max_buf_size(MAX_HEAD);
        let mut stop = pin!(stop);
        loop {
            let next = async {
                let (stream, _) = listener.accept().await?;
                Ok((stream, self.places.clone().acquire_owned().await))
            };
            let next = tokio::select! {
                next = next => next,
                () = &mut stop => return,
            };
            let (stream, place) = match next {
                Ok(next) => next,
                // Neither lasts: the process has too many open files, or the client has gone.
                Err(error) => {
                    unaccepted(&error);
                    sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            // A reply's first byte leaves as soon as it arrives.
            _ = stream.set_nodelay(true);
            let mut stream = TimeoutStream::new(stream);
            stream.set_write_timeout(Some(self.silence));
            let server = server.clone();
            let service = service_fn(move |request| {
                let answer = answer(server.clone(), request);
                async move { Ok::<_, Infallible>(answer.await) }
            });
            let connection = http.serve_connection(TokioIo::new(Box::pin(stream)), service);
            let connection = self.graceful.watch(connection);
            while self.connections.try_join_next().is_some() {}
            self.connections.spawn(async move {
                _ = connection.await;
                drop(place);
            });
        }
    }

    /// Number of open connections.
    #[must_use]
    pub fn count(&self) -> usize {
        self.graceful.count()
    }

    /// Lets running requests end, within a time. Returns false if some are cut off.
    pub async fn end(self, patience: Duration) -> bool {
        timeout(patience, self.graceful.shutdown()).await.is_ok()
    }
}
