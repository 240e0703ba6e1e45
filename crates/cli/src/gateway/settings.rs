//! The settings of the server, the table `[serve]` of a settings file, and the errors of setting it up.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use bytesize::ByteSize;
use http::Uri;
use offcut::SettingsError;
use serde::Deserialize;
use tokio::sync::Semaphore;

use crate::gateway::secret::Secret;

/// The settings of a server, as the table `[serve]` of a settings file has them.
///
/// ```
/// use offcut_cli::gateway::ServeSettings;
///
/// let settings = ServeSettings::from_toml("[serve]\nlisten = \"127.0.0.1:9000\"\nmax_body = \"16MiB\"")?;
/// assert_eq!(settings.listen.port(), 9000);
/// # Ok::<(), offcut_cli::gateway::GatewayError>(())
/// ```
///
/// # Default
///
/// `127.0.0.1:8787`, the providers' own addresses, and the limits that each field names.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ServeSettings {
    /// The address to listen on. Default: `127.0.0.1:8787`.
    pub listen: SocketAddr,
    /// An address for `/metrics`, `/healthz` and `/readyz` alone. Clients of `listen` then get no metrics. Default:
    /// none.
    pub metrics_listen: Option<SocketAddr>,
    /// True to let other machines connect: without it, only loopback addresses are accepted. True too for a loopback
    /// address with a proxy in front of it. Default: false.
    pub expose: bool,
    /// Names under which clients may address a server on loopback, besides `localhost` and loopback
    /// addresses. Default: none.
    pub hosts: Vec<String>,
    /// URLs of providers by name: `/NAME/rest` goes to `URL/rest`. `openai`, `anthropic` and
    /// `gemini` have their public addresses unless a URL is given here.
    pub upstreams: BTreeMap<String, String>,
    /// The provider of requests without a prefix. Default: none, and their headers and paths tell.
    pub default_upstream: Option<String>,
    /// A secret with which credentials are hashed, to tell tenants apart without knowing them: the
    /// same for all replicas. Required where other machines may connect. Default: none, and all
    /// requests are one user's.
    pub tenant_key: Option<Secret>,
    /// A header that tells tenants apart, in place of the credentials. Default: none.
    pub tenant_header: Option<String>,
    /// Keys of gateways that call `/v1/compress` and `/v1/retrieve`, each by the name of its tenant:
    /// 16 characters or more. Default: none, and neither path is answered.
    pub compress_keys: BTreeMap<String, Secret>,
    /// True to replace results also where the model has no way to read them back. Default: false.
    pub cut_without_reader: bool,
    /// Share of conversations that pass unchanged, from 0 to 1, so that the provider's own usage
    /// can be compared. Default: 0.
    pub holdout: f64,
    /// The fate of a request that could not be reduced. Default: it passes.
    pub on_failure: OnFailure,
    /// True to send a request that the provider refuses as too long once more, with all results before its newest
    /// round cleared. Default: true.
    pub retry_too_long: bool,
    /// Seconds for reducing a request, after which it passes unchanged. Default: 10.
    pub reduce_seconds: u64,
    /// Maximum size of a body that is read, compressed or not. A longer one passes unread. Default:
    /// 64 MiB.
    pub max_body: ByteSize,
    /// Maximum number of connections at once; more have to wait. Default: 4096.
    pub max_connections: usize,
    /// Seconds for a request's head. Default: 15.
    pub header_seconds: u64,
    /// Seconds for a request's body, and one more for each 8 KiB of it. Default: 60.
    pub body_seconds: u64,
    /// Seconds for a provider to begin its answer. Default: 1200.
    pub answer_seconds: u64,
    /// Seconds for running requests to end when the server stops. Default: 600.
    pub shutdown_seconds: u64,
}

/// The fate of a request that could not be reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnFailure {
    /// It is passed on unchanged.
    Pass,
    /// It is refused, with status 503.
    Refuse,
}

impl Default for ServeSettings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8787)),
            metrics_listen: None,
            expose: false,
            hosts: Vec::new(),
            upstreams: BTreeMap::new(),
            default_upstream: None,
            tenant_key: None,
            tenant_header: None,
            compress_keys: BTreeMap::new(),
            cut_without_reader: false,
            holdout: 0.0,
            on_failure: OnFailure::Pass,
            retry_too_long: true,
            reduce_seconds: 10,
            max_body: ByteSize::mib(64),
            max_connections: 4096,
            header_seconds: 15,
            body_seconds: 60,
            answer_seconds: 1200,
            shutdown_seconds: 600,
        }
    }
}

/// A settings file, of which only this table counts here.
#[derive(Deserialize)]
struct File {
    #[serde(default)]
    serve: ServeSettings,
}

