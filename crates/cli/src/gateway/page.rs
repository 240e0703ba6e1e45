//! The page in the browser: `/page`, and the figures that it asks for. The page itself holds none: the
//! figures need the token that is printed at the start.

use http::{HeaderValue, Method, Request, Response, StatusCode, header};

use crate::gateway::body::Body;
use crate::gateway::own;
use crate::gateway::secret::Secret;
use crate::gateway::watch::Watch;

/// The page's path.
pub(crate) const PATH: &str = "/page";

/// Nothing but this server is asked, and no other page may frame it. The page's icon is empty data.
const POLICY: &str = "default-src 'none'; img-src data:; style-src 'self' 'unsafe-inline'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Returns true if a path of this server belongs to the page.
pub(crate) fn is_for(path: &str) -> bool {
    path.strip_prefix(PATH)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Answers a request for `path`, which belongs to the page.
pub(crate) fn answer<B>(
    path: &str,
    watch: &Watch,
    token: Option<&Secret>,
    hosts: &[String],
    request: &Request<B>,
) -> Response<Body> {
    let headers = request.headers();
    // Checked even if other machines may connect: a web page elsewhere could have bound its name to
    // this address.
    if !offcut_mcp::http::is_own_host(own::host(headers), hosts) {
        return own::error(
            StatusCode::MISDIRECTED_REQUEST,
            "the page is for this machine: use 127.0.0.1, or add the name to `serve.hosts`",
        );
    }
    if request.method() != Method::GET {
        return own::error(StatusCode::METHOD_NOT_ALLOWED, "use GET");
    }
    let rest = path.strip_prefix(PATH).unwrap_or_default();
    let answer = match rest {
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
        _ if !own::bears(headers, token) => own::error(
            StatusCode::UNAUTHORIZED,
            "open the address that the server has printed at its start: it ends in the token",
        ),
        "/figures" => {
            let query = request.uri().query().unwrap_or_default();
            let since = query.strip_prefix("since=");
            let since = since.and_then(|since| since.parse().ok()).unwrap_or(0);
            own::json(StatusCode::OK, &watch.state().figures(since))
        }
        rest => {
            let number = rest.strip_prefix("/conversations/");
            let number = number.and_then(|number| number.parse().ok());
            match number.and_then(|number| watch.state().conversation_row(number)) {
                Some(conversation) => own::json(StatusCode::OK, &conversation),
                None => own::error(StatusCode::NOT_FOUND, "no such conversation is held"),
            }
        }
    };
    guarded(answer)
}

/// Adds the headers that keep the page to itself.
fn guarded(mut answer: Response<Body>) -> Response<Body> {
    let headers = answer.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}
