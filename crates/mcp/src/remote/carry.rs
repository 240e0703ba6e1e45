//! The messages of a client, a line each, on their way to a server over HTTP.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::DuplexStream;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::exchange::MessageExchange;
use super::link::{Cancel, Link};
use super::meaning::Meaning;
use super::stream;
use crate::gateway::LAST_ANSWERS;
use crate::gateway::lines::{Line, Lines};

/// Time for a session to start before the next message is sent.
const START: Duration = Duration::from_secs(60);
/// Time for an answer before the next message is sent, where the order of messages counts.
const ORDER: Duration = Duration::from_secs(5);

/// Sends the client's messages to the server until the client has sent its last one and has its answers.
pub(super) async fn carry(link: Arc<Link>, from_client: DuplexStream) {
    let mut lines = Lines::new(from_client, usize::MAX);
    let mut running = JoinSet::new();
    // Streams that a server keeps open for as long as it likes.
    let mut streams = JoinSet::new();
    streams.spawn(listen(link.clone()));
    loop {
        let line = tokio::select! {
            biased;
            Some(_) = running.join_next() => continue,
            line = lines.next() => line,
        };
        // Longer ones have been refused.
        let Ok(Some(Line::Whole(line))) = line else {
            break;
        };
        let message = line.trim_ascii();
        if message.is_empty() {
            continue;
        }
        let meaning = link.read(message);
        let cancelled = meaning.cancels.as_deref();
        if cancelled.is_some_and(|key| link.cancel(key, &meaning)) {
            continue;
        }
        let patience = patience(&meaning);
        let is_endless = meaning.is("subscriptions/listen");
        let (done, finished) = oneshot::channel();
        let exchange = MessageExchange {
            message: Bytes::copy_from_slice(message),
            meaning,
            cancel: Arc::new(Cancel::default()),
            done: Some(done),
        };
        link.begun(&exchange.meaning, &exchange.cancel);
        let set = if is_endless {
            &mut streams
        } else {
            &mut running
        };
        set.spawn(exchange.run(link.clone()));
        if let Some(patience) = patience {
            _ = timeout(patience, finished).await;
        }
    }
    link.last_said.send_replace(true);
    let answers = async { while running.join_next().await.is_some() {} };
    _ = timeout(LAST_ANSWERS, answers).await;
}

/// The time that the next message waits for the answer to this one. Answers to calls are not waited
/// for; connections are, since they don't keep messages in order.
fn patience(meaning: &Meaning) -> Option<Duration> {
    match meaning.method.as_deref() {
        _ if meaning.request().is_none() => Some(ORDER),
        Some("initialize") => Some(START),
        // Headers of calls depend on it.
        Some("tools/list") => Some(ORDER),
        _ => None,
    }
}

/// Listens to the open session's messages outside of answers.
async fn listen(link: Arc<Link>) {
    let mut open = link.open.subscribe();
    _ = open.wait_for(|nth| *nth > 0).await;
    loop {
        tokio::select! {
            () = stream::listen(&link) => { _ = open.changed().await; }
            _ = open.changed() => {}
        }
    }
}
