//! One message of the client, and what the server answers: messages, and streams of them, which are read to their end
//! and resumed where they break.

use std::sync::Arc;
use std::sync::atomic::Ordering;
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
use super::link::{Cancel, Link, Relation};
use super::meaning::{LAST_EVENT_ID, Meaning, SESSION};
use crate::gateway::message::BYTE_ORDER_MARK;
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
    pub(super) cancel: Arc<Cancel>,
    /// Dropped once the server has answered.
    pub(super) done: Option<oneshot::Sender<()>>,
}

impl MessageExchange {
    /// Sends the message, and passes what the server answers to the client.
    pub(super) async fn run(mut self) {
        let (link, cancel) = (self.link.clone(), self.cancel.clone());
        let passed = match cancel.unless_ended(self.send()).await {
            None => Ok(()),
            Some(Ok(response)) => self.answered(response).await,
            Some(Err(failure)) => Err(failure),
        };
        if let Err(failure) = passed {
            link.failed(&failure, &self.meaning).await;
        }
        link.ended(&self.meaning, &cancel);
    }

    /// Sends the message; a second time if the session had ended and a new one could be started.
    async fn send(&self) -> Result<Response<Incoming>, RequestFailure> {
        let link = &self.link;
        let mut is_renewed = false;
        loop {
            let (headers, nth) = link.head(&self.meaning);
            let has_session = headers.contains_key(SESSION);
            let sent = link.connection.send(&Method::POST, &headers, &self.message);
            let response = sent.await?;
            if response.status().is_success() {
                let mut session = link.session();
                session.has_worked |= session.nth == nth;
                return Ok(response);
            }
            let failure = RequestFailure::read(response).await;
            let has_worked = link.session().has_worked;
            if is_renewed || !has_session || !failure.is_session_lost(has_worked) {
                return Err(failure);
            }
            renew(link, nth).await.map_err(|error| match error {
                Some(error) => RequestFailure::NoSession(error.to_string()),
                None => failure,
            })?;
            is_renewed = true;
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
            Kind::Other if response.body().is_end_stream() => Ok(()),
            Kind::Other if self.meaning.request_id().is_some() => Err(RequestFailure::NoMessage),
            Kind::Other => Ok(()),
        }
    }

    /// Passes an answer of one message.
    async fn whole(&self, body: Incoming) -> Result<(), RequestFailure> {
        let link = &self.link;
        let body = whole(body, link.gateway.max_message).await;
        let mut message = Vec::from(body.map_err(|error| {
            if error.is::<LengthLimitError>() {
                link.too_long()
            } else {
                RequestFailure::BrokeOff
            }
        })?);
        if message.starts_with(BYTE_ORDER_MARK) {
            message.drain(..BYTE_ORDER_MARK.len());
        }
        let first = message.trim_ascii_start().first();
        let is_object = matches!(first, Some(b'{' | b'['));
        let is_request = self.meaning.request_id().is_some();
        if is_object || !is_request && !message.trim_ascii().is_empty() {
            let relation = link.learn(&message, &self.meaning);
            // A list may hold the answer. In place of an object, nothing else comes.
            if is_request && relation == Relation::Stray && first == Some(&b'{') {
                return Err(RequestFailure::in_place_of_answer(&message));
            }
            link.pass(message, relation, &self.meaning).await;
        } else if is_request {
            return Err(RequestFailure::NoMessage);
        }
        Ok(())
    }

    /// Passes the messages of an answer to the client. If the stream ends before the answer, it is taken
    /// up again after the last event that had an id.
    async fn follow(&mut self, mut body: Incoming) -> Result<(), RequestFailure> {
        let (link, cancel) = (self.link.clone(), self.cancel.clone());
        let mut place = Place::START;
        let mut is_answered = self.meaning.request_id().is_none();
        let mut last_said = link.last_said.subscribe();
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
                // It may be the answer.
                if chunk == StreamChunk::TooLong && !is_answered {
                    return Err(link.too_long());
                }
                if pass(&link, &mut place, chunk, &self.meaning).await {
                    is_answered = true;
                    self.done = None;
                }
            }
            if is_answered || cancel.is_over.load(Ordering::Relaxed) {
                return Ok(());
            }
            body = match cancel.unless_ended(place.resume(&link)).await {
                Some(resumed) => resumed?,
                None => return Ok(()),
            };
        }
    }
}

/// Starts a new session in place of the `nth`, unless that has been done. Fails without an error if
/// the client's `initialize` is unknown.
async fn renew(link: &Arc<Link>, nth: u64) -> Result<(), Option<RequestFailure>> {
    let _one = link.renewing.lock().await;
    let (opening, opened) = {
        let session = link.session();
        if session.nth != nth {
            return Ok(());
        }
        (session.opening.clone().ok_or(None)?, session.opened.clone())
    };
    link.note("the session has ended; starting a new one");
    let meaning = link.read(&opening);
    let started = async {
        let response = post(link, &opening).await?;
        link.session().started(response.headers(), &opening);
        if !is_welcome(link, response, &meaning).await {
            return Err(RequestFailure::NoMessage);
        }
        if let Some(opened) = opened {
            post(link, &opened).await?;
            link.opened(&opened);
        }
        Ok(())
    };
    let started = timeout(RENEWAL, started).await;
    started
        .unwrap_or(Err(RequestFailure::BrokeOff))
        .map_err(Some)
}

/// Sends a message of the client's again.
async fn post(link: &Link, message: &Bytes) -> Result<Response<Incoming>, RequestFailure> {
    let (headers, _) = link.head(&link.read(message));
    let sent = link.connection.send(&Method::POST, &headers, message);
    RequestFailure::unless_success(sent.await?)
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
    async fn resume(&self, link: &Link) -> Result<Incoming, RequestFailure> {
        let id = self.last_id.as_ref().ok_or(RequestFailure::BrokeOff)?;
        let mut pause = self.retry;
        for _ in 0..TRIES {
            sleep(pause.max(MIN_PAUSE)).await;
            match reopen(link, Some(id)).await {
                Err(failure) if failure.may_pass() => pause = (pause * 2).min(MAX_PAUSE),
                opened => return opened,
            }
        }
        Err(RequestFailure::BrokeOff)
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
async fn is_welcome(link: &Link, response: Response<Incoming>, meaning: &Meaning) -> bool {
    let mut messages = AnswerMessages::new(response, link.gateway.max_message);
    while let Some(message) = messages.next().await {
        let relation = link.learn(&message, meaning);
        match relation {
            Relation::Result => return true,
            Relation::Error => return false,
            Relation::Other | Relation::Stray => link.pass(message, relation, meaning).await,
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
        place.follow(b"retry: soon\nid: a\0b\n\n");
        assert_eq!(place.last_id.as_ref().unwrap(), "1");
        assert_eq!(place.retry, Duration::from_millis(20));
        place.follow(b"retry: 99999999999\n\n");
        assert_eq!(place.retry, MAX_RETRY);
    }
}
