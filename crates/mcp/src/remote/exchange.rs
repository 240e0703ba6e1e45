//! One message of the client, and what the server answers: messages, and streams of them, which are read to their end
//! and resumed where they break.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode};
use http_body::Body as _;
use http_body_util::LengthLimitError;
use hyper::body::Incoming;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::body::{AnswerMessages, Kind, events, kind, whole};
use super::failure::RequestFailure;
use super::link::{Link, Relation};
use super::meaning::{LAST_EVENT_ID, Meaning, SESSION};
use crate::http::events::{StreamChunk, field, lines, message};

/// Time for a new session to be started.
const RENEWAL: Duration = Duration::from_secs(30);
/// Number of times that a lost connection is tried again.
const TRIES: u32 = 5;
/// The time before a try, unless the server names one, and the longest that it can name.
const RETRY: Duration = Duration::from_secs(1);
const MAX_RETRY: Duration = Duration::from_secs(300);
/// The shortest and the longest time between two tries.
const MIN_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// A message of the client on its way to the server.
pub(super) struct MessageExchange {
    pub(super) link: Arc<Link>,
    pub(super) message: Bytes,
    pub(super) meaning: Meaning,
    /// Dropped once the server has answered.
    pub(super) done: Option<oneshot::Sender<()>>,
}

impl MessageExchange {
    /// Sends the message, and passes what the server answers to the client.
    pub(super) async fn run(mut self) {
        let passed = match self.send().await {
            Ok(response) => self.answered(response).await,
            Err(failure) => Err(failure),
        };
        if let Err(failure) = passed {
            self.link.failed(&failure, &self.meaning).await;
        }
    }

    /// Sends the message; a second time if the session had ended and a new one could be started.
    async fn send(&self) -> Result<Response<Incoming>, RequestFailure> {
        let (headers, nth) = self.link.head(&self.meaning);
        match self.link.post(&headers, &self.message).await {
            Err(failure) if headers.contains_key(SESSION) && failure.is_session_lost() => {
                renew(&self.link, nth).await?;
                let (headers, _) = self.link.head(&self.meaning);
                self.link.post(&headers, &self.message).await
            }
            sent => sent,
        }
    }

    /// Passes an answer to the client.
    async fn answered(&mut self, response: Response<Incoming>) -> Result<(), RequestFailure> {
        let link = &self.link;
        if self.meaning.is("initialize") {
            link.session().started(response.headers(), &self.message);
        } else if self.meaning.is("notifications/initialized") {
            link.opened(&self.message);
        }
        match kind(response.headers()) {
            // Whatever it is, nobody waits for it.
            Kind::Json if self.meaning.wants_no_answer() => Ok(()),
            Kind::Json => self.whole(response.into_body()).await,
            Kind::Events => self.follow(response.into_body()).await,
            // The answer may come on another stream.
            Kind::Other if response.status() == StatusCode::ACCEPTED => Ok(()),
            Kind::Other if response.body().is_end_stream() || self.meaning.request().is_none() => {
                Ok(())
            }
            Kind::Other => Err(RequestFailure::NoMessage),
        }
    }

    /// Passes an answer of one message.
    async fn whole(&self, body: Incoming) -> Result<(), RequestFailure> {
        let link = &self.link;
        let body = whole(body, link.gateway.max_message).await;
        let message = Vec::from(body.map_err(|error| {
            if error.is::<LengthLimitError>() {
                link.too_long()
            } else {
                RequestFailure::BrokeOff
            }
        })?);
        let relation = link.learn(&message, &self.meaning);
        // A list may hold the answer. In place of anything else, nothing else comes.
        let may_hold_it = message.trim_ascii_start().starts_with(b"[");
        if self.meaning.request_id().is_some() && relation == Relation::Stray && !may_hold_it {
            return Err(RequestFailure::in_place_of_answer(&message));
        }
        link.pass(message, relation, &self.meaning).await;
        Ok(())
    }

    /// Passes the messages of an answer to the client. If the stream ends before the answer, it is taken
    /// up again after the last event that had an id.
    async fn follow(&mut self, mut body: Incoming) -> Result<(), RequestFailure> {
        let link = self.link.clone();
        let mut place = Place::START;
        let mut is_answered = self.meaning.request_id().is_none();
        loop {
            let mut events = events(body, link.gateway.max_message);
            // A stream that breaks has ended.
            while let Ok(Some(chunk)) = events.next().await {
                // It may be the answer.
                if chunk == StreamChunk::TooLong && !is_answered {
                    return Err(link.too_long());
                }
                if pass(&link, &mut place, chunk, &self.meaning).await {
                    is_answered = true;
                    self.done = None;
                }
            }
            if is_answered {
                return Ok(());
            }
            if place.last_id.is_none() {
                return Err(RequestFailure::BrokeOff);
            }
            body = place.resume(&link, TRIES).await?;
        }
    }
}

