//! The parts that all requests share.

use std::sync::Arc;

use http::StatusCode;
use offcut::backend::BackendError;
use tokio::sync::Semaphore;

use crate::gateway::body::Uploads;
use crate::gateway::breaker::Breaker;
use crate::gateway::jobs::Jobs;
use crate::gateway::metrics::{Metric, Metrics};
use crate::gateway::outcome::{self, Outcome, PassReason};
use crate::gateway::own::{self, Refusal};
use crate::gateway::plug::PlugTenant;
use crate::gateway::reducer::ConversationReducer;
use crate::gateway::secret::Secret;
use crate::gateway::send::Sender;
use crate::gateway::settings::{GatewayError, OnFailure, ServeSettings};
use crate::gateway::upstream::Upstreams;
use crate::gateway::watch::Watch;
use crate::gateway::whose::{Readers, Tenants};

/// The parts that all requests share.
pub(crate) struct Service {
    pub(crate) settings: ServeSettings,
    pub(crate) upstreams: Upstreams,
    pub(crate) sender: Sender,
    pub(crate) reducer: ConversationReducer,
    pub(crate) tenants: Tenants,
    pub(crate) jobs: Jobs,
    /// Permits for connections of clients.
    pub(crate) places: Arc<Semaphore>,
    pub(crate) uploads: Uploads,
    pub(crate) readers: Readers,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) watch: Watch,
    /// The gateways that call the plug.
    pub(crate) plug: Vec<Arc<PlugTenant>>,
    stores: Vec<Breaker>,
    /// The token of the page's figures; `None` if the system gave no random bytes for one.
    pub(crate) token: Option<Secret>,
    /// Names by which the page may be asked for, besides those of loopback.
    pub(crate) page_hosts: Vec<String>,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Service {
    pub(crate) fn new(
        settings: ServeSettings,
        reducer: ConversationReducer,
        plug: Vec<Arc<PlugTenant>>,
        stores: Vec<Breaker>,
    ) -> Result<Self, GatewayError> {
        let metrics = Arc::<Metrics>::default();
        metrics.set(Metric::Build, &[("version", env!("CARGO_PKG_VERSION"))], 1);
        // Counters that begin later hide their first event from `rate`.
        for reason in PassReason::ALL {
            metrics.add(Metric::Unreduced, &[("reason", reason.name())], 0);
        }
        let mut page_hosts = settings.hosts.clone();
        // A name of somebody else that leads here is not an address.
        page_hosts.push(settings.listen.ip().to_string());
        Ok(Self {
            upstreams: Upstreams::new(&settings)?,
            sender: Sender::new(&settings, metrics.clone())?,
            reducer,
            tenants: Tenants::new(&settings)?,
            jobs: Jobs::new(&settings)?,
            places: Arc::new(Semaphore::new(settings.places())),
            uploads: Uploads::new(&settings),
            readers: Readers::default(),
            metrics,
            watch: Watch::default(),
            plug,
            stores,
            token: Secret::random(),
            page_hosts,
            settings,
        })
    }

    /// Fails unless all stores take content.
    pub(crate) async fn ready(&self) -> Result<(), BackendError> {
        let looks = self.stores.iter().map(|store| async {
            let (ready, name) = (store.ready().await, store.name());
            let value = ready.is_ok().into();
            self.metrics
                .set(Metric::StoreAvailable, &[("store", &name)], value);
            ready.map_err(|error| error.while_doing(name))
        });
        let looks = futures_util::future::join_all(looks).await;
        looks.into_iter().collect()
    }

    /// Counts a request with a conversation.
    pub(crate) fn count(&self, upstream: &str, outcome: Outcome) {
        let labels = [("upstream", upstream), ("outcome", outcome.name())];
        self.metrics.add(Metric::Requests, &labels, 1);
    }

    /// Counts and logs what was not replaced. Fails if that is a failure and `on_failure` is `refuse`, which is the
    /// outcome then.
    pub(crate) fn note(&self, outcome: &mut Outcome) -> Result<(), Refusal> {
        let Some(reason) = outcome.reason() else {
            return Ok(());
        };
        let (name, meaning) = (reason.name(), reason.meaning());
        self.metrics.add(Metric::Unreduced, &[("reason", name)], 1);
        if !reason.is_failure() {
            tracing::info!(reason = name, "a request passed unchanged");
            return Ok(());
        }
        let is_refused = self.settings.on_failure == OnFailure::Refuse;
        if is_refused {
            *outcome = Outcome::Refused(reason);
        }
        // The store's error has been logged.
        if reason != PassReason::Store || is_refused {
            tracing::warn!(
                reason = name,
                outcome = outcome.name(),
                "a request could not be reduced, or only in part: {meaning}"
            );
        }
        if !is_refused {
            return Ok(());
        }
        let message = format!(
            "the request could not be reduced, since {meaning}, and `serve.on_failure` is `refuse`: see the server's log"
        );
        let answer = own::error(StatusCode::SERVICE_UNAVAILABLE, &message);
        Err(Box::new(outcome::marked(answer, *outcome)))
    }
}
