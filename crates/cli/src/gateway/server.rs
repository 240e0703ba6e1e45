//! The server: accepts connections within limits, and lets running requests end when it stops.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use offcut::backend::{Backend, BackendError};
use offcut::{ErrorChain, Settings};
use offcut_mcp::http::Clients;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::gateway::breaker::Breaker;
use crate::gateway::page;
use crate::gateway::plug::{PlugTenant, check_keys};
use crate::gateway::reader::Pages;
use crate::gateway::reducer::ConversationReducer;
use crate::gateway::service::Service;
use crate::gateway::settings::{GatewayError, ServeSettings};
use crate::gateway::upstream::Upstreams;
use crate::gateway::watch::RequestRecord;
use crate::gateway::whose::Tenants;
use crate::lock::locked;

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
/// gateway.serve(listener, None, std::future::pending()).await;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Gateway {
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
        Self::check(&settings)?;
        let opened = Mutex::new(HashMap::<String, Breaker>::new());
        let open = |url: &str| {
            let mut opened = locked(&opened);
            if !opened.contains_key(url) {
                let store = Breaker::new(open(url).map_err(Into::into)?);
                opened.insert(url.to_owned(), store);
            }
            Ok(Arc::new(opened[url].clone()) as _)
        };
        let reducer = ConversationReducer::new(&settings, reduction, &open)?;
        let keys = settings.compress_keys.iter();
        let plug = keys.map(|(name, key)| PlugTenant::new(name, key, reduction, &open));
        let plug = plug
            .map(|tenant| tenant.map(Arc::new))
            .collect::<Result<_, _>>()?;
        let stores = locked(&opened).values().cloned().collect();
        let service = Arc::new(Service::new(settings, reducer, plug, stores)?);
        Ok(Self { service })
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
        check_keys(&settings.compress_keys)
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &ServeSettings {
        &self.service.settings
    }

    /// Notes for the person who starts a server with these settings: what will not be done, and why.
    #[must_use]
    pub fn notes(settings: &ServeSettings, reduction: &Settings) -> Vec<String> {
        let mut notes = Vec::new();
        let long = Settings::default().max_length_for_trunc;
        if reduction.preview_above.is_none() && reduction.max_length_for_trunc >= long {
            notes.push(format!(
                "results of up to {} bytes stay whole: `preset = \"recommended\"` in the settings shortens them from 3 000 bytes on",
                reduction.max_length_for_trunc
            ));
        }
        if settings.holdout > 0.0 {
            let share = (settings.holdout * 10_000.0).round() / 100.0;
            notes.push(format!(
                "{share} % of conversations are left alone, for comparison (`holdout`)"
            ));
        }
        if settings.cut_without_reader {
            notes.push("results are replaced even where the model can't read them back".to_owned());
        } else if Pages::of(settings, reduction).is_none() {
            let reader = reduction.read_file_tool_name.as_deref();
            notes.push(format!(
                "agents can't open stored content as files here: only requests that have the tool {} are reduced (GET /v1/read gives its definition), and all others pass unchanged",
                reader.unwrap_or("read_file")
            ));
        }
        notes
    }

    /// Asks all stores whether they take content.
    ///
    /// # Errors
    ///
    /// The first one that does not, and its reason.
    pub async fn ready(&self) -> Result<(), BackendError> {
        self.service.ready().await
    }

    /// The path of the page that shows what the server does, with its token; `None` if the system gave
    /// no random bytes for one. A browser opens it at the server's address.
    #[must_use]
    pub fn page(&self) -> Option<String> {
        let token = self.service.token.as_ref()?.text();
        Some(format!("{}#{token}", page::PATH))
    }

    /// Has `listener` told the figures of each request, on the way to its provider: it must not wait.
    #[must_use]
    pub fn on_request(self, listener: impl Fn(&RequestRecord) + Send + Sync + 'static) -> Self {
        _ = self.service.watch.listener.set(Box::new(listener));
        self
    }

    /// Shows on the page what the input comes to by prices: the weights `cached` and `fresh` of a token, or the prices
    /// of a million tokens, with their `currency` and `source`. By default, a cached token costs a tenth of a fresh one.
    #[must_use]
    pub fn with_card(self, card: Value) -> Self {
        self.service.watch.state().card = card;
        self
    }

    /// Serves the clients of `listener`, and those who watch the server at `monitor`, until `stop` is ready. Then no
    /// connection is accepted any more, and running requests have `shutdown_seconds` to end. A connection that fails
    /// ends only itself. `listener` should be bound to the settings' `listen`: by that address, not by its own, the
    /// server decides who may connect and what it lets them see.
    pub async fn serve(
        self,
        listener: TcpListener,
        monitor: Option<TcpListener>,
        stop: impl Future<Output = ()>,
    ) {
        let (service, settings) = (&self.service, self.settings());
        let [head, silence] =
            [settings.header_seconds, settings.body_seconds].map(Duration::from_secs);
        let unaccepted =
            |error: &io::Error| tracing::warn!(%error, "a connection was not accepted");
        let monitor = monitor.map(|listener| {
            let service = service.clone();
            // It tells how the server stops, so it goes on.
            tokio::spawn(async move {
                let mut clients = Clients::new(Arc::new(Semaphore::new(MONITORS)), head, silence);
                let answer =
                    |own: Arc<Service>, request| async move { own.monitor(&request).await };
                let never = std::future::pending();
                let accepting = clients.accept(listener, &service, answer, unaccepted, never);
                accepting.await;
            })
        });
        let own = service.clone();
        tokio::spawn(async move {
            if let Err(error) = own.ready().await {
                let error = ErrorChain(&error);
                tracing::warn!(%error, "a store takes nothing");
            }
        });
        let mut clients = Clients::new(service.places.clone(), head, silence);
        let answer = |own: Arc<Service>, request| async move { own.answer(request).await };
        let accepting = clients.accept(listener, service, answer, unaccepted, stop);
        accepting.await;
        tracing::info!(connections = clients.count(), "stopping");
        let patience = Duration::from_secs(settings.shutdown_seconds);
        if clients.end(patience).await {
            tracing::info!("stopped");
        } else {
            tracing::warn!("requests were still running and are cut off");
        }
        monitor.inspect(JoinHandle::abort);
    }
}

/// Number of connections at once for those who watch the server.
const MONITORS: usize = 16;
