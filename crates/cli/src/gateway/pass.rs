//! A request with a conversation on its way to its provider.

use std::sync::{Arc, OnceLock};

use http::request::Parts;
use http::{HeaderName, HeaderValue, Response, header};
use hyper::body::{Body as _, Incoming};
use tokio::time::Instant;

use crate::gateway::body::{Body, Read};
use crate::gateway::metrics::Metric;
use crate::gateway::naming::Group;
use crate::gateway::outcome::{self, Outcome, PassReason};
use crate::gateway::own::Refusal;
use crate::gateway::reducer::{Exchange, Pressure, Purpose};
use crate::gateway::reply::{OnEnd, Refused, examined};
use crate::gateway::send::Payload;
use crate::gateway::service::Service;
use crate::gateway::upstream::Upstream;
use crate::gateway::watch::{AwaitedBill, Look};
use crate::gateway::whose::Client;
use crate::gateway::work::ReceivedRequest;
use crate::usage::ProviderUsage;

/// The place of a call's bill, which is known once a provider has taken the call.
type BillSlot = Arc<OnceLock<AwaitedBill>>;

/// A request on its way. It is counted once, in the form that was answered, or once its client has left.
struct CountedOnce<'p> {
    service: &'p Arc<Service>,
    upstream: &'p Upstream,
    purpose: Purpose,
    begun: Instant,
    /// The form in which it goes on.
    look: Look,
    bill: BillSlot,
    /// True from when it goes on until its figures are taken.
    is_on_its_way: bool,
}

impl CountedOnce<'_> {
    /// Takes the figures of the request. Returns what its bill will be compared with.
    fn called(&mut self) -> Option<AwaitedBill> {
        self.is_on_its_way = false;
        let (service, sizes) = (self.service, self.look.sizes());
        if self.look.sent.is_some() {
            service.count_bytes(sizes);
        }
        if self.purpose != Purpose::Turn {
            return None;
        }
        let begun = self.begun.into_std();
        let bill = service.watch.call(&self.upstream.name, &self.look, begun);
        for (when, bytes) in sizes {
            let labels = bill.whose.labels("when", when);
            service.metrics.add(Metric::SenderBytes, &labels, bytes);
        }
        Some(bill)
    }

    /// Counts the request in the form that got this reply. Says on the reply what was done to the request, and why the
    /// provider's cache held less of it than of the one before.
    fn answered(mut self, mut reply: Response<Body>, refusal: Option<Refused>) -> Response<Body> {
        self.look.is_taken = refusal.is_none() && reply.status().is_success();
        if let Some(bill) = self.called() {
            let value = bill.miss().and_then(|miss| {
                let (kind, part, bytes) = (miss.why.row()[0], miss.part.name(), miss.bytes);
                let text = format!("missed; reason={kind}; part=\"{part}\"; bytes={bytes}");
                HeaderValue::from_str(&text).ok()
            });
            let name = HeaderName::from_static("x-offcut-cache");
            reply.headers_mut().extend(value.map(|value| (name, value)));
            _ = self.bill.set(bill);
        }
        outcome::marked(reply, self.look.outcome)
    }

    /// Sends a request whose body has been read: with the text of `look` in place of its body, or as it came. Who gets
    /// a good answer may read the conversation back.
    async fn send(
        &self,
        request: &ReceivedRequest,
        look: &Look,
    ) -> Result<Response<Body>, Refusal> {
        let mut parts = request.parts.clone();
        if look.text.is_some() {
            // A body that was decoded is not compressed again.
            parts.headers.remove(header::CONTENT_ENCODING);
        }
        let payload = Payload::Whole(look.text.as_ref().unwrap_or(&request.body).clone());
        let reply = self.deliver(parts, payload, look.group).await?;
        if let (Some(credential), Some(conversation)) =
            (&request.client.credential, &look.conversation)
            && reply.status().is_success()
        {
            let readers = &self.service.readers;
            readers.add(credential.clone(), conversation);
        }
        Ok(reply)
    }

    async fn deliver(
        &self,
        parts: Parts,
        payload: Payload,
        group: Option<Group>,
    ) -> Result<Response<Body>, Refusal> {
        let (service, bill) = (self.service, self.bill.clone());
        let on_usage = service.counting(self.upstream, group, bill);
        service
            .sender
            .send(parts, payload, self.upstream, on_usage)
            .await
    }
}

impl Drop for CountedOnce<'_> {
    fn drop(&mut self) {
        let labels = [
            ("upstream", &*self.upstream.name),
            ("outcome", self.look.outcome.name()),
        ];
        self.service.metrics.add(Metric::Requests, &labels, 1);
        if self.is_on_its_way {
            self.called();
        }
    }
}

