//! The readers of server-sent events, for the fuzz targets.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::{collections::VecDeque, io};

use tokio::io::{AsyncRead, ReadBuf};

use crate::endpoint::events::{self as raw, RawEvents, StreamChunk};
use crate::remote::events::{Data, Events, Place};

/// The message of an event, if it has one.
#[must_use]
pub fn message(event: &[u8]) -> Option<Vec<u8>> {
    raw::message(event)
}

/// The event with another message.
#[must_use]
pub fn with_message(event: &[u8], message: &str) -> Vec<u8> {
    raw::with_message(event, message)
}

/// The messages of a stream that comes in chunks, as a client over pipes gets them. A message over `max`
/// bytes comes in parts, which are put together here; true marks one that did not.
///
/// # Errors
///
/// Never, since the stream does not fail.
pub async fn messages(chunks: &[&[u8]], max: usize) -> io::Result<Vec<(Vec<u8>, bool)>> {
    let (mut events, mut place) = (Events::new(Chunks::new(chunks), max), Place::default());
    let (mut all, mut open) = (Vec::new(), None);
    while let Some(data) = events.next(&mut place).await? {
        match data {
            Data::Whole(bytes) => all.push((bytes.to_vec(), true)),
            Data::Part { bytes, is_last } => {
                let mut message: Vec<u8> = open.take().unwrap_or_default();
                message.extend_from_slice(bytes);
                if is_last {
                    all.push((message, false));
                } else {
                    open = Some(message);
                }
            }
        }
    }
    Ok(all)
}

/// The pieces of a stream that comes in chunks, as a client over HTTP gets them; true marks whole events.
///
/// # Errors
///
/// Never, since the stream does not fail.
pub async fn events(chunks: &[&[u8]], max: usize) -> io::Result<Vec<(Vec<u8>, bool)>> {
    let mut events = RawEvents::new(Chunks::new(chunks), max);
    let mut all = Vec::new();
    while let Some(chunk) = events.next().await? {
        all.push(match chunk {
            StreamChunk::Event(bytes) => (bytes, true),
            StreamChunk::Part { bytes, .. } => (bytes, false),
        });
    }
    Ok(all)
}

/// Gives each chunk by itself.
struct Chunks<'c>(VecDeque<&'c [u8]>);

impl<'c> Chunks<'c> {
    fn new(chunks: &[&'c [u8]]) -> Self {
        let chunks = chunks.iter().filter(|chunk| !chunk.is_empty());
        Self(chunks.copied().collect())
    }
}

impl AsyncRead for Chunks<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(chunk) = self.0.front_mut() {
            let (now, rest) = chunk.split_at(chunk.len().min(to.remaining()));
            to.put_slice(now);
            *chunk = rest;
            if rest.is_empty() {
                self.0.pop_front();
            }
        }
        Poll::Ready(Ok(()))
    }
}