/// Starts a new session in place of the `nth`, unless that has been done.
async fn renew(link: &Link, nth: u64) -> Result<(), RequestFailure> {
    let _one = link.renewing.lock().await;
    let (opening, opened) = {
        let session = link.session();
        if session.nth != nth {
            return Ok(());
        }
        (session.opening.clone(), session.opened.clone())
    };
    link.note("the session has ended; starting a new one");
    let started = async {
        let meaning = Meaning::read(&opening);
        let response = link.post(&link.head(&meaning).0, &opening).await?;
        link.session().started(response.headers(), &opening);
        let mut messages = AnswerMessages::new(response, link.gateway.max_message);
        let mut relation = Relation::Other;
        while relation != Relation::Result {
            let message = messages.next().await.ok_or(RequestFailure::NoMessage)?;
            relation = link.learn(&message, &meaning);
        }
        if let Some(opened) = opened {
            link.post(&link.head(&Meaning::read(&opened)).0, &opened)
                .await?;
            link.opened(&opened);
        }
        Ok(())
    };
    let started = timeout(RENEWAL, started).await;
    started.unwrap_or(Err(RequestFailure::BrokeOff))
}

/// Passes the messages that a server sends outside of answers, for as long as it has a stream for them.
pub(super) async fn listen(link: &Link) {
    let mut place = Place::START;
    let mut opened = place.reopen(link).await;
    loop {
        match opened {
            Ok(body) => {
                let mut events = events(body, link.gateway.max_message);
                while let Ok(Some(chunk)) = events.next().await {
                    pass(link, &mut place, chunk, &Meaning::default()).await;
                }
            }
            Err(failure) if failure.may_pass() => {}
            // The server has no such stream, or the session has ended.
            Err(_) => return,
        }
        opened = place.resume(link, u32::MAX).await;
    }
}

/// Passes a piece of a stream. Returns true if it ends the answer to the request that `meaning` is of.
async fn pass(link: &Link, place: &mut Place, chunk: StreamChunk, meaning: &Meaning) -> bool {
    let event = match chunk {
        StreamChunk::Event(event) => event,
        StreamChunk::TooLong => {
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

    /// Takes up the stream that has broken here.
    async fn resume(&self, link: &Link, tries: u32) -> Result<Incoming, RequestFailure> {
        let mut pause = self.retry;
        for _ in 1..tries {
            sleep(pause.max(MIN_PAUSE)).await;
            match self.reopen(link).await {
                Err(failure) if failure.may_pass() => pause = (pause * 2).min(MAX_PAUSE),
                opened => return opened,
            }
        }
        self.reopen(link).await
    }

    /// Opens the server's stream of messages at this place.
    async fn reopen(&self, link: &Link) -> Result<Incoming, RequestFailure> {
        let (mut headers, _) = link.head(&Meaning::default());
        if let Some(id) = &self.last_id {
            headers.insert(LAST_EVENT_ID, id.clone());
        }
        let response = link.request(&Method::GET, &headers, &Bytes::new()).await?;
        match kind(response.headers()) {
            Kind::Events => Ok(response.into_body()),
            _ => Err(RequestFailure::NoMessage),
        }
    }

    /// Goes on after an event.
    fn follow(&mut self, event: &[u8]) {
        for line in lines(event) {
            match field(line) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_that_of_the_last_id_and_nonsense_is_ignored() {
        let mut place = Place::START;
        place.follow(b"id: 1\nretry: 20\ndata: x\r\n\r\n");
        assert_eq!(place.last_id.as_ref().unwrap(), "1");
        assert_eq!(place.retry, Duration::from_millis(20));
        place.follow(b"retry: soon\nid: a\0b\n\n");
        assert_eq!(place.last_id.as_ref().unwrap(), "1");
        assert_eq!(place.retry, Duration::from_millis(20));
        place.follow(b"retry: 99999999999\n\n");
        assert_eq!(place.retry, MAX_RETRY);
    }
}
