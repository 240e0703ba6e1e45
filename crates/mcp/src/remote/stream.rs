//! Streams of messages from the server: read to their end, and resumed where they break.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Response};
use hyper::body::Incoming;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::body::{AnswerMessages, Kind, events, kind};
use super::failure::RequestFailure;
use super::link::{Cancel, Link, Relation};
use super::meaning::Meaning;
use super::session::LAST_EVENT_ID;
use crate::http::events::{StreamChunk, field, lines, message, text};

/// Number of times that a lost connection is tried again.
const TRIES: u32 = 5;
/// The time before a try, unless the server names one, and the longest that it can name.
const RETRY: Duration = Duration::from_secs(1);
const MAX_RETRY: Duration = Duration::from_secs(300);
/// The shortest and the longest time between two tries.
const MIN_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Passes the messages of an answer to the client. If the stream ends before the answer, it is taken
/// up again after the last event that had an id. `done` is dropped with the answer.
pub(super) async fn follow(
    link: &Link,
    response: Response<Incoming>,
    (meaning, cancel): (&Meaning, &Cancel),
    done: &mut Option<oneshot::Sender<()>>,
) -> Result<(), RequestFailure> {
    let mut place = Place::START;
    let mut is_answered = meaning.request_id().is_none();
    // The answer may be among the messages over the maximum that do not begin like one, or after them.
    let mut misses_some = false;
    let mut last_said = link.last_said.subscribe();
    let mut body = response.into_body();
    loop {
        let mut events = events(body, link.gateway.max_message);
        loop {
            let read = tokio::select! {
                biased;
                () = cancel.now.notified() => break,
                // Nobody waits for the rest of the stream.
                _ = last_said.wait_for(|said| *said), if is_answered => break,
                read = events.next() => read,
            };
            // A stream that breaks has ended.
            let Ok(Some(chunk)) = read else { break };
            if let StreamChunk::TooLong { may_answer } = chunk
                && !is_answered
            {
                if may_answer {
                    return Err(link.too_long());
                }
                misses_some = true;
            } else if pass(link, &mut place, chunk, meaning).await {
                is_answered = true;
                *done = None;
            }
        }
        if is_answered || cancel.is_over.load(Ordering::Relaxed) {
            if misses_some {
                link.note(&link.too_long().to_string());
            }
            return Ok(());
        }
        if misses_some {
            return Err(link.too_long());
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
    let mut place = Place::START;
    let mut pause = place.retry;
    loop {
        match reopen(link, place.last_id.as_ref()).await {
            Ok(body) => {
                let mut events = events(body, link.gateway.max_message);
                while let Ok(Some(chunk)) = events.next().await {
                    pass(link, &mut place, chunk, &Meaning::default()).await;
                }
                pause = place.retry;
            }
            Err(failure) if failure.may_pass() => pause = (pause * 2).min(MAX_PAUSE),
            // The server has no such stream, or the session has ended.
            Err(_) => return,
        }
        sleep(pause.max(MIN_PAUSE)).await;
    }
}

/// Passes a piece of a stream. Returns true if it ends the answer to the request that `meaning` is of.
async fn pass(link: &Link, place: &mut Place, chunk: StreamChunk, meaning: &Meaning) -> bool {
    let event = match chunk {
        StreamChunk::Event(event) => event,
        StreamChunk::Rest(_) => return false,
        StreamChunk::TooLong { .. } => {
            link.note(&link.too_long().to_string());
            return false;
        }
    };
    place.follow(&event);
    let message = message(&event);
    drop(event);
    match message {
        Some(message) => link.deliver(message, meaning).await,
        None => false,
    }
}

/// The place that a client has reached in a server's stream.
#[derive(Debug)]
struct Place {
    /// The id of the last whole event that had one.
    last_id: Option<HeaderValue>,
    /// The time after which a client connects again.
    retry: Duration,
}

impl Place {
    /// The beginning of a stream.
    const START: Self = Self {
        last_id: None,
        retry: RETRY,
    };

    /// Goes on after an event.
    fn follow(&mut self, event: &[u8]) {
        for line in lines(event) {
            match field(text(line).unwrap_or(line)) {
                (b"id", value) => {
                    if let Ok(id) = HeaderValue::from_bytes(value) {
                        self.last_id = Some(id);
                    }
                }
                (b"retry", value) => {
                    let millis = str::from_utf8(value).ok();
                    if let Some(millis) = millis.and_then(|text| text.parse().ok()) {
                        self.retry = Duration::from_millis(millis).min(MAX_RETRY);
                    }
                }
                _ => {}
            }
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
    let response = RequestFailure::unless_success(sent.await?)?;
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
    let mut messages = AnswerMessages::new(response, link.gateway.max_message);
    while let Some(message) = messages.next().await {
        match link.learn(&message, meaning) {
            Relation::Result => return true,
            Relation::Error => return false,
            Relation::Other | Relation::Stray => {
                _ = link.deliver(message, &Meaning::default()).await;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_that_of_the_last_id_and_nonsense_is_ignored() {
        let mut place = Place::START;
        place.follow(b"id: 1\nretry: 20\ndata: x\r\n\r\n");
        assert_eq!(place.last_id.as_ref().unwrap(), "1");
        assert_eq!(place.retry, Duration::from_millis(20));
        place.follow(b"retry: soon\rid: a\0b\r\r");
        assert_eq!(place.last_id.as_ref().unwrap(), "1");
        assert_eq!(place.retry, Duration::from_millis(20));
        place.follow(b"retry: 99999999999\n\n");
        assert_eq!(place.retry, MAX_RETRY);
    }
}
