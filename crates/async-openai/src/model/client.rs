//! HTTP and TLS.

use std::time::Duration;

use super::ModelSetupError;

const CONNECT: Duration = Duration::from_secs(10);

/// Creates a client.
pub(super) fn client() -> Result<reqwest::Client, ModelSetupError> {
    reqwest::Client::builder()
        // Not for the whole answer, since models think for minutes.
        .connect_timeout(CONNECT)
        .build()
        .map_err(|error| ModelSetupError::Tls {
            source: error.into(),
        })
}
