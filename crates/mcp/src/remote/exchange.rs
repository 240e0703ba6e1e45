//! One message of the client, and what the server answers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use http_body::Body as _;
use http_body_util::LengthLimitError;
use hyper::body::Incoming;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::body::{Kind, kind, whole};
use super::failure::RequestFailure;
use super::link::{Cancel, Link, Relation};
use super::meaning::Meaning;
use super::session::SESSION;
use super::stream;
use crate::gateway::message::BYTE_ORDER_MARK;

/// Time for a new session to be started.
const RENEWAL: Duration = Duration::from_secs(30);

/// A message of the client on its way to the server.
#[derive(Debug)]
pub(super) struct MessageExchange {
    pub(super) message: Bytes,
    pub(super) meaning: Meaning,
    pub(super) cancel: Arc<Cancel>,
    /// Dropped once the server has answered.
    pub(super) done: Option<oneshot::Sender<()>>,
}

impl MessageExchange {
    /// Sends the message, and passes what the server answers to the client.
    pub(super) async fn run(mut self, link: Arc<Link>) {
        let cancel = self.cancel.clone();
        let sent = tokio::select! {
            biased;
            () = cancel.now.notified() => None,
            sent = self.send(&link) => Some(sent),
        };
        let passed = match sent {
            None => Ok(()),
            Some(Ok(response)) => self.answered(&link, response).await,
            Some(Err(failure)) => Err(failure),
        };
        if let Err(failure) = passed {
            link.failed(&failure, &self.meaning).await;
        }
        link.ended(&self.meaning, &cancel);
    }

    /// Sends the message; a second time if the session had ended and a new one could be started.
    async fn send(&self, link: &Arc<Link>) -> Result<Response<Incoming>, RequestFailure> {
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
    pub(super) async fn answered(
        &mut self,
        link: &Arc<Link>,
        response: Response<Incoming>,
    ) -> Result<(), RequestFailure> {
        if self.meaning.is("initialize") {
            link.session().started(response.headers(), &self.message);
        } else if self.meaning.is("notifications/initialized") {
            link.opened(&self.message);
        }
        match kind(response.headers()) {
            // Whatever it is, nobody waits for it.
            Kind::Json if self.meaning.wants_no_answer() => Ok(()),
            Kind::Json => self.whole(link, response.into_body()).await,
            Kind::Events => {
                let of = (&self.meaning, &*self.cancel);
                stream::follow(link, response, of, &mut self.done).await
            }
            // The answer may come on another stream.
            Kind::Other if response.status() == StatusCode::ACCEPTED => Ok(()),
            Kind::Other if response.body().is_end_stream() => Ok(()),
            Kind::Other if self.meaning.request_id().is_some() => Err(RequestFailure::NoMessage),
            Kind::Other => Ok(()),
        }
    }

    /// Passes an answer of one message.
    async fn whole(&self, link: &Link, body: Incoming) -> Result<(), RequestFailure> {
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
        if !stream::is_welcome(link, response, &meaning).await {
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
