//! The page in the browser: `/page`, and the figures that it asks for, as does `offcut status`. The page itself holds
//! none: the figures need the token that is printed at the start.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use offcut::ErrorChain;
use serde_json::Value;

use crate::gateway::body::{Body, BoxError};
use crate::gateway::own::{self, Denial};
use crate::gateway::service::Service;

/// The page's path.
pub(crate) const PATH: &str = "/page";

/// Nothing but this server is asked, and no other page may frame it. The page's icon is empty data.
const POLICY: &str = "default-src 'none'; img-src data:; style-src 'self' 'unsafe-inline'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Returns true if a path of this server belongs to the page.
pub(crate) fn is_for(path: &str) -> bool {
    path.strip_prefix(PATH)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Service {
    /// Answers a request for `path`, which belongs to the page.
    pub(crate) fn page<B>(&self, path: &str, request: &Request<B>) -> Response<Body> {
        let headers = request.headers();
        // Checked even if other machines may connect: a web page elsewhere could have bound its name to
        // this address.
        if !offcut_mcp::http::is_own_host(own::host(headers), &self.page_hosts) {
            return Denial::OtherHost.answer();
        }
        if request.method() != Method::GET {
            return Denial::UseGet.answer();
        }
        let rest = path.strip_prefix(PATH).unwrap_or_default();
        let mut answer = match rest {
            "" => own::typed(
                StatusCode::OK,
                "text/html; charset=utf-8",
                include_str!("page/page.html"),
            ),
            "/page.css" => own::typed(
                StatusCode::OK,
                "text/css; charset=utf-8",
                [crate::page::STYLE, include_str!("page/page.css")].concat(),
            ),
            "/page.js" => own::typed(
                StatusCode::OK,
                "text/javascript; charset=utf-8",
                [crate::page::SCRIPT, include_str!("page/page.js")].concat(),
            ),
            _ if !own::bears(headers, self.token.as_ref()) => Denial::NoToken.answer(),
            "/figures" => {
                let query = request.uri().query().unwrap_or_default();
                let since = query.strip_prefix("since=");
                let since = since.and_then(|since| since.parse().ok()).unwrap_or(0);
                own::json(StatusCode::OK, &self.watch.state().figures(since))
            }
            rest => {
                let number = rest.strip_prefix("/conversations/");
                let number = number.and_then(|number| number.parse().ok());
                match number.and_then(|number| self.watch.state().conversation_row(number)) {
                    Some(conversation) => own::json(StatusCode::OK, &conversation),
                    None => Denial::NoConversation.answer(),
                }
            }
        };
        for (name, value) in [
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::CACHE_CONTROL, "no-store"),
        ] {
            let value = HeaderValue::from_static(value);
            answer.headers_mut().insert(name, value);
        }
        answer
    }
}

/// Time for a server to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest answer: a server holds at most 1,000 conversations.
const LONGEST: usize = 16 * 1024 * 1024;

const WRONG: &str = "the address must be the one that the server printed at its start, such as http://127.0.0.1:8787/page#TOKEN";

/// Asks the server with the page at `address`, such as `http://127.0.0.1:8787/page#TOKEN`, for its
/// figures: the JSON of `/page/figures`, which `docs/serve.md` describes.
///
/// # Errors
///
/// No server listens there, the token is not its own, it does not answer within five seconds, or the address or the
/// answer is not what it should be.
pub async fn figures(address: &str) -> Result<Value, BoxError> {
    let asked = tokio::time::timeout(PATIENCE, ask(address)).await;
    asked.unwrap_or_else(|_| Err("timed out".into()))
}

async fn ask(address: &str) -> Result<Value, BoxError> {
    let (url, token) = address.split_once('#').ok_or(WRONG)?;
    let url: Uri = url.parse().map_err(|_| WRONG)?;
    if url.scheme_str() != Some("http")
        || url.host().is_none_or(str::is_empty)
        || url.path() != PATH
    {
        return Err(WRONG.into());
    }
    let request = Request::get(format!("{url}/figures?since=0"))
        // The page is for this machine, by whatever address it was reached.
        .header(header::HOST, "localhost")
        .header(header::AUTHORIZATION, format!("Bearer {token}"))
        .body(Empty::<Bytes>::new());
    let client = legacy::Client::builder(TokioExecutor::new()).build_http();
    let answer = client.request(request.map_err(|_| WRONG)?).await;
    let answer = answer.map_err(|error| ErrorChain(&error).to_string())?;
    match answer.status() {
        StatusCode::OK => {
            let body = Limited::new(answer.into_body(), LONGEST).collect().await?;
            let figures: Value = serde_json::from_slice(&body.to_bytes())?;
            if !figures["conversations"].is_array() {
                return Err("whoever answers there is not a server of Offcut".into());
            }
            Ok(figures)
        }
        StatusCode::UNAUTHORIZED => {
            Err("the token is not this server's: it is new at each start".into())
        }
        other => Err(format!("the server answered with status {other}").into()),
    }
}
