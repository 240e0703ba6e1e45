//! Connections of clients, within limits.

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
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;

use super::Body;
use super::client::MAX_HEADERS;

/// Maximum number of bytes of a request's head.
const MAX_HEAD: usize = 64 * 1024;

/// The limits of a server's clients.
#[derive(Clone, Debug)]
pub struct ClientLimits {
    /// Permits for connections. More have to wait.
    pub places: Arc<Semaphore>,
    /// Time for a request's head.
    pub head: Duration,
    /// Time for which a client may take nothing of an answer.
    pub silence: Duration,
}

/// The connections of a server, which are cut off when this is dropped.
#[derive(Debug, Default)]
pub struct Connections {
    served: JoinSet<()>,
    graceful: GracefulShutdown,
}

impl Connections {
    /// Accepts connections and has requests answered until `stop` is ready. A connection that fails ends only itself;
    /// `unaccepted` is told of those that are not even accepted.
    pub async fn accept<F>(
        &mut self,
        listener: TcpListener,
        limits: ClientLimits,
        answer: impl Fn(Request<Incoming>) -> F + Clone + Send + 'static,
        unaccepted: impl Fn(&io::Error),
        stop: impl Future<Output = ()>,
    ) where
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(limits.head)
            .preserve_header_case(true)
            .max_headers(MAX_HEADERS)
            .max_buf_size(MAX_HEAD);
        let mut stop = pin!(stop);
        loop {
            let next = async {
                let (stream, _) = listener.accept().await?;
                Ok((stream, limits.places.clone().acquire_owned().await))
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
            let stream = TokioIo::new(Box::pin(answered(stream, limits.silence)));
            let answer = answer.clone();
            let service = service_fn(move |request| {
                let answer = answer(request);
                async move { Ok::<_, Infallible>(answer.await) }
            });
            let connection = self.graceful.watch(http.serve_connection(stream, service));
            while self.served.try_join_next().is_some() {}
            self.served.spawn(async move {
                _ = connection.await;
                drop(place);
            });
        }
    }

    /// Number of open connections.
    pub fn count(&self) -> usize {
        self.graceful.count()
    }

    /// Lets running requests end, within a time. Returns false if some are cut off.
    pub async fn end(self, patience: Duration) -> bool {
        timeout(patience, self.graceful.shutdown()).await.is_ok()
    }
}

/// A connection whose client is cut off once it takes nothing for so long.
fn answered(stream: TcpStream, silence: Duration) -> TimeoutStream<TcpStream> {
    // A reply's first byte leaves as soon as it arrives.
    _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(silence));
    stream
}
