//! A provider's HTTP API, without its SDK.

use std::env;
use std::error::Error;
use std::time::Duration;

use reqwest::Client;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

/// Limits the wait for a reply: models think for minutes, but not forever.
const REPLY: Duration = Duration::from_mins(10);
const CONNECT: Duration = Duration::from_secs(10);
/// Maximum number of characters shown of an error's body.
const SHOWN: usize = 2_000;

/// A provider's HTTP API: its URL, and the headers of each request.
#[derive(Clone, Debug)]
pub struct Api {
    client: Client,
    base: String,
    headers: HeaderMap,
}

impl Api {
    /// Creates the API at the URL in the environment variable `name`, or at `default` if it is not
    /// set.
    ///
    /// # Errors
    ///
    /// The HTTP client can't be built, for instance without any certificates on this machine.
    pub fn from_env_or(name: &str, default: &str) -> Result<Self, Box<dyn Error>> {
        let base = env::var(name).unwrap_or_else(|_| default.to_owned());
        Ok(Self {
            client: Client::builder()
                .connect_timeout(CONNECT)
                .timeout(REPLY)
                .build()?,
            base: base.trim_end_matches('/').to_owned(),
            headers: HeaderMap::new(),
        })
    }

    /// Sends `value` as the header `name` of every request.
    ///
    /// # Errors
    ///
    /// `value` has characters that no header may have.
    pub fn header(mut self, name: &'static str, value: &str) -> Result<Self, Box<dyn Error>> {
        let mut value = HeaderValue::from_str(value)?;
        value.set_sensitive(true);
        self.headers.insert(HeaderName::from_static(name), value);
        Ok(self)
    }

    /// Sends the key in the environment variable `variable`, after `prefix`, as the header `name`.
    ///
    /// # Errors
    ///
    /// The variable is not set, or has characters that no header may have.
    pub fn key(
        self,
        name: &'static str,
        prefix: &str,
        variable: &str,
    ) -> Result<Self, Box<dyn Error>> {
        let key = env::var(variable).map_err(|_| format!("set {variable} to your API key"))?;
        self.header(name, &format!("{prefix}{key}"))
    }

    /// Posts `body` to `path` and returns the reply.
    ///
    /// # Errors
    ///
    /// The provider can't be reached, refuses the request, or replies with something other than
    /// JSON. A real loop would send the same again after a 429 or a 5xx.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, Box<dyn Error>> {
        let request = self.client.post(format!("{}{path}", self.base));
        let reply = request.headers(self.headers.clone()).json(body).send();
        let reply = reply.await?;
        let status = reply.status();
        if !status.is_success() {
            let why: String = reply.text().await?.chars().take(SHOWN).collect();
            return Err(format!("the provider answered {status}: {why}").into());
        }
        Ok(reply.json().await?)
    }
}
