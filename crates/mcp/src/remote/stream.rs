//! Streams of messages from the server: read to their end, and resumed where they break.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Response};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::body::{BodyReader, Kind, kind};
use super::cancel::Cancel;
use super::events::{Data, Events, Place};
use super::failure::RequestFailure;
use super::link::{Link, Relation};
use super::meaning::Meaning;
use super::to_client::OpenLine;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Number of times that a lost connection is tried again.
const TRIES: u32 = 5;
/// The shortest and the longest time between two tries.
const MIN_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Passes the messages of an answer to the client. If the stream ends before the answer, it is taken
/// up again after the last event that had an id.
pub(super) async fn follow(
    link: &Link,
    response: Response<Incoming>,
    meaning: &Meaning,
    cancel: &Cancel,
    done: &mut Option<oneshot::Sender<()>>,
) -> Result<(), RequestFailure> {
    let mut place = Place::default();
    let mut is_answered = meaning.request_id().is_none();
    let mut body = response.into_body();
    loop {
        let (mut events, mut passing) = (events(link, body), Passing::new(link));
        loop {
            let read = tokio::select! {
                biased;
                () = cancel.now.notified() => break,
                // Nobody waits for the rest of the stream.
                () = link.last_said(), if is_answered => break,
                read = events.next(&mut place) => read,
            };
            // A stream that breaks has ended.
            let Ok(Some(data)) = read else { break };
            if passing.pass(data, meaning).await {
                is_answered = true;
                *done = None;
            }
        }
        passing.end().await;
        if is_answered || cancel.is_over.load(Ordering::Relaxed) {
            return Ok(());
        }
        let again = async {
            let id = place.last_id.clone().ok_or(RequestFailure::BrokeOff)?;
            let mut pause = place.retry;
            for _ in 0..TRIES {
                sleep(pause.max(MIN_PAUSE)).await;
                match reopen(link, Some(&id)).await {
                    Err(failure) if failure.may_pass() => pause = (pause * 2).min(MAX_PAUSE),
                    opened => return opened,
                }
            }
            Err(RequestFailure::BrokeOff)
        };
        body = tokio::select! {
            biased;
            () = cancel.now.notified() => return Ok(()),
            again = again => again?,
        };
    }
}

/// Passes the messages that a server sends outside of answers, for as long as it has a stream for them.
pub(super) async fn listen(link: &Link) {
    let mut place = Place::default();
    let mut pause = place.retry;
    loop {
        match reopen(link, place.last_id.as_ref()).await {
            Ok(body) => {
                let (mut events, mut passing) = (events(link, body), Passing::new(link));
                while let Ok(Some(data)) = events.next(&mut place).await {
                    passing.pass(data, &Meaning::default()).await;
                }
                passing.end().await;
                pause = place.retry;
            }
            Err(failure) if failure.may_pass() => pause = (pause * 2).min(MAX_PAUSE),
            // The server has no such stream, or the session has ended.
            Err(_) => return,
        }
        sleep(pause.max(MIN_PAUSE)).await;
    }
}

fn events(link: &Link, body: Incoming) -> Events<BodyReader> {
    Events::new(BodyReader::new(body), link.max)
}

/// Messages of one stream on their way to the client.
struct Passing<'l> {
    link: &'l Link,
    /// The line of a message that comes in parts.
    line: Option<OpenLine<'l>>,
}

impl<'l> Passing<'l> {
    fn new(link: &'l Link) -> Self {
        Self { link, line: None }
    }

    /// Passes a piece. Returns true if it ends the answer to the request that `meaning` is of.
    async fn pass(&mut self, data: Data<'_>, meaning: &Meaning) -> bool {
        match data {
            Data::Whole(message) => self.link.deliver(message, meaning).await,
            Data::Part { bytes, is_last, .. } => {
                let line = match &mut self.line {
                    Some(line) => line,
                    None => self.line.insert(self.link.to_client.open().await),
                };
                line.write(bytes).await;
                if is_last {
                    self.end().await;
                }
                // Nothing else that a server sends is that long.
                is_last
            }
        }
    }

    /// Ends a message that has broken off.
    async fn end(&mut self) {
        if let Some(line) = self.line.take() {
            line.end().await;
        }
    }
}

/// Opens the server's stream of messages, after the event with this id.
async fn reopen(link: &Link, last_id: Option<&HeaderValue>) -> Result<Incoming, RequestFailure> {
    let (mut headers, _) = link.head(&Meaning::default());
    if let Some(id) = last_id {
        headers.insert(LAST_EVENT_ID, id.clone());
    }
    let nothing = Bytes::new();
    let sent = link.connection.send(&Method::GET, &headers, &nothing);
    let response = sent.await?;
    if !response.status().is_success() {
        return Err(RequestFailure::of(&response));
    }
    match kind(response.headers()) {
        Kind::Events => Ok(response.into_body()),
        _ => Err(RequestFailure::NoMessage),
    }
}

/// Reads the answer to an `initialize` that the client does not wait for. Returns true if the server
/// has agreed.
pub(super) async fn is_welcome(
    link: &Link,
    response: Response<Incoming>,
    meaning: &Meaning,
) -> bool {
    match kind(response.headers()) {
        Kind::Json => {
            let body = Limited::new(response.into_body(), link.max).collect().await;
            body.is_ok_and(|body| link.learn(&body.to_bytes(), meaning) == Relation::Result)
        }
        Kind::Events => {
            let mut place = Place::default();
            let (mut events, mut passing) =
                (events(link, response.into_body()), Passing::new(link));
            while let Ok(Some(data)) = events.next(&mut place).await {
                if let Data::Whole(message) = &data {
                    match link.learn(message, meaning) {
                        Relation::Result => return true,
                        Relation::Error => return false,
                        Relation::Other | Relation::Stray => {}
                    }
                }
                passing.pass(data, &Meaning::default()).await;
            }
            passing.end().await;
            false
        }
        Kind::Other => false,
    }
}
