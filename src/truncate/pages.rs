//! A result that another reader returned of what is stored already (R3).

use bytes::Bytes;

use super::passing::behind;
use super::splitter::{Slot, Splitter};
use super::text::{Content, Text};
use crate::backend::Location;
use crate::config::Limit;
use crate::content::{Part, ToolCall};
use crate::read_back::OtherReader;
use crate::session::Session;

/// What a result may be of what is stored already, once it is over the limit; nothing if it is a
/// result like any other.
#[derive(Default)]
pub(super) struct Pages(Option<OtherReader>);

impl Pages {
    /// The result of `call` goes on with bytes that leave memory, the first ones once it is over
    /// the limit.
    pub(super) fn read_on(
        &mut self,
        session: &Session,
        call: &ToolCall,
        splitter: &Splitter,
        bytes: Option<&Bytes>,
    ) {
        let Some(length) = only_text(splitter).map(|text| text.bytes) else {
            self.0 = None;
            return;
        };
        let Some(bytes) = bytes else { return };
        if let Some(reader) = &mut self.0 {
            reader.push(bytes.clone());
        } else if length == bytes.len() as u64 {
            self.0 = other_reader(session, call, splitter, bytes.clone());
        }
    }

    /// Compares what came last.
    pub(super) async fn compare(&mut self) {
        if let Some(reader) = &mut self.0
            && !reader.compare().await
        {
            self.0 = None;
        }
    }

    /// Where the result is stored already, and what is shown of that, if another reader returned
    /// it.
    pub(super) async fn finish(
        &mut self,
        session: &Session,
        call: &ToolCall,
        splitter: &Splitter,
        limit: Limit,
    ) -> Option<(Location, Vec<Part>)> {
        let reader = self.0.take();
        let text = only_text(splitter)?;
        let reader = match (reader, &text.content) {
            (Some(reader), _) => reader,
            (None, Content::Memory(bytes)) if splitter.size().is_over(limit) => {
                other_reader(session, call, splitter, Bytes::copy_from_slice(bytes))?
            }
            _ => return None,
        };
        let (location, parts) = reader
            .finish(session, &call.name, text.bytes, limit.safe_bytes())
            .await?;
        // What was shown stays.
        let begins_as_shown =
            matches!(parts.first(), Some(Part::Text(text)) if text.len() >= splitter.shown.1);
        begins_as_shown.then_some((location, parts))
    }
}

/// The only text of the result, if that is all it is.
fn only_text(splitter: &Splitter) -> Option<&Text> {
    match splitter.slots.as_slice() {
        [Slot::Text(text)] if text.json.is_none() => Some(text),
        _ => None,
    }
}

fn other_reader(
    session: &Session,
    call: &ToolCall,
    splitter: &Splitter,
    first: Bytes,
) -> Option<OtherReader> {
    let shown = behind(&first, splitter.shown.1);
    OtherReader::new(session, call, first, shown)
}
