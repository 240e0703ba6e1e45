//! A proxy that does nothing but read each body whole and send it on.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, Uri, header};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

/// The argument with which this program is the proxy.
pub(crate) const WORD: &str = "plain-proxy";

/// Serves until the process ends, and prints its address.
pub(crate) fn run(url: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build(tcp);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("http://{}", listener.local_addr().unwrap());
        while let Ok((stream, _)) = listener.accept().await {
            stream.set_nodelay(true).unwrap();
            let (client, url) = (client.clone(), url.to_owned());
            let pass = service_fn(move |request| pass(client.clone(), url.clone(), request));
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), pass));
        }
    });
}

async fn pass(
    client: Client<HttpConnector, Full<Bytes>>,
    url: String,
    request: Request<Incoming>,
) -> Result<Response<Incoming>, Infallible> {
    let (mut parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    parts.headers.remove(header::HOST);
    let path = parts.uri.path_and_query().unwrap();
    parts.uri = format!("{url}{path}").parse::<Uri>().unwrap();
    let request = Request::from_parts(parts, Full::new(body));
    Ok(client.request(request).await.unwrap())
}
