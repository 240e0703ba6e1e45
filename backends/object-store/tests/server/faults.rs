//! Faults on the wire.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::{Method, Request, Response, StatusCode};
use s3s::Body;
use s3s::service::S3Service;

use super::bucket::Buckets;

/// The fault that a request meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Answered with this status, not carried out.
    Refuse(u16),
    /// Carried out, then answered with this status.
    ApplyThenRefuse(u16),
    /// Never answered, not carried out.
    Hang,
    /// Carried out, never answered.
    ApplyThenHang,
    /// Connection closed, request not carried out.
    Disconnect,
    /// Carried out, then the connection is closed.
    ApplyThenDisconnect,
    /// Carried out, then the connection is closed in the middle of the answer's body.
    CutBody,
    /// Carried out, answered four seconds later.
    ApplyThenWait,
    /// Just before the request, another writer stores other bytes there.
    StoreOther,
}

impl Fault {
    pub(crate) const ALL: [Self; 12] = [
        Self::Refuse(503),
        Self::ApplyThenRefuse(503),
        Self::Refuse(500),
        Self::ApplyThenRefuse(500),
        Self::Refuse(403),
        Self::Refuse(409),
        Self::Hang,
        Self::ApplyThenHang,
        Self::Disconnect,
        Self::ApplyThenDisconnect,
        Self::CutBody,
        Self::StoreOther,
    ];

    /// Faults that a caller who retries never notices.
    pub(crate) const PASSING: [Self; 7] = [
        Self::Refuse(503),
        Self::ApplyThenRefuse(503),
        Self::Refuse(500),
        Self::ApplyThenRefuse(500),
        Self::Disconnect,
        Self::ApplyThenDisconnect,
        Self::CutBody,
    ];
}

#[derive(Default)]
pub(crate) struct Faults {
    counts: BTreeMap<String, usize>,
    at: BTreeMap<(String, usize), Fault>,
    always: BTreeMap<String, Fault>,
    /// Interval, in requests of a kind, between the faults of [`Fault::PASSING`], in turn. Lists,
    /// which only tests request, are left alone.
    often: Option<usize>,
    /// Number of faults met since the last query.
    pub(crate) met: usize,
}

const ANY: &str = "any";

impl Faults {
    pub(crate) fn at(&mut self, method: &Method, nth: usize, fault: Fault) {
        let place = self.count(method) + nth;
        self.at.insert((method.to_string(), place), fault);
    }

    pub(crate) fn at_any(&mut self, nth: usize, fault: Fault) {
        let place = self.counts.get(ANY).copied().unwrap_or_default() + nth;
        self.at.insert((ANY.into(), place), fault);
    }

    pub(crate) fn always(&mut self, method: &Method, fault: Fault) {
        self.always.insert(method.to_string(), fault);
    }

    pub(crate) fn often(&mut self, requests: usize) {
        self.often = Some(requests);
    }

    pub(crate) fn heal(&mut self) {
        self.at.clear();
        self.always.clear();
    }

    pub(crate) fn count(&self, method: &Method) -> usize {
        self.counts
            .get(method.as_str())
            .copied()
            .unwrap_or_default()
    }

    pub(crate) fn next(&mut self, request: &Request<Incoming>) -> Option<Fault> {
        let method = request.method();
        let mut found = self.always.get(method.as_str()).copied();
        for name in [ANY, method.as_str()] {
            let count = self.counts.entry(name.into()).or_default();
            *count += 1;
            found = self.at.remove(&(name.into(), *count)).or(found);
        }
        let (count, is_list) = (
            self.count(method),
            request
                .uri()
                .query()
                .is_some_and(|query| query.contains("list-type")),
        );
        if let Some(often) = self.often.filter(|often| count % often == 0 && !is_list) {
            found = found.or(Some(Fault::PASSING[count / often % Fault::PASSING.len()]));
        }
        self.met += usize::from(found.is_some());
        found
    }
}

/// Answers `request` with the given fault.
pub(crate) async fn answer(
    fault: Option<Fault>,
    request: Request<Incoming>,
    service: &S3Service,
    buckets: &Buckets,
) -> io::Result<Response<Body>> {
    let lost = || Err(io::Error::from(io::ErrorKind::ConnectionReset));
    if fault == Some(Fault::StoreOther) && request.method() == Method::PUT {
        buckets.store_other(request.uri().path());
    }
    // Reads it to its end, so that a request that is not carried out is at least received, and the
    // connection stays usable.
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let is_applied = !matches!(
        fault,
        Some(Fault::Refuse(_) | Fault::Hang | Fault::Disconnect)
    );
    let answer = match is_applied {
        true => Some(
            service
                .call(Request::from_parts(parts, Body::from(body)))
                .await
                .map_err(|error| io::Error::other(format!("{error:?}")))?,
        ),
        false => None,
    };
    match (fault, answer) {
        (Some(Fault::Refuse(status) | Fault::ApplyThenRefuse(status)), _) => Ok(refusal(status)),
        (Some(Fault::Hang | Fault::ApplyThenHang), _) => {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            lost()
        }
        (Some(Fault::ApplyThenWait), Some(answer)) => {
            tokio::time::sleep(Duration::from_secs(4)).await;
            Ok(answer)
        }
        (Some(Fault::CutBody), Some(answer)) => cut(answer).await,
        (None | Some(Fault::StoreOther), Some(answer)) => Ok(answer),
        _ => lost(),
    }
}

fn refusal(status: u16) -> Response<Body> {
    let code = match status {
        403 => "AccessDenied",
        409 => "ConditionalRequestConflict",
        500 => "InternalError",
        _ => "SlowDown",
    };
    // Repeats what it was sent, as S3 does for a wrong signature.
    let body = format!(
        "<?xml version=\"1.0\"?><Error><Code>{code}</Code><AWSAccessKeyId>{}</AWSAccessKeyId></Error>",
        super::KEY_ID
    );
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

/// Cuts off the answer's body before its announced length.
async fn cut(answer: Response<Body>) -> io::Result<Response<Body>> {
    let (mut parts, body) = answer.into_parts();
    let body: Bytes = body.collect().await.map_err(io::Error::other)?.to_bytes();
    if body.is_empty() {
        return Err(io::Error::from(io::ErrorKind::ConnectionReset));
    }
    parts.headers.insert("content-length", body.len().into());
    let half = body.slice(..body.len() / 2);
    let frames = [
        Ok(Frame::data(half)),
        Err(io::Error::from(io::ErrorKind::ConnectionReset)),
    ];
    Ok(Response::from_parts(
        parts,
        Body::http_body(StreamBody::new(stream::iter(frames))),
    ))
}