impl Service {
    /// Takes a request with a conversation to its provider, and its reply back.
    pub(super) async fn pass_conversation(
        self: &Arc<Self>,
        parts: Parts,
        body: Incoming,
        exchange: Exchange,
        upstream: &Upstream,
        client: Client,
        begun: Instant,
    ) -> Result<Response<Body>, Refusal> {
        let counted = |look| CountedOnce {
            service: self,
            upstream,
            purpose: exchange.purpose,
            begun,
            look,
            bill: Arc::default(),
            is_on_its_way: false,
        };
        let announced = body.size_hint().exact();
        let (read, unread) = match client.tenant {
            Some(_) => {
                let max = self.settings.max_body_bytes();
                (self.uploads.read(body, max).await?, PassReason::TooLong)
            }
            // Nothing of it is kept.
            None => (
                Read::TooLong(self.uploads.passed(body)?),
                PassReason::NoTenant,
            ),
        };
        let (body, _room) = match read {
            Read::Whole(body, room) => (body, room),
            Read::TooLong(body) => {
                // A body in chunks does not say its length before.
                let bytes = announced.unwrap_or(0);
                let mut counted = counted(Look::unread(client.whose, bytes).passed(unread));
                self.note(&mut counted.look.outcome)?;
                counted.is_on_its_way = true;
                let reply = counted.deliver(parts, Payload::Stream(body), None).await?;
                return Ok(counted.answered(reply, None));
            }
        };
        let request = ReceivedRequest {
            parts,
            body,
            exchange,
            client,
        };
        let mut counted = counted(self.work(&request, Pressure::Thresholds).await?);
        self.note(&mut counted.look.outcome)?;
        counted.is_on_its_way = true;
        self.metrics.took(begun.elapsed());
        let (reply, refusal) = match counted.send(&request, &counted.look).await {
            Ok(reply) => examined(reply, self.sender.patience).await,
            Err(own) => (*own, None),
        };
        let second = match refusal {
            Some(Refused::TooLong) => self.shortened(&request, &mut counted).await,
            Some(Refused::Otherwise) => self.original(&request, &mut counted).await,
            None => None,
        };
        let refusal = refusal.filter(|_| second.is_none());
        // The bill is that of the reply that goes on: the other one ends before it is known.
        Ok(counted.answered(second.unwrap_or(reply), refusal))
    }

    /// Sends a request whose changes were refused once more, as it came; `None` if it has none, or if that gets no
    /// answer, since the refusal says more than the silence. If the provider takes it, its conversation is left alone
    /// from now on.
    async fn original(
        &self,
        request: &ReceivedRequest,
        counted: &mut CountedOnce<'_>,
    ) -> Option<Response<Body>> {
        counted.look.text.as_ref()?;
        let mut look = Look {
            sent: None,
            text: None,
            outcome: Outcome::default(),
            changes: Vec::new(),
            ..counted.look.clone()
        };
        let reply = counted.send(request, &look).await.ok()?;
        // A refusal of both is not one of the changes.
        if reply.status().is_success() {
            look.outcome = Outcome::Passed(PassReason::Refused);
            look.conversation
                .iter()
                .for_each(|one| self.reducer.leave(one));
            self.metrics.add(Metric::Untouched, &[], 1);
        }
        // Neither outcome is a failure of this server.
        _ = self.note(&mut look.outcome);
        counted.look = look;
        Some(reply)
    }

    /// Sends a request that was refused as too long once more, with all results before its newest round cleared;
    /// `None` if that changes nothing in what was sent, or is refused too. If the provider takes it, it is counted as
    /// recovered.
    async fn shortened(
        self: &Arc<Self>,
        request: &ReceivedRequest,
        counted: &mut CountedOnce<'_>,
    ) -> Option<Response<Body>> {
        if !self.settings.retry_too_long || request.exchange.purpose != Purpose::Turn {
            return None;
        }
        let mut look = self.work(request, Pressure::TooLong).await.ok()?;
        if look.text.is_none() || look.text == counted.look.text {
            return None;
        }
        if look.outcome.reason() != counted.look.outcome.reason() {
            self.note(&mut look.outcome).ok()?;
        }
        let reply = counted.send(request, &look).await.ok()?;
        let (reply, None) = examined(reply, self.sender.patience).await else {
            return None;
        };
        // Another reply says when to try again.
        if reply.status().is_success() {
            look.outcome = Outcome::Recovered;
            look.changes.splice(..0, counted.look.changes.drain(..));
            counted.look = look;
            tracing::info!(
                "the provider took a request that it had refused as too long, with all old results cleared"
            );
        }
        Some(reply)
    }

    /// Counts what a provider bills, for the `group` of a conversation, and what of it was billed before.
    pub(crate) fn counting(
        self: &Arc<Self>,
        upstream: &Upstream,
        group: Option<Group>,
        bill: BillSlot,
    ) -> OnEnd {
        let (service, upstream) = (self.clone(), upstream.name.clone());
        Box::new(move |usage| service.billed(&upstream, group, bill.get(), usage))
    }

    fn billed(
        &self,
        upstream: &str,
        group: Option<Group>,
        bill: Option<&AwaitedBill>,
        usage: ProviderUsage,
    ) {
        let metrics = &self.metrics;
        for (kind, tokens) in [
            ("fresh", usage.fresh),
            ("cached", usage.cached.unwrap_or(0)),
            ("written", usage.written),
        ] {
            if tokens == 0 {
                continue;
            }
            let mut labels = vec![("upstream", upstream), ("kind", kind)];
            labels.extend(group.map(|group| ("group", group.name())));
            metrics.add(Metric::ProviderTokens, &labels, tokens);
            if let Some(bill) = bill {
                let labels = bill.whose.labels("kind", kind);
                metrics.add(Metric::SenderTokens, &labels, tokens);
            }
        }
        let Some(miss) = bill.and_then(|bill| self.watch.state().billed(bill, usage)) else {
            return;
        };
        let (kind, part, bytes) = (miss.why.row()[0], miss.part.name(), miss.bytes);
        tracing::info!(
            upstream,
            kind,
            part,
            bytes,
            "the provider's cache held less of a request than of the one before"
        );
        let labels = [("upstream", upstream), ("reason", kind)];
        metrics.add(Metric::CacheMisses, &labels, 1);
        metrics.add(Metric::CacheMissedBytes, &labels, bytes);
        if usage.cached.is_some() {
            metrics.add(Metric::CacheMissedTokens, &labels, miss.tokens);
        }
    }
}
