//! A result that another reader returned of what is stored already (R3).

use bytes::Bytes;

use super::Run;
use crate::backend::Location;
use crate::content::Part;
use crate::read_back::OtherReader;
use crate::truncate::passing::behind;
use crate::truncate::splitter::Slot;
use crate::truncate::text::{Content, Text};

impl Run {
    /// The result goes on with bytes that leave memory, the first ones once it is over the limit.
    pub(super) fn read_on(&mut self, bytes: Option<&Bytes>) {
        let Some(length) = self.only_text().map(|text| text.bytes) else {
            self.reader = None;
            return;
        };
        let Some(bytes) = bytes else { return };
        if let Some(reader) = &mut self.reader {
            reader.push(bytes.clone());
        } else if length == bytes.len() as u64 {
            self.reader = self.other_reader(bytes.clone());
        }
    }

    /// Compares what came last.
    pub(super) async fn compare(&mut self) {
        if let Some(reader) = &mut self.reader
            && !reader.compare().await
        {
            self.reader = None;
        }
    }

    /// Where the result is stored already, and what is shown of that, if another reader returned
    /// it.
    pub(super) async fn page(&mut self) -> Option<(Location, Vec<Part>)> {
        let reader = self.reader.take();
        let text = self.only_text()?;
        let reader = match (reader, &text.content) {
            (Some(reader), _) => reader,
            (None, Content::Memory(bytes)) if self.splitter.size().is_over(self.policy.limit) => {
                self.other_reader(Bytes::copy_from_slice(bytes))?
            }
            _ => return None,
        };
        let limit = self.policy.limit.safe_bytes();
        let (location, parts) = reader
            .finish(&self.session, &self.call.name, text.bytes, limit)
            .await?;
        // What was shown stays.
        let begins_as_shown =
            matches!(parts.first(), Some(Part::Text(text)) if text.len() >= self.splitter.shown.1);
        begins_as_shown.then_some((location, parts))
    }

    /// The only text of the result, if that is all it is.
    fn only_text(&self) -> Option<&Text> {
        match self.splitter.slots.as_slice() {
            [Slot::Text(text)] if text.json.is_none() => Some(text),
            _ => None,
        }
    }

    fn other_reader(&self, first: Bytes) -> Option<OtherReader> {
        let shown = behind(&first, self.splitter.shown.1);
        OtherReader::new(&self.session, &self.call, first, shown)
    }
}