/// A mistake in the table. Names below its fields are not shown: they may be secrets.
fn wrong(mut error: SettingsError) -> GatewayError {
    let field = error.field.split('.').take(2);
    error.field = field.collect::<Vec<_>>().join(".");
    let size = "expected a size such as \"64MiB\"";
    error.problem = error
        .problem
        .replace("expected parsable string", size)
        .replace("expected integer overflow", size)
        .replace(
            "invalid socket address syntax",
            "write an address with a port, such as 127.0.0.1:8787",
        );
    GatewayError::Settings(error)
}

impl ServeSettings {
    /// Reads the table `[serve]` of a settings file in TOML; the defaults if there is none.
    ///
    /// # Errors
    ///
    /// The text is not TOML, or the table has an unknown or wrong field.
    pub fn from_toml(text: &str) -> Result<Self, GatewayError> {
        let file = offcut::config::read_toml::<File>(text).map_err(wrong)?;
        Ok(file.serve)
    }

    /// Reads the object `serve` of a settings file in JSON; the defaults if there is none.
    ///
    /// # Errors
    ///
    /// The text is not JSON, or the object has an unknown or wrong field.
    pub fn from_json(text: &str) -> Result<Self, GatewayError> {
        let file = offcut::config::read_json::<File>(text).map_err(wrong)?;
        Ok(file.serve)
    }

    /// Checks what no single field shows.
    pub(crate) fn check(&self) -> Result<(), GatewayError> {
        let addresses = [
            ("listen", Some(self.listen)),
            ("metrics_listen", self.metrics_listen),
        ];
        for (field, address) in addresses {
            let open = address.filter(|address| !address.ip().is_loopback() && !self.expose);
            if let Some(address) = open {
                let problem = format!(
                    "{} can be reached by other machines: choose a loopback address such as 127.0.0.1, or allow it with `expose = true`",
                    address.ip()
                );
                return Err(GatewayError::settings(field, problem));
            }
        }
        // On most systems, `[::]` takes connections to addresses of both kinds.
        let covers = |one: IpAddr, other: IpAddr| {
            one == other || one.is_unspecified() && (one.is_ipv6() || other.is_ipv4())
        };
        let is_taken = |other: &SocketAddr| {
            let (own, other_ip) = (self.listen.ip(), other.ip());
            (covers(own, other_ip) || covers(other_ip, own))
                && other.port() == self.listen.port()
                && other.port() != 0
        };
        if self.metrics_listen.as_ref().is_some_and(is_taken) {
            let problem = "`listen` has this port already: choose another one";
            return Err(GatewayError::settings("metrics_listen", problem));
        }
        if let Some(name) = self.upstreams.keys().find(|name| self.is_own(name)) {
            let problem = "this is the address of the server itself: write the provider's";
            return Err(GatewayError::entry("upstreams", name, problem));
        }
        let is_name = |host: &String| {
            let is_address = host.parse::<IpAddr>().is_ok();
            is_address || !host.is_empty() && !host.contains([':', '/', '*', '@', ' '])
        };
        if !self.hosts.iter().all(is_name) {
            let problem = "write names alone, such as offcut.example, without scheme, port and `*`";
            return Err(GatewayError::settings("hosts", problem));
        }
        if !(0.0..=1.0).contains(&self.holdout) {
            let problem = format!("{} is not a share: write 0.1 for a tenth", self.holdout);
            return Err(GatewayError::settings("holdout", problem));
        }
        let at_least = [
            ("max_connections", self.max_connections as u64, 1),
            ("max_body", self.max_body.as_u64(), 1024),
            ("header_seconds", self.header_seconds, 1),
            ("body_seconds", self.body_seconds, 1),
            ("reduce_seconds", self.reduce_seconds, 1),
            ("answer_seconds", self.answer_seconds, 1),
        ];
        for (field, value, least) in at_least {
            if value < least {
                let problem = format!("{value} is too small: write at least {least}");
                return Err(GatewayError::settings(field, problem));
            }
        }
        Ok(())
    }

    /// Returns true if the upstream of this name is this server, as far as its URL tells.
    fn is_own(&self, name: &str) -> bool {
        let url: Uri = self.upstreams[name].parse().unwrap_or_default();
        let (host, own) = (url.host().unwrap_or_default(), self.listen.ip());
        let is_any = own.is_loopback() || own.is_unspecified();
        let is_here = match offcut_mcp::http::address(host) {
            Some(ip) => {
                ip == own
                    || ip.is_unspecified() && own.is_loopback()
                    || ip.is_loopback() && own.is_unspecified()
            }
            None => is_any && host.eq_ignore_ascii_case("localhost"),
        };
        let is_plain = url.scheme_str() == Some("http");
        is_plain && is_here && url.port_u16().unwrap_or(80) == self.listen.port()
    }

