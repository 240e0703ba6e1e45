//! A conversation over pipes, a message a line.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Mutex, mpsc};

use super::conversation::{Conversation, FromClient, FromServer};
use super::lines::{Lines, Piece};

/// The two ends of a pipe pair.
type Ends<R, W> = (R, W);

/// Carries the messages between a `client` and a `server`, a reader and a writer each, one line a
/// message. Returns once the server has closed its end. When the client closes its own, the
/// server's is closed, and the server's last messages still pass.
///
/// Lines that are not JSON pass as they are. One that is longer than the gateway's maximum passes
/// unread, in bounded memory, and the log says so.
///
/// # Errors
///
/// The client is gone, or the server's output can't be read. A server that no longer reads is not an
/// error: its last messages still pass.
pub async fn run(
    conversation: &Conversation,
    client: Ends<impl AsyncRead + Unpin, impl AsyncWrite + Unpin>,
    server: Ends<impl AsyncRead + Unpin, impl AsyncWrite + Unpin>,
) -> io::Result<()> {
    let (to_client, is_over) = (Mutex::new(client.1), AtomicBool::new(false));
    let (own, requests) = mpsc::unbounded_channel();
    let up = pass_up(
        conversation,
        client.0,
        server.1,
        &to_client,
        requests,
        &is_over,
    );
    let down = pass_down(conversation, server.0, &to_client, own);
    tokio::pin!(up, down);
    tokio::select! {
        biased;
        passed = &mut down => {
            passed?;
            // The client has sent its last message, and may still wait for the reader.
            if is_over.load(Ordering::Relaxed) { up.await } else { Ok(()) }
        }
        passed = &mut up => {
            passed?;
            down.await
        }
    }
}

/// Passes the client's messages to the server, and answers those for the reader.
async fn pass_up(
    conversation: &Conversation,
    client: impl AsyncRead + Unpin,
    mut server: impl AsyncWrite + Unpin,
    to_client: &Mutex<impl AsyncWrite + Unpin>,
    mut requests: mpsc::UnboundedReceiver<String>,
    is_over: &AtomicBool,
) -> io::Result<()> {
    let mut lines = Lines::new(client, conversation.max_message());
    let mut answers = FuturesUnordered::new();
    let answer = async |asked| match conversation.answer(asked).await {
        Some(answer) => write(&mut *to_client.lock().await, &[answer.as_bytes(), b"\n"]).await,
        None => Ok(()),
    };
    // True until the server no longer reads.
    let mut is_read = true;
    // True between the parts of a long line, where no request of the gateway's own may come.
    let mut is_in_line = false;
    loop {
        let piece = tokio::select! {
            Some(answered) = answers.next() => {
                answered?;
                continue;
            }
            Some(own) = requests.recv(), if !is_in_line => {
                is_read = is_read && write(&mut server, &[own.as_bytes(), b"\n"]).await.is_ok();
                continue;
            }
            piece = lines.next() => piece,
        };
        // A client whose end can't be read has gone.
        let Ok(Some(piece)) = piece else { break };
        let passed = match piece {
            Piece::Line(line) => match conversation.from_client(line) {
                FromClient::Pass { first: Some(first) } => {
                    write(&mut server, &[first.as_bytes(), b"\n", line]).await
                }
                FromClient::Pass { first: None } => write(&mut server, &[line]).await,
                FromClient::Answer(asked) => {
                    answers.push(answer(asked));
                    Ok(())
                }
                FromClient::Drop => Ok(()),
            },
            Piece::Part {
                bytes,
                is_first,
                is_last,
            } => {
                is_in_line = !is_last;
                if is_first {
                    conversation.gateway().note_long("the client");
                }
                write(&mut server, &[bytes]).await
            }
        };
        is_read = is_read && passed.is_ok();
        if !is_read {
            break;
        }
    }
    is_over.store(true, Ordering::Relaxed);
    drop(server);
    while let Some(answered) = answers.next().await {
        answered?;
    }
    Ok(())
}

/// Passes the server's messages to the client, and requests of the gateway's own to `own`.
async fn pass_down(
    conversation: &Conversation,
    server: impl AsyncRead + Unpin,
    to_client: &Mutex<impl AsyncWrite + Unpin>,
    own: mpsc::UnboundedSender<String>,
) -> io::Result<()> {
    let mut lines = Lines::new(server, conversation.max_message());
    // Held from the first part of a long line to its last, since nothing may come between.
    let mut held = None;
    while let Some(piece) = lines.next().await? {
        match piece {
            Piece::Line(line) => {
                let decided = conversation.from_server(line).await;
                match decided {
                    FromServer::Pass => write(&mut *to_client.lock().await, &[line]).await?,
                    FromServer::Replace(new) => {
                        write(&mut *to_client.lock().await, &[new.as_bytes()]).await?;
                    }
                    FromServer::Own(next) => {
                        // Without a client nobody needs the list.
                        next.map(|next| own.send(next));
                    }
                }
            }
            Piece::Part {
                bytes,
                is_first,
                is_last,
            } => {
                if is_first {
                    conversation.gateway().note_long("the server");
                }
                let client = match &mut held {
                    Some(client) => client,
                    None => held.insert(to_client.lock().await),
                };
                write(&mut **client, &[bytes]).await?;
                if is_last {
                    held = None;
                }
            }
        }
    }
    Ok(())
}

async fn write(to: &mut (impl AsyncWrite + Unpin), pieces: &[&[u8]]) -> io::Result<()> {
    for piece in pieces {
        to.write_all(piece).await?;
    }
    to.flush().await
}
