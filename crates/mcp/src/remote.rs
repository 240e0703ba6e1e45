//! A server over streamable HTTP.

pub(crate) mod address;
pub(crate) mod body;
pub(crate) mod connection;
mod exchange;
pub(crate) mod failure;
mod link;
pub(crate) mod meaning;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::try_join3;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

pub use address::RemoteError;
pub use connection::Remote;

use crate::gateway::lines::{Line, Lines};
use crate::gateway::{Conversation, run};
use exchange::MessageExchange;
use link::Link;
use meaning::Meaning;

/// Number of bytes between the client's pipes and the requests.
const PIPE: usize = 64 * 1024;
/// Time for a session to start before the next message is sent.
const START: Duration = Duration::from_secs(60);
/// Time for an answer before the next message is sent, where the order of messages counts.
const ORDER: Duration = Duration::from_secs(5);
/// Time for the server to be told that the session has ended.
const FAREWELL: Duration = Duration::from_secs(2);

impl Remote {
    /// Carries the messages between a `client`, a reader and a writer with one line a message, and the
    /// server. Returns once the client has closed its end and has the last answers, or once `stop`
    /// is ready.
    ///
    /// # Errors
    ///
    /// The client is gone.
    pub async fn run(
        self,
        conversation: &Conversation,
        client: (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let (to_server, from_client) = duplex(PIPE);
        let (mut to_client, from_server) = duplex(PIPE);
        let (sender, mut lines) = mpsc::channel::<Vec<u8>>(1);
        let link = Arc::new(Link::new(self, sender, conversation.gateway.clone()));
        // Answers are waited for there.
        let passed = run(conversation, client, (from_server, to_server));
        let carried = async {
            carry(link.clone(), from_client).await;
            link.close_client();
            Ok(())
        };
        // An exchange may end at any time, and a line is written to its end.
        let written = async move {
            while let Some(line) = lines.recv().await {
                to_client.write_all(&line).await?;
            }
            Ok(())
        };
        let done = tokio::select! {
            done = try_join3(passed, carried, written) => done.map(|_| ()),
            () = stop => Ok(()),
        };
        _ = timeout(FAREWELL, link.close()).await;
        done
    }
}

/// Sends the client's messages to the server until the client needs nothing more.
async fn carry(link: Arc<Link>, from_client: DuplexStream) {
    let mut lines = Lines::new(from_client, usize::MAX);
    let mut running = JoinSet::new();
    running.spawn(listen(link.clone()));
    loop {
        let line = tokio::select! {
            biased;
            Some(_) = running.join_next() => continue,
            line = lines.next() => line,
        };
        // Longer ones have been refused.
        let Ok(Some(Line::Whole(line))) = line else {
            return;
        };
        let message = line.trim_ascii();
        if message.is_empty() {
            continue;
        }
        let meaning = Meaning::read(message);
        let cancelled = meaning.cancels.as_deref();
        if cancelled.is_some_and(|key| link.cancel(key, &meaning)) {
            continue;
        }
        let patience = patience(&meaning);
        let key = meaning.request_key().map(str::to_owned);
        let (done, finished) = oneshot::channel();
        let exchange = MessageExchange {
            link: link.clone(),
            message: Bytes::copy_from_slice(message),
            meaning,
            done: Some(done),
        };
        let exchange = running.spawn(exchange.run());
        if let Some(key) = key {
            link.begun(key, exchange);
        }
        if let Some(patience) = patience {
            _ = timeout(patience, finished).await;
        }
    }
}

/// The time that the next message waits for the answer to this one. Answers to calls are not waited
/// for; connections are, since they don't keep messages in order.
fn patience(meaning: &Meaning) -> Option<Duration> {
    match meaning.method.as_deref() {
        _ if meaning.request().is_none() => Some(ORDER),
        Some("initialize") => Some(START),
        _ => None,
    }
}

/// Listens to the open session's messages outside of answers.
async fn listen(link: Arc<Link>) {
    let mut open = link.open.subscribe();
    _ = open.wait_for(|nth| *nth > 0).await;
    loop {
        tokio::select! {
            () = exchange::listen(&link) => { _ = open.changed().await; }
            _ = open.changed() => {}
        }
    }
}
