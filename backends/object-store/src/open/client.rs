//! HTTP and TLS for all stores reached over a network.

use std::time::Duration;

use object_store::client::{ClientConfigKey, HttpClient, HttpConnector, ReqwestConnector};
use object_store::{BackoffConfig, ClientOptions, Result, RetryConfig};

use crate::retry::{LONGEST_PAUSE, Retry};

/// Time limit for connecting. Shorter than for a request, to tell an address that does not answer
/// from a slow answer.
const CONNECT: Duration = Duration::from_secs(5);
const AGENT: &str = concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION"));

/// Creates clients with the library's time limits.
#[derive(Debug)]
pub(super) struct ClientConnector {
    /// Time limit for a request, its answer included.
    timeout: Duration,
}

impl ClientConnector {
    pub(super) fn new(retry: &Retry) -> Self {
        Self {
            timeout: retry.attempt(),
        }
    }
}

impl HttpConnector for ClientConnector {
    fn connect(&self, options: &ClientOptions) -> Result<HttpClient> {
        let options = options
            .clone()
            .with_timeout(self.timeout)
            .with_connect_timeout(CONNECT.min(self.timeout))
            .with_config(ClientConfigKey::UserAgent, AGENT);
        let connector = ReqwestConnector::default();
        // A container without certificates can still reach a store next to it that has none either.
        connector
            .connect(&options)
            .or_else(|_| connector.connect(&options.with_no_system_certificates(true)))
    }
}

/// `retry` must be checked: with a zero, `object_store` would panic on the first failure.
pub(super) fn retries(retry: &Retry) -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: retry.backoff,
            max_backoff: LONGEST_PAUSE,
            base: 2.0,
        },
        max_retries: retry.retries as usize,
        retry_timeout: retry.timeout,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_program_makes_clients_of_its_own_beside_this_crate() {
        // It panics where features turn TLS on without a provider.
        let _ = reqwest::Client::new();
    }
}
