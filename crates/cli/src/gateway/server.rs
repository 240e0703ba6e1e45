//! The server: accepts connections within limits, and lets running requests end when it stops.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use offcut::Settings;
use offcut::backend::Backend;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio_io_timeout::TimeoutStream;

use crate::gateway::client::MAX_HEADERS;
use crate::gateway::error::GatewayError;
use crate::gateway::metrics::Metric;
use crate::gateway::opened::Opened;
use crate::gateway::plug::Plug;
use crate::gateway::record::RequestRecord;
use crate::gateway::reducer::ConversationReducer;
use crate::gateway::service::Service;
use crate::gateway::settings::ServeSettings;
use crate::gateway::tenant::Tenants;
use crate::gateway::upstream::Upstreams;

/// A server between agents and their providers.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use offcut::Settings;
/// use offcut::backend::{Backend, Memory};
/// use offcut_cli::gateway::{Gateway, ServeSettings};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let settings = ServeSettings::default();
/// let listener = tokio::net::TcpListener::bind(settings.listen).await?;
/// let open = |_: &str| Ok::<_, std::io::Error>(Arc::new(Memory::new()) as Arc<dyn Backend>);
/// let gateway = Gateway::reducing(settings, &Settings::default(), open)?;
/// gateway.serve(listener, std::future::pending()).await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Gateway {
    settings: ServeSettings,
    service: Arc<Service>,
}

