//! A conversation over pipes, a message a line.

use std::borrow::Cow;
use std::future::ready;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, try_join};
use futures_util::stream::{self, TryStreamExt};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufWriter};
use tokio::sync::{Mutex, Notify, mpsc};
use tokio::time::timeout;

use super::conversation::{Conversation, FromClient, FromServer};
use super::lines::{Line, Lines};
use super::message::{BYTE_ORDER_MARK, Party};

/// Time for the answers that a client may still want after its last message.
pub(crate) const LAST_ANSWERS: Duration = Duration::from_secs(60);

/// Carries the messages between a `client` and a `server`, a reader and a writer each, one line a
/// message. Returns once the server has closed its end. When the client closes its own, the
/// server's is closed once it has answered all requests, or after a minute, and the server's last messages still
/// pass. A runtime with time is needed for that.
///
/// Lines that are not JSON pass as they are. For a message that is longer than the gateway's maximum, whoever
/// waits gets an error.
///
/// # Errors
///
/// The client is gone, or the server's output can't be read. A server that no longer reads is not an
/// error: its last messages still pass.
pub async fn run(
    conversation: &Conversation,
    client: (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
    server: (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
) -> io::Result<()> {
    let to_client = Mutex::new(BufWriter::with_capacity(BATCH, client.1));
    let end = ClientEnd {
        is_client_over: AtomicBool::new(false),
        answered: Notify::new(),
    };
    let (refused, errors) = mpsc::unbounded_channel();
    let (asked, to_answer) = mpsc::unbounded_channel();
    let passed_up = async {
        // The last messages of a server that no longer reads still pass.
        _ = pass_up(conversation, client.0, server.1, asked, errors, &end).await;
        end.is_client_over.store(true, Ordering::Relaxed);
        Ok(())
    };
    // A server that does not read until the client has read must not keep the client's answers waiting.
    let up = try_join(passed_up, answer(&to_client, to_answer));
    let down = pass_down(conversation, server.0, &to_client, refused, &end);
    tokio::pin!(up, down);
    tokio::select! {
        biased;
        passed = &mut down => {
            passed?;
            // The client has sent its last message, and may still wait for the reader.
            if end.is_client_over.load(Ordering::Relaxed) { up.await?; }
            Ok(())
        }
        passed = &mut up => {
            passed?;
            down.await
        }
    }
}

/// An answer to a message that the server does not see.
type Answer = BoxFuture<'static, String>;

/// The end of the client's messages.
#[derive(Debug)]
struct ClientEnd {
    is_client_over: AtomicBool,
    /// Wakes the one who waits for the server's last answers.
    answered: Notify,
}

/// Passes the client's messages to the server, and those that it does not see to `to_answer`.
///
/// # Errors
///
/// The server no longer reads.
async fn pass_up(
    conversation: &Conversation,
    client: impl AsyncRead + Unpin,
    server: impl AsyncWrite + Unpin,
    to_answer: mpsc::UnboundedSender<Answer>,
    mut errors: mpsc::UnboundedReceiver<String>,
    end: &ClientEnd,
) -> io::Result<()> {
    let mut lines = Lines::new(client, conversation.gateway.max_message);
    let mut server = BufWriter::with_capacity(BATCH, server);
    loop {
        let line = tokio::select! {
            error = errors.recv() => {
                // The server is over.
                let Some(error) = error else { return Ok(()) };
                write_line(&mut server, &error).await?;
                server.flush().await?;
                continue;
            }
            line = lines.next() => line,
        };
        // A client whose end can't be read has gone.
        let Ok(Some(line)) = line else { break };
        match line {
            Line::Whole(line) => match conversation.from_client(line) {
                FromClient::Pass { first } => {
                    if let Some(first) = first {
                        write_line(&mut server, &first).await?;
                    }
                    server.write_all(line).await?;
                }
                // Once answers can't be written, all ends.
                FromClient::Answer(answer) => _ = to_answer.send(answer),
            },
            Line::TooLong(line) => match conversation.give_up(line, Party::Client) {
                Some((Party::Client, error)) => _ = to_answer.send(ready(error).boxed()),
                Some((Party::Server, error)) => write_line(&mut server, &error).await?,
                None => {}
            },
        }
        server.flush().await?;
    }
    end.is_client_over.store(true, Ordering::Relaxed);
    let answered = async {
        while conversation.is_waiting() {
            end.answered.notified().await;
        }
    };
    tokio::select! {
        _ = timeout(LAST_ANSWERS, answered) => {}
        // The server is over.
        () = async { while errors.recv().await.is_some() {} } => {}
    }
    Ok(())
}

/// Sends answers to messages that the server does not see, several at once.
async fn answer(
    to_client: &Mutex<impl AsyncWrite + Unpin>,
    mut answers: mpsc::UnboundedReceiver<Answer>,
) -> io::Result<()> {
    let answers = stream::poll_fn(|context| answers.poll_recv(context).map(|next| next.map(Ok)));
    let answered = answers.try_for_each_concurrent(None, async |answer| {
        let answer = answer.await;
        let mut client = to_client.lock().await;
        write_line(&mut *client, &answer).await?;
        client.flush().await
    });
    answered.await
}

/// Passes the server's messages to the client, and errors for the server to `errors`.
async fn pass_down(
    conversation: &Conversation,
    server: impl AsyncRead + Unpin,
    to_client: &Mutex<impl AsyncWrite + Unpin>,
    errors: mpsc::UnboundedSender<String>,
    end: &ClientEnd,
) -> io::Result<()> {
    let mut lines = Lines::new(server, conversation.gateway.max_message);
    while let Some(line) = lines.next().await? {
        let shown = match line {
            Line::Whole(line) => {
                // Few clients would take it for a part of JSON.
                let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
                match conversation.from_server(line).await {
                    FromServer::Pass => Cow::Borrowed(line),
                    FromServer::Replace(new) => Cow::Owned(new.into_bytes()),
                    FromServer::Own => Cow::default(),
                }
            }
            Line::TooLong(line) => match conversation.give_up(line, Party::Server) {
                Some((Party::Client, error)) => Cow::Owned((error + "\n").into_bytes()),
                Some((Party::Server, error)) => {
                    _ = errors.send(error);
                    Cow::default()
                }
                None => Cow::default(),
            },
        };
        let mut client = to_client.lock().await;
        client.write_all(&shown).await?;
        client.flush().await?;
        end.answered.notify_one();
    }
    Ok(())
}

/// Number of bytes that are written at once.
const BATCH: usize = 64 * 1024;

async fn write_line(to: &mut (impl AsyncWrite + Unpin), message: &str) -> io::Result<()> {
    to.write_all(message.as_bytes()).await?;
    to.write_all(b"\n").await
}
