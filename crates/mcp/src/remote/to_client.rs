//! Messages for the client, one per line, from any writer.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::{Mutex, MutexGuard};

/// Number of bytes of a long message that are passed at once.
const CHUNK: usize = 64 * 1024;

/// The client's end. Errors while writing mean that the client has gone, which is noticed elsewhere.
#[derive(Debug)]
pub(super) struct ToClient(Mutex<DuplexStream>);

/// A line that is being written, while nobody else writes.
#[derive(Debug)]
pub(super) struct OpenLine<'c>(MutexGuard<'c, DuplexStream>);

impl ToClient {
    pub(super) fn new(client: DuplexStream) -> Self {
        Self(Mutex::new(client))
    }

    /// Writes a message.
    pub(super) async fn line(&self, message: &[u8]) {
        let mut line = self.open().await;
        line.write(message).await;
        line.end().await;
    }

    /// Begins a message.
    pub(super) async fn open(&self) -> OpenLine<'_> {
        OpenLine(self.0.lock().await)
    }

    /// Closes the client's end.
    pub(super) async fn close(&self) {
        _ = self.0.lock().await.shutdown().await;
    }

    /// Writes a message of which `start` has been read, in bounded memory.
    pub(super) async fn line_of(
        &self,
        start: Vec<u8>,
        rest: &mut (impl AsyncRead + Unpin),
    ) -> io::Result<()> {
        let mut line = self.open().await;
        line.write(&start).await;
        drop(start);
        let mut chunk = Vec::with_capacity(CHUNK);
        let passed = loop {
            chunk.clear();
            match rest.read_buf(&mut chunk).await {
                Ok(0) => break Ok(()),
                Ok(_) => line.write(&chunk).await,
                Err(error) => break Err(error),
            }
        };
        line.end().await;
        passed
    }
}

impl OpenLine<'_> {
    /// Writes a part of the message. In JSON, a line break is never a part of a value.
    pub(super) async fn write(&mut self, part: &[u8]) {
        let mut rest = part;
        while let Some(at) = memchr::memchr2(b'\n', b'\r', rest) {
            _ = self.0.write_all(&rest[..at]).await;
            _ = self.0.write_all(b" ").await;
            rest = &rest[at + 1..];
        }
        _ = self.0.write_all(rest).await;
    }

    /// Ends the message.
    pub(super) async fn end(mut self) {
        _ = self.0.write_all(b"\n").await;
    }
}
