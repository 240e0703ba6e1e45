//! HTTP and TLS for all stores reached over a network.

use std::time::Duration;

use object_store::client::{ClientConfigKey, HttpClient, HttpConnector};
use object_store::{BackoffConfig, ClientOptions, Error, Result, RetryConfig};

use crate::retry::{LONGEST_PAUSE, Retry};

/// Time limit for connecting. Shorter than for a request, to tell an address that does not answer
/// from a slow answer.
const CONNECT: Duration = Duration::from_secs(5);

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
        let option = |key| options.get_config_value(&key);
        let allow_http = option(ClientConfigKey::AllowHttp).is_some_and(|value| value == "true");
        let client = || {
            reqwest::Client::builder()
                .https_only(!allow_http)
                .connect_timeout(CONNECT.min(self.timeout))
                .timeout(self.timeout)
                .user_agent(concat!(
                    env!("CARGO_PKG_NAME"),
                    "/",
                    env!("CARGO_PKG_VERSION")
                ))
                .http1_only()
                // A compressed answer differs from the object in length, and its ranges in position.
                .no_gzip()
                .no_brotli()
                .no_zstd()
                .no_deflate()
        };
        // A container without certificates can still reach a store next to it that has none either.
        let built = client().build().or_else(|error| match allow_http {
            true => client().tls_certs_only([]).build(),
            false => Err(error),
        });
        Ok(HttpClient::new(built.map_err(refused)?))
    }
}

fn refused(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Generic {
        store: "HTTP client",
        source: Box::new(error),
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
