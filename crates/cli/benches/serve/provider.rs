//! A provider that answers at once, or with a stream of events.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// The header of a request that says how many events its stream has, and how many milliseconds pass
/// between two.
pub(crate) const EVENTS: &str = "x-events";

const ANSWER: &str = r#"{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Done."}}],"usage":{"prompt_tokens":1000,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":900}}}"#;

type Reply = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// Serves on a thread of its own, for as long as this process runs. `begun` is when its clock begins.
pub(crate) fn start(begun: Instant) -> String {
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            send.send(format!("http://{}", listener.local_addr().unwrap()))
                .unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                let answer = service_fn(move |request| async move {
                    Ok::<_, Infallible>(answer(request, begun).await)
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
            }
        });
    });
    receive.recv().unwrap()
}

async fn answer(request: Request<Incoming>, begun: Instant) -> Reply {
    let events = request.headers().get(EVENTS).map(|value| {
        let (count, pause) = value.to_str().unwrap().split_once(' ').unwrap();
        let pause = Duration::from_millis(pause.parse().unwrap());
        (count.parse::<usize>().unwrap(), pause)
    });
    let body = request.into_body().collect().await;
    assert!(!body.unwrap().to_bytes().is_empty());
    let Some((count, pause)) = events else {
        let body = Full::new(Bytes::from_static(ANSWER.as_bytes()));
        return Response::new(body.boxed_unsync());
    };
    let events = stream::unfold(0, move |number| async move {
        if number == count {
            return None;
        }
        if number > 0 {
            tokio::time::sleep(pause).await;
        }
        let event = event(number, begun.elapsed());
        Some((Ok(Frame::data(Bytes::from(event))), number + 1))
    });
    let mut reply = Response::new(BodyExt::boxed_unsync(StreamBody::new(events)));
    let kind = "text/event-stream".parse().unwrap();
    reply.headers_mut().insert("content-type", kind);
    reply
}

/// The event of a number, and the time at which it is sent. Its length is always the same.
fn event(number: usize, at: Duration) -> String {
    let nanoseconds = at.as_nanos();
    format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"word {number:06} at {nanoseconds:018}\"}}}}]}}\n\n"
    )
}

/// The number of an event and the time at which it was sent, as `event` wrote it.
pub(crate) fn read(event: &str) -> Option<(usize, Duration)> {
    let (_, rest) = event.split_once("\"word ")?;
    let (number, rest) = rest.split_once(" at ")?;
    let nanoseconds = rest.get(..18)?.parse().ok()?;
    Some((number.parse().ok()?, Duration::from_nanos(nanoseconds)))
}
