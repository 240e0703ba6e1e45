//! The bytes of a result that have left memory, and content put together from them.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::save::{Place, Saved};
use super::written::{block, copy, not_there};
use crate::backend::{Backend, BackendError, Writer};

/// Where bytes go that leave memory, and whence they come back.
pub(super) struct Spill {
    backend: Arc<dyn Backend>,
    /// Opened for the first bytes.
    writer: Option<Box<dyn Writer>>,
    length: u64,
}

/// What is stored, or a piece of it.
pub(super) enum Source {
    Bytes(Bytes),
    /// A range of what was spilled.
    Spilled(Range<u64>),
}

impl Spill {
    pub(super) fn new(backend: Arc<dyn Backend>) -> Self {
        Self {
            backend,
            writer: None,
            length: 0,
        }
    }

    /// How many bytes there are.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    pub(super) async fn write(&mut self, bytes: Bytes) -> Result<(), BackendError> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => self.writer.insert(self.backend.writer().await?),
        };
        let length = bytes.len() as u64;
        writer.write(bytes).await?;
        self.length += length;
        Ok(())
    }

    /// What was spilled is gone. What comes next goes to a new writer.
    pub(super) fn lose(&mut self) {
        (self.writer, self.length) = (None, 0);
    }

    pub(super) async fn read(&mut self, range: Range<u64>) -> Result<Vec<u8>, BackendError> {
        let mut bytes = Vec::new();
        if !range.is_empty() {
            let writer = self.writer()?;
            let mut at = range.start;
            while at < range.end {
                let block = block(writer, at..range.end).await?;
                at += block.len() as u64;
                bytes.extend_from_slice(&block);
            }
        }
        Ok(bytes)
    }

    /// Stores the sources, one behind the other.
    pub(super) async fn save(
        &mut self,
        place: &Place,
        sources: Vec<Source>,
    ) -> Result<Saved, BackendError> {
        match sources.as_slice() {
            // All that was spilled is this text: it only has to be named.
            [Source::Spilled(all)] if *all == (0..self.length) => {
                place.name(self.writer()?, all.end).await
            }
            _ if sources
                .iter()
                .all(|source| matches!(source, Source::Bytes(_))) =>
            {
                let mut content = Vec::new();
                for source in sources {
                    match source {
                        Source::Bytes(bytes) if content.is_empty() => content = bytes.into(),
                        Source::Bytes(bytes) => content.extend_from_slice(&bytes),
                        Source::Spilled(_) => {}
                    }
                }
                place.put(content.into()).await
            }
            _ => {
                let mut writer = self.backend.writer().await?;
                let mut length = 0;
                for source in sources {
                    match source {
                        Source::Bytes(bytes) => {
                            length += bytes.len() as u64;
                            writer.write(bytes).await?;
                        }
                        Source::Spilled(range) => {
                            length += range.end - range.start;
                            copy(self.writer()?, range, &mut *writer).await?;
                        }
                    }
                }
                place.name(&mut *writer, length).await
            }
        }
    }

    fn writer(&mut self) -> Result<&mut dyn Writer, BackendError> {
        match &mut self.writer {
            Some(writer) => Ok(&mut **writer),
            None => Err(not_there()),
        }
    }
}
