//! Stands before `offcut serve`: writes down each request as its client sent it, and gives it a number that the
//! provider sees too.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

/// The header with a request's number.
pub const SEQUENCE: &str = "x-sequence";

#[derive(Clone)]
pub struct Front {
    url: String,
    client: Client<HttpConnector, Full<Bytes>>,
    /// The bodies of all requests, in the order of their numbers.
    pub bodies: Arc<Mutex<Vec<String>>>,
    /// The outcomes that the server named.
    pub outcomes: Arc<Mutex<Vec<String>>>,
}

impl Front {
    /// Serves on a free port, before the server at `url`. Returns the front and its URL.
    pub async fn start(url: &str) -> (Self, String) {
        let front = Self {
            url: url.to_owned(),
            client: Client::builder(TokioExecutor::new()).build_http(),
            bodies: Arc::default(),
            outcomes: Arc::default(),
        };
        let app = Router::new().fallback(pass).with_state(front.clone());
        (front, crate::serve(app).await)
    }
}

async fn pass(
    State(front): State<Front>,
    method: Method,
    uri: Uri,
    mut headers: HeaderMap,
    body: Bytes,
) -> Response {
    let number = {
        let mut bodies = front.bodies.lock().unwrap();
        bodies.push(String::from_utf8(body.to_vec()).unwrap());
        bodies.len() - 1
    };
    headers.remove(header::HOST);
    headers.insert(SEQUENCE, number.to_string().parse().unwrap());
    let mut request = http::Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = format!("{}{uri}", front.url).parse().unwrap();
    *request.headers_mut() = headers;
    match front.client.request(request).await {
        Ok(reply) => {
            if let Some(outcome) = reply.headers().get("x-offcut") {
                let outcome = outcome.to_str().unwrap().to_owned();
                front.outcomes.lock().unwrap().push(outcome);
            }
            reply.map(Body::new)
        }
        Err(_) => StatusCode::BAD_GATEWAY.into_response(),
    }
}
