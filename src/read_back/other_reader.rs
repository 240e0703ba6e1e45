//! What a reader that is not ours returns of content that is ours.

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::Value;

use super::page::room;
use super::starts::{WINDOW, starts};
use super::stretch::{Found, MAX_BESIDE, Stretch};
use super::{overhead, page_hint};
use crate::backend::{BackendError, Location};
use crate::content::{Part, ToolCall};
use crate::hint::Placement;
use crate::session::{Place, Session};
use crate::store::Stored;

/// The least room, in bytes, that the content of a page has beside what was shown already.
const MIN_ROOM: usize = 16;
/// How many words of a call's arguments may be locations.
const MAX_WORDS: usize = 64;

/// A result over its limit that may be what another reader returned of content that is stored at a
/// location among the call's arguments. It is compared as it comes, and little of it is held.
///
/// Without this, a model that reads stored content with a tool of its own would have the result
/// stored, and would read that, and so on. A page takes the place of one unbroken stretch of the
/// stored content alone, so nothing is lost.
pub(crate) struct OtherReader {
    stored: Stored,
    /// Bytes of the result that are not compared yet.
    waiting: Bytes,
    /// The first bytes of the result: those that were shown, and at least a header.
    first: Vec<u8>,
    shown: usize,
    stretches: Option<Vec<Stretch>>,
    length: u64,
}

impl OtherReader {
    /// `first` are the first bytes of the result, more than its limit, and the first `shown` of
    /// them were shown. `None` if the call names nothing that is stored.
    pub(crate) fn new(
        session: &Session,
        call: &ToolCall,
        first: Bytes,
        shown: usize,
    ) -> Option<Self> {
        let stored = named_in(session, call)?;
        let length = first.len() as u64;
        let kept = first[..shown.max(MAX_BESIDE).min(first.len())].to_vec();
        Some(Self {
            stored,
            waiting: first,
            first: kept,
            shown,
            stretches: None,
            length,
        })
    }

    /// The result goes on with `bytes`, once what came before was [compared](Self::compare).
    pub(crate) fn push(&mut self, bytes: Bytes) {
        self.length += bytes.len() as u64;
        self.waiting = bytes;
    }

    /// Compares what came last. `false` if it is a result like any other.
    pub(crate) async fn compare(&mut self) -> bool {
        // What can't be read can't be compared.
        self.try_compare().await.unwrap_or(false)
    }

    async fn try_compare(&mut self) -> Result<bool, BackendError> {
        let bytes = std::mem::take(&mut self.waiting);
        let (stretches, is_first) = match self.stretches.take() {
            Some(stretches) => (stretches, false),
            None => {
                let starts = starts(&self.stored, &bytes).await?;
                (
                    starts
                        .into_iter()
                        .map(|start| Stretch::new(start, self.shown))
                        .collect(),
                    true,
                )
            }
        };
        let window = WINDOW / stretches.len().max(1) as u64;
        let mut left = Vec::with_capacity(stretches.len());
        for mut stretch in stretches {
            let header = if is_first { stretch.start.header } else { 0 };
            if stretch.push(&self.stored, &bytes[header..], window).await? {
                left.push(stretch);
            }
        }
        Ok(!self.stretches.insert(left).is_empty())
    }

    /// What is shown in place of the result, which has ended after `length` bytes: the page of the
    /// stored content that it is a stretch of, and before it, in a text of its own, what was shown
    /// already and what else the reader said. `limit` is the room for all of it, in bytes.
    pub(crate) async fn finish(
        mut self,
        session: &Session,
        tool: &str,
        length: u64,
        limit: usize,
    ) -> Option<(Location, Vec<Part>)> {
        if length != self.length || !self.compare().await {
            return None;
        }
        let mut best: Option<(usize, Found)> = None;
        for stretch in self.stretches.take()? {
            let keep = stretch.keep();
            let found = stretch.finish(&self.stored, WINDOW).await.ok()?;
            let says = |found: &Found| found.start.header + found.footer.len();
            if let Some(found) = found.filter(|found| {
                best.as_ref()
                    .is_none_or(|(_, best)| says(found) < says(best))
            }) {
                best = Some((keep, found));
            }
        }
        let (keep, found) = best?;
        let parts = self
            .show(session, room(session, tool), limit, keep, &found)
            .await?;
        Some((self.stored.location, parts))
    }

    async fn show(
        &self,
        session: &Session,
        room: usize,
        limit: usize,
        keep: usize,
        found: &Found,
    ) -> Option<Vec<Part>> {
        let (prose, overhead) = (
            session.prose(),
            overhead(&self.stored.location, session.prose()),
        );
        let start = Place {
            position: found.start.position,
            at: found.start.at,
        };
        let shown = self.first_text(self.shown)?;
        if self.shown > 0
            && found.start.header == 0
            && found.footer.is_empty()
            && !found.start.is_numbered
        {
            let room = room.min(limit).checked_sub(overhead)?;
            let (mut hint, _) = page_hint(&self.stored, start.position, start, None, room, prose)
                .await
                .ok()?;
            hint.placement = Placement::Last;
            let page = hint.render();
            if page.starts_with(&*shown) && page.len() <= limit {
                return Some(vec![Part::Text(page)]);
            }
        }
        let mut beside = self.first_text(keep)?.into_owned();
        beside.push_str(&String::from_utf8_lossy(&found.footer));
        let room = room
            .min(limit.checked_sub(beside.len())?)
            .checked_sub(overhead)?;
        if room < MIN_ROOM {
            return None;
        }
        let (page, _) = page_hint(&self.stored, found.from, start, None, room, prose)
            .await
            .ok()?;
        let beside = (!beside.is_empty()).then_some(Part::Text(beside));
        Some(
            beside
                .into_iter()
                .chain([Part::Text(page.render())])
                .collect(),
        )
    }

    fn first_text(&self, length: usize) -> Option<Cow<'_, str>> {
        self.first.get(..length).map(String::from_utf8_lossy)
    }
}

/// Content of this session that the call's arguments name.
fn named_in(session: &Session, call: &ToolCall) -> Option<Stored> {
    let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
    location_in(session, &arguments, &mut MAX_WORDS.clone())
}

/// The first location that the arguments name, as a value or as a word of a command.
fn location_in(session: &Session, arguments: &Value, words: &mut usize) -> Option<Stored> {
    match arguments {
        Value::String(text) => session.resolve(text).or_else(|| {
            let is_between = |c: char| c.is_whitespace() || "\"'`;|&<>()=,".contains(c);
            text.split(is_between)
                .filter(|word| !word.is_empty())
                .find_map(|word| {
                    *words = words.checked_sub(1)?;
                    session.resolve(word)
                })
        }),
        Value::Array(values) => values
            .iter()
            .find_map(|value| location_in(session, value, words)),
        Value::Object(fields) => fields
            .values()
            .find_map(|value| location_in(session, value, words)),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}