impl Gateway {
    /// Prepares a server that reduces conversations as `reduction` says, with stores opened by
    /// `open`, each once.
    ///
    /// # Errors
    ///
    /// [`GatewayError`] if a setting is wrong, a store can't be opened, or the certificates of the system can't be used.
    pub fn reducing<E>(
        settings: ServeSettings,
        reduction: &Settings,
        open: impl Fn(&str) -> Result<Arc<dyn Backend>, E> + Send + Sync,
    ) -> Result<Self, GatewayError>
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let open = move |url: &str| open(url).map_err(Into::into);
        let stores = Opened::new(&open);
        let reducer = ConversationReducer::new(&settings, reduction, &stores)?;
        let plug = Plug::new(&settings, reduction, &stores)?;
        settings.check()?;
        let service = Service::new(settings.clone(), reducer, plug, stores.all())?;
        Ok(Self {
            settings,
            service: Arc::new(service),
        })
    }

    /// Checks settings without opening a store.
    ///
    /// # Errors
    ///
    /// [`GatewayError::Settings`] if a setting is wrong, or another one is missing.
    pub fn check(settings: &ServeSettings) -> Result<(), GatewayError> {
        settings.check()?;
        Tenants::new(settings)?;
        Upstreams::new(settings)?;
        crate::gateway::plug::check_keys(&settings.compress_keys)
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &ServeSettings {
        &self.settings
    }

    /// Notes for the person who starts the server: what will not be done, and why.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        self.service.notes()
    }

    /// Returns true if all stores take content, within the time that a request has.
    pub async fn is_ready(&self) -> bool {
        self.service.is_ready().await
    }

    /// The path of the page that shows what the server does, with its token; `None` if the system gave
    /// no random bytes for one. A browser opens it at the server's address.
    #[must_use]
    pub fn page(&self) -> Option<String> {
        self.service.page()
    }

    /// Has `listener` told the figures of each request, on the way to its provider: it must not wait.
    #[must_use]
    pub fn on_request(self, listener: impl Fn(&RequestRecord) + Send + Sync + 'static) -> Self {
        self.service.passage.watch.set_listener(Box::new(listener));
        self
    }

    /// Shows on the page what the input comes to by prices: the weights `cached` and `fresh` of a token, or the prices
    /// of a million tokens, with their `currency` and `source`. By default, a cached token costs a tenth of a fresh one.
    #[must_use]
    pub fn with_card(self, card: Value) -> Self {
        self.service.passage.watch.set_card(card);
        self
    }

    /// Serves the clients of `listener` until `stop` is ready. Then no connection is accepted any
    /// more, and running requests have `shutdown_seconds` to end.
    ///
    /// # Errors
    ///
    /// The listener can't be used at all. A single connection that fails ends only itself.
    pub async fn serve(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()>,
    ) -> Result<(), GatewayError> {
        // A listener that somebody else has opened is checked as the setting is.
        let address = listener.local_addr().map_err(GatewayError::Listen)?;
        ServeSettings {
            listen: address,
            ..self.settings.clone()
        }
        .check()?;
        let monitor = match self.settings.metrics_listen {
            Some(address) => {
                let listener = TcpListener::bind(address).await;
                listener.map(Some).map_err(GatewayError::Listen)?
            }
            None => None,
        };
        let monitor = monitor.map(|own| tokio::spawn(watched(self.service.clone(), own)));
        let service = self.service.clone();
        tokio::spawn(async move {
            if !service.is_ready().await {
                tracing::warn!(
                    "a store does not answer, or takes nothing: what needs it passes as it came"
                );
            }
        });
        let places = Arc::new(Semaphore::new(self.settings.max_connections));
        let stopping = Arc::new(Semaphore::new(0));
        let http = self.http();
        let mut stop = pin!(stop);
        loop {
            let accepted = async {
                let place = places.clone().acquire_owned().await.ok();
                (listener.accept().await, place)
            };
            let (accepted, place) = tokio::select! {
                accepted = accepted => accepted,
                () = &mut stop => break,
            };
            match accepted {
                Ok((stream, _)) => self.spawn(&http, stream, place, stopping.clone()),
                // Neither lasts: the process has too many open files, or the client has gone.
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
        drop(listener);
        monitor.inspect(JoinHandle::abort);
        stopping.close();
        let all = u32::try_from(self.settings.max_connections).unwrap_or(u32::MAX);
        let running = all as usize - places.available_permits();
        tracing::info!(running, "stopping");
        let patience = Duration::from_secs(self.settings.shutdown_seconds);
        if tokio::time::timeout(patience, places.acquire_many(all))
            .await
            .is_err()
        {
            tracing::warn!("requests were still running and are cut off");
        }
        Ok(())
    }

    fn http(&self) -> http1::Builder {
        let header_bytes = usize::try_from(self.settings.max_header.as_u64()).unwrap_or(usize::MAX);
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(Duration::from_secs(self.settings.header_seconds))
            .preserve_header_case(true)
            .max_headers(MAX_HEADERS)
            .max_buf_size(header_bytes);
        http
    }

    fn spawn(
        &self,
        http: &http1::Builder,
        stream: TcpStream,
        place: Option<OwnedSemaphorePermit>,
        stopping: Arc<Semaphore>,
    ) {
        // A reply's first byte leaves as soon as it arrives.
        _ = stream.set_nodelay(true);
        let service = self.service.clone();
        let answer = service_fn(move |request| {
            let service = service.clone();
            async move {
                let answer = service.answer(request).await;
                Ok::<_, Infallible>(answer.map(offcut_mcp::http::Flushed::new))
            }
        });
        let mut stream = TimeoutStream::new(stream);
        // A client that reads nothing for so long gives its place back.
        stream.set_write_timeout(Some(Duration::from_secs(self.settings.body_seconds)));
        let connection = http.serve_connection(TokioIo::new(Box::pin(stream)), answer);
        let service = self.service.clone();
        tokio::spawn(async move {
            let metrics = &service.passage.metrics;
            metrics.change(Metric::Connections, &[], 1);
            let mut connection = pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                // It never gives a permit: it is closed when the server stops.
                _ = stopping.acquire() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended early");
            }
            metrics.change(Metric::Connections, &[], -1);
            drop(place);
        });
    }
}

/// Number of connections at once for those who watch the server.
const MONITORS: usize = 16;

/// Answers those who watch the server, on an address of its own.
async fn watched(service: Arc<Service>, listener: TcpListener) {
    let places = Arc::new(Semaphore::new(MONITORS));
    loop {
        let place = places.clone().acquire_owned().await;
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let service = service.clone();
        tokio::spawn(async move {
            let answer = service_fn(move |request| {
                let service = service.clone();
                async move { Ok::<_, Infallible>(service.monitor(&request).await) }
            });
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new())
                .header_read_timeout(Duration::from_secs(60));
            _ = http.serve_connection(TokioIo::new(stream), answer).await;
            drop(place);
        });
    }
}
