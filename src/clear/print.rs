//! The places of results and calls, and the fingerprints of their content.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::decisions::fingerprint::{Fingerprint, Record};
use crate::format::{Call, Conversation, Data, PartRef, Piece, ResultHead};
use crate::report::{Decision, Subject};
use crate::rounds::Slot;
use crate::tokens::{Meter, Text};

/// The place of a result or of a call's arguments. Indices count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Place {
    Result { message: usize, slot: usize },
    Arguments { message: usize, call: usize },
}

impl Place {
    pub(crate) fn of(slot: &Slot<'_>) -> Self {
        let Slot { message, slot, .. } = *slot;
        Self::Result { message, slot }
    }

    pub(crate) fn message(self) -> usize {
        let (Self::Result { message, .. } | Self::Arguments { message, .. }) = self;
        message
    }

    /// A decision about this place that changes nothing yet.
    pub(crate) fn decision(self, tool: &str, call_id: &str, bytes: u64) -> Decision {
        let subject = match self {
            Self::Result { .. } => Subject::Result,
            Self::Arguments { .. } => Subject::Arguments,
        };
        let mut decision = Decision::new(subject, tool, call_id, bytes);
        decision.message = Some(self.message());
        decision
    }
}

/// The fingerprint of a result, built part by part. It covers everything that matters: two slots
/// with equal fingerprints hold the same bytes under the same id.
pub(crate) struct ResultPrint<'m> {
    meter: &'m Meter,
    record: Record,
}

impl<'m> ResultPrint<'m> {
    pub(crate) fn new(meter: &'m Meter, head: ResultHead<'_>) -> Self {
        let mut record = meter.record();
        record.field(b'r', head.id.as_bytes());
        Self { meter, record }
    }

    /// Adds the next part. `text` is the fingerprint of its text, if it has one.
    pub(crate) fn add(&mut self, part: PartRef<'_>, text: Option<Fingerprint>) {
        let kind = match part {
            PartRef::Text(_) => b't',
            PartRef::Json(_) => b'j',
            PartRef::Opaque(_) => b'o',
            PartRef::Media { mime, data } => {
                self.record.field(b'm', mime.as_bytes());
                let (kind, bytes) = match data {
                    Data::Base64(text) => (b'6', text.as_bytes()),
                    Data::Bytes(bytes) => (b'b', &bytes[..]),
                };
                self.record.known(kind, self.meter.print_bytes(bytes));
                return;
            }
            PartRef::Link { mime, .. } => {
                self.record.field(b'm', mime.unwrap_or_default().as_bytes());
                b'l'
            }
        };
        if let Some(text) = text {
            self.record.known(kind, text);
        }
    }

    pub(crate) fn finish(self) -> Fingerprint {
        self.record.finish()
    }
}

/// The fingerprint of a call whose arguments have the fingerprint `arguments`.
pub(crate) fn print_of_call(meter: &Meter, call: Call<'_>, arguments: Fingerprint) -> Fingerprint {
    let mut record = meter.record();
    record.field(b'c', call.id.as_bytes());
    record.field(b'n', call.name.as_bytes());
    record.known(b'a', arguments);
    record.finish()
}

/// The current fingerprints of the content at `places`. Visits each message once, however many
/// places it has.
pub(crate) fn prints_at(
    meter: &Meter,
    conversation: &dyn Conversation,
    places: impl Iterator<Item = Place>,
) -> HashMap<Place, Fingerprint> {
    let places: HashSet<Place> = places.collect();
    let messages: BTreeSet<usize> = places.iter().map(|place| place.message()).collect();
    let mut prints = HashMap::with_capacity(places.len());
    for message in messages.into_iter().filter(|at| *at < conversation.len()) {
        let (mut slot, mut call, mut open) = (0, 0, None);
        conversation.visit(message, &mut |piece| {
            if let Piece::Role(_) | Piece::Result(_) = piece {
                close(&mut open, &mut prints);
            }
            match piece {
                Piece::Role(_) => {}
                Piece::Result(head) => {
                    let place = Place::Result { message, slot };
                    slot += 1;
                    if places.contains(&place) {
                        open = Some((place, ResultPrint::new(meter, head)));
                    }
                }
                Piece::Content(part) => {
                    if let Some((_, print)) = &mut open {
                        print.add(
                            part,
                            Text::of_part(part).map(|text| meter.fingerprint(text)),
                        );
                    }
                }
                Piece::Call(is) => {
                    let place = Place::Arguments { message, call };
                    call += 1;
                    if places.contains(&place) {
                        let arguments = meter.fingerprint(Text::of_arguments(is.arguments));
                        prints.insert(place, print_of_call(meter, is, arguments));
                    }
                }
            }
        });
        close(&mut open, &mut prints);
    }
    prints
}

fn close(open: &mut Option<(Place, ResultPrint<'_>)>, prints: &mut HashMap<Place, Fingerprint>) {
    if let Some((place, print)) = open.take() {
        prints.insert(place, print.finish());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::tokens::Estimate;

    #[test]
    fn results_with_other_parts_have_other_fingerprints() {
        let meter = Meter::new(Arc::new(Estimate));
        let text = serde_json::json!("a");
        let png = |mime| PartRef::Media {
            mime,
            data: Data::Base64("AA=="),
        };
        let link = |mime, url| PartRef::Link { mime, url };
        let lists: [&[PartRef<'_>]; 12] = [
            &[],
            &[PartRef::Text("ab"), PartRef::Text("c")],
            &[PartRef::Text("a"), PartRef::Text("bc")],
            &[PartRef::Text("abc")],
            &[PartRef::Text("\"a\"")],
            &[PartRef::Json((&text).into())],
            &[PartRef::Opaque((&text).into())],
            &[png("image/png")],
            &[png("image/gif")],
            &[link(None, "u")],
            &[link(Some("m"), "u")],
            &[link(None, "v")],
        ];
        let mut seen = HashSet::new();
        for id in ["", "a"] {
            for list in lists {
                let mut print = ResultPrint::new(
                    &meter,
                    ResultHead {
                        id,
                        name: None,
                        is_error: false,
                        is_for_program: false,
                        is_fixed: false,
                    },
                );
                for part in list {
                    print.add(
                        *part,
                        Text::of_part(*part).map(|text| meter.fingerprint(text)),
                    );
                }
                assert!(seen.insert(print.finish()), "{id:?} {list:?}");
            }
        }
    }
}