    /// Returns true if only this machine can connect, and not through a proxy either.
    pub(crate) fn is_local(&self) -> bool {
        self.listen.ip().is_loopback() && !self.expose
    }

    /// Number of clients' connections at once.
    pub(crate) fn places(&self) -> usize {
        self.max_connections.min(Semaphore::MAX_PERMITS)
    }

    pub(crate) fn max_body_bytes(&self) -> usize {
        usize::try_from(self.max_body.as_u64()).unwrap_or(usize::MAX)
    }
}

/// A server can't be set up, or can't go on. The message says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// The settings of the server are wrong.
    #[error(transparent)]
    Settings(SettingsError),
    /// The certificates that the system trusts can't be used.
    #[error("the system's certificates can't be used; install its package of CA certificates")]
    Certificates(#[source] rustls::Error),
    /// The settings of the reduction are wrong, or a store can't be opened.
    #[error(transparent)]
    Reduction(offcut::BuildError),
    /// No thread can be started to work on requests.
    #[error("the server can't start its threads")]
    Threads(#[source] std::io::Error),
}

/// Returns true if a name has letters, digits, `-` and `_` only.
pub(crate) fn is_plain(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    !name.is_empty() && name.bytes().all(is_plain)
}

impl GatewayError {
    pub(crate) fn settings(field: impl Display, problem: impl Into<String>) -> Self {
        let mut error = SettingsError::default();
        error.field = format!("serve.{field}");
        error.problem = problem.into();
        Self::Settings(error)
    }

    /// A problem with the entry `name` of a table. A name that could be a key, or a URL with a password, written at
    /// its value's place, is not shown.
    pub(crate) fn entry(table: &str, name: &str, problem: impl Into<String>) -> Self {
        match name.len() < Secret::MIN && is_plain(name) {
            true => Self::settings(format_args!("{table}.{name}"), problem),
            false => Self::settings(table, problem),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_machines_need_a_word() {
        let mut settings = ServeSettings {
            listen: SocketAddr::from(([0, 0, 0, 0], 8787)),
            ..ServeSettings::default()
        };
        let refused = settings.check().unwrap_err();
        assert_eq!(
            refused.to_string(),
            "`serve.listen`: 0.0.0.0 can be reached by other machines: choose a loopback address such as 127.0.0.1, or allow it with `expose = true`"
        );
        settings.expose = true;
        settings.check().unwrap();
        settings.metrics_listen = Some(SocketAddr::from(([0, 0, 0, 0], 8788)));
        settings.check().unwrap();
        settings = ServeSettings {
            metrics_listen: settings.metrics_listen,
            ..ServeSettings::default()
        };
        let refused = settings.check().unwrap_err().to_string();
        assert!(
            refused.starts_with("`serve.metrics_listen`: 0.0.0.0 can be reached"),
            "{refused}"
        );
    }

    #[test]
    fn two_listeners_share_a_port_only_where_neither_takes_the_others_connections() {
        for (listen, metrics, is_free) in [
            ("0.0.0.0:1", "[::1]:1", true),
            ("127.0.0.1:1", "[::1]:1", true),
            ("127.0.0.1:1", "127.0.0.1:2", true),
            ("0.0.0.0:0", "0.0.0.0:0", true),
            ("0.0.0.0:1", "127.0.0.1:1", false),
            ("127.0.0.1:1", "0.0.0.0:1", false),
            ("[::1]:1", "[::]:1", false),
            ("0.0.0.0:1", "[::]:1", false),
            ("127.0.0.1:1", "127.0.0.1:1", false),
        ] {
            let settings = ServeSettings {
                listen: listen.parse().unwrap(),
                metrics_listen: Some(metrics.parse().unwrap()),
                expose: true,
                ..ServeSettings::default()
            };
            assert_eq!(settings.check().is_ok(), is_free, "{listen} {metrics}");
        }
    }

    #[test]
    fn an_upstream_is_not_the_server_itself() {
        let is_refused = |listen: &str, url: &str| {
            let settings = ServeSettings {
                listen: listen.parse().unwrap(),
                expose: true,
                upstreams: BTreeMap::from([("lab".to_owned(), url.to_owned())]),
                ..ServeSettings::default()
            };
            let refused = settings.check();
            refused.is_err_and(|error| {
                error
                    .to_string()
                    .starts_with("`serve.upstreams.lab`: this is the address of the server itself")
            })
        };
        for (listen, url) in [
            ("127.0.0.1:8787", "http://127.0.0.1:8787/v1"),
            ("127.0.0.1:8787", "http://LocalHost:8787"),
            ("127.0.0.1:80", "http://localhost"),
            ("[::1]:8787", "http://[::1]:8787"),
            ("0.0.0.0:8787", "http://127.0.0.1:8787"),
            ("127.0.0.1:8787", "http://0.0.0.0:8787"),
        ] {
            assert!(is_refused(listen, url), "{listen} {url}");
        }
        for (listen, url) in [
            ("127.0.0.1:8787", "http://127.0.0.1:8788"),
            ("127.0.0.1:8787", "http://127.0.0.2:8787"),
            ("127.0.0.1:8787", "http://lab.example:8787"),
            ("10.0.0.1:8787", "http://localhost:8787"),
            ("0.0.0.0:8787", "http://10.0.0.7:8787"),
            ("127.0.0.1:443", "https://localhost"),
        ] {
            assert!(!is_refused(listen, url), "{listen} {url}");
        }
    }

    #[test]
    fn a_share_is_at_most_one() {
        for (holdout, is_right) in [
            (0.0, true),
            (0.1, true),
            (1.0, true),
            (10.0, false),
            (-0.1, false),
            (f64::NAN, false),
        ] {
            let settings = ServeSettings {
                holdout,
                ..ServeSettings::default()
            };
            assert_eq!(settings.check().is_ok(), is_right, "{holdout}");
        }
    }

    #[test]
    fn the_table_is_found_in_a_whole_settings_file() {
        let text = "preset = \"recommended\"\n[serve]\nmax_body = \"2MiB\"\n[serve.upstreams]\nlab = \"http://10.0.0.1:4000\"\n";
        let settings = ServeSettings::from_toml(text).unwrap();
        assert_eq!(settings.max_body, ByteSize::mib(2));
        assert_eq!(settings.upstreams["lab"], "http://10.0.0.1:4000");
        assert_eq!(
            ServeSettings::from_toml("preset = \"recommended\"").unwrap(),
            ServeSettings::default()
        );
        let wrong = ServeSettings::from_toml("[serve]\n\nmax_bodies = 1").unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "line 3, `serve.max_bodies`: unknown field; did you mean `max_body`?"
        );
        let wrong = ServeSettings::from_json(r#"{"serve": {"lissen": 1}}"#).unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "line 1, `serve.lissen`: unknown field; did you mean `listen`?"
        );
        let wrong = ServeSettings::from_json("{} {}").unwrap_err();
        assert!(wrong.to_string().contains("trailing characters"), "{wrong}");
        let wrong =
            ServeSettings::from_toml("[serve]\ncompress_keys = \"a \\\"s3cret\"").unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "line 2, `serve.compress_keys`: invalid type: a string, expected a map"
        );
        for (wrong, problem) in [
            (
                "tenant_key = 1234567890123456789",
                "tenant_key`: expected a string",
            ),
            (
                "tenant_key = 0.12345678901234567",
                "tenant_key`: expected a string",
            ),
            (
                "compress_keys = { planted = 1234567890123456 }",
                "compress_keys`: expected a string",
            ),
            (
                "on_failure = \"planted\"",
                "on_failure`: unknown value `planted`: use one of pass, refuse",
            ),
            (
                "max_body = \"64 elephants\"",
                "max_body`: invalid value: a string, expected a size such as \"64MiB\"",
            ),
            (
                "max_body = -5",
                "max_body`: invalid value: integer `-5`, expected a size such as \"64MiB\"",
            ),
            (
                "reduce_seconds = \"10\"",
                "reduce_seconds`: invalid type: a string, expected a whole number, 0 or more",
            ),
            (
                "holdout = \"10%\"",
                "holdout`: invalid type: a string, expected a number",
            ),
        ] {
            let error = ServeSettings::from_toml(&format!("[serve]\n{wrong}")).unwrap_err();
            assert_eq!(error.to_string(), format!("line 2, `serve.{problem}"));
        }
        for host in ["https://offcut.example", "offcut.example:8995", "*", ""] {
            let settings = ServeSettings {
                hosts: vec![
                    "::1".to_owned(),
                    "offcut.example".to_owned(),
                    host.to_owned(),
                ],
                ..ServeSettings::default()
            };
            let error = settings.check().unwrap_err().to_string();
            assert!(
                error.starts_with("`serve.hosts`: write names alone"),
                "{error}"
            );
        }
        let wrong = ServeSettings::from_toml("[serve]\nzebra = 1").unwrap_err();
        assert_eq!(wrong.to_string(), "line 2, `serve.zebra`: unknown field");
        let wrong = ServeSettings::from_toml("[serve]\nlisten = \"127.0.0.1\"").unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "line 2, `serve.listen`: write an address with a port, such as 127.0.0.1:8787"
        );
    }
}
