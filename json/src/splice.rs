//! Splicing: replaces one value of a text, or adds or removes one field, and keeps every other
//! byte.

use std::mem::take;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::scan::{Span, SpanKind, scan};
use crate::text::{JsonText, Node, Parsed};

impl JsonText {
    /// Sets a field of the object at `object` to the JSON `value`: in place if the field exists,
    /// otherwise as the last field. Returns `None` if that fails; the text may then have changed in
    /// part.
    pub(crate) fn set(&mut self, object: usize, field: &str, value: &str) -> Option<()> {
        if let Some(at) = self.key(object, field).map(|key| key + 1) {
            let Span { start, end, .. } = self.0.spans[at];
            return self.splice(start..end, at..self.next(at), value, scan(value).ok()?.all);
        }
        let name = serde_json::to_string(field).ok()?;
        let (added, comma) = (
            format!("{name}:{value}"),
            if self.last_key(object).is_some() {
                ","
            } else {
                ""
            },
        );
        // Scanned inside braces; the surrounding object is then dropped.
        let mut spans = scan(&format!("{{{added}}}")).ok()?.all.split_off(1);
        for span in &mut spans {
            let shift = |place: u32| if comma.is_empty() { place - 1 } else { place };
            (span.start, span.end) = (shift(span.start), shift(span.end));
            if span.is_container() {
                span.link -= 1;
            }
        }
        // After the last value, so that whitespace before the brace stays there.
        let from = self
            .last_key(object)
            .map_or(self.0.spans[object].start + 1, |key| {
                self.0.spans[key + 1].end
            });
        let at = self.next(object);
        self.splice(from..from, at..at, &format!("{comma}{added}"), spans)
    }

    /// Removes a field of the object at `object`, together with its comma.
    pub(crate) fn remove(&mut self, object: usize, field: &str) -> Option<()> {
        let Some(key) = self.key(object, field) else {
            return Some(());
        };
        let after = self.next(key + 1);
        let keys: Vec<usize> = self.keys(object).collect();
        let before = keys.iter().take_while(|other| **other < key).last();
        let (start, end) = (self.0.spans[key].start, self.0.spans[key + 1].end);
        let bytes = match before {
            Some(before) => self.0.spans[before + 1].end..end,
            None if after < self.next(object) => start..self.0.spans[after].start,
            None => start..end,
        };
        self.splice(bytes, key..after, "", Vec::new())
    }

    fn key(&self, object: usize, field: &str) -> Option<usize> {
        self.keys(object)
            .filter(|key| self.meaning(*key) == Some(field))
            .last()
    }

    fn last_key(&self, object: usize) -> Option<usize> {
        self.keys(object).last()
    }

    fn keys(&self, object: usize) -> impl Iterator<Item = usize> {
        let all = Node::root(self);
        Node { at: object, ..all }.keys()
    }

    /// Replaces bytes and the values in them. `spans` are the values of `new`. Keeps the meanings
    /// of other strings that are already known, unless a clone shares them.
    fn splice(
        &mut self,
        bytes: Range<u32>,
        values: Range<usize>,
        new: &str,
        spans: Vec<Span>,
    ) -> Option<()> {
        let added = u32::try_from(new.len()).ok()?;
        let length = u32::try_from(self.0.text.len()).ok()?;
        length
            .checked_sub(bytes.end - bytes.start)?
            .checked_add(added)?;
        let number = |count: usize| u32::try_from(count).ok();
        let escaped = |spans: &[Span]| {
            spans
                .iter()
                .filter(|span| span.kind == SpanKind::Escaped)
                .count()
        };
        let first = escaped(&self.0.spans[..values.start]);
        let (gone, come) = (escaped(&self.0.spans[values.clone()]), escaped(&spans));
        // Unsigned differences, which wrap if something got shorter.
        let by_bytes = added.wrapping_sub(bytes.end - bytes.start);
        let by_values = number(spans.len())?.wrapping_sub(number(values.len())?);
        let by_escaped = number(come)?.wrapping_sub(number(gone)?);
        let (base, values_before, escaped_before) =
            (bytes.start, number(values.start)?, number(first)?);
        // Nothing fails from here on.
        let unread = |count| (0..count).map(|_| OnceLock::new());
        let (mut all, mut meanings) = match Arc::get_mut(&mut self.0) {
            Some(own) => (take(&mut own.spans), take(&mut own.meanings)),
            None => (
                self.0.spans.clone(),
                unread(self.0.meanings.len()).collect(),
            ),
        };
        for span in &mut all[..values.start] {
            // Containers around the replaced bytes.
            if span.is_container() && span.end > bytes.end {
                span.end = span.end.wrapping_add(by_bytes);
                span.link = span.link.wrapping_add(by_values);
            }
        }
        for span in &mut all[values.end..] {
            span.start = span.start.wrapping_add(by_bytes);
            span.end = span.end.wrapping_add(by_bytes);
            span.link = match span.kind {
                SpanKind::Array | SpanKind::Object => span.link.wrapping_add(by_values),
                SpanKind::Escaped => span.link.wrapping_add(by_escaped),
                _ => 0,
            };
        }
        let moved = spans.into_iter().map(|span| Span {
            start: span.start + base,
            end: span.end + base,
            link: match span.kind {
                SpanKind::Array | SpanKind::Object => span.link + values_before,
                SpanKind::Escaped => span.link + escaped_before,
                _ => 0,
            },
            ..span
        });
        all.splice(values, moved);
        meanings.splice(first..first + gone, unread(come));
        let (before, after) = (bytes.start as usize, bytes.end as usize);
        let old = &self.0;
        self.0 = Arc::new(Parsed {
            // Written anew, since `replace_range` moves byte by byte.
            text: [&old.text[..before], new, &old.text[after..]].concat(),
            spans: all,
            meanings,
            has_surrogates: old.has_surrogates,
            is_plain: old.is_plain.clone(),
        });
        Some(())
    }
}
