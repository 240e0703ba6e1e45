//! Decisions about the results, calls and users' texts of a conversation, and what takes their place.

use std::collections::{HashMap, VecDeque};

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::backend::Location;
use crate::content::Part;
use crate::fingerprint::SlotId;

/// The moment of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Moment {
    /// The result arrived. The decision is repeated from the first call on.
    Arrival,
    /// A pass went over the conversation. The decision is repeated where the model has answered the
    /// result.
    Pass,
}

/// The replacement of a result, of a call's arguments or of a user's text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Substitute<P = Part> {
    /// The parts of a result, or a user's text.
    Parts(Vec<P>),
    /// The arguments of a call, as JSON.
    Arguments(String),
}

impl Substitute {
    /// Its text, if it is one text.
    pub(crate) fn only_text(&self) -> Option<&str> {
        match self {
            Self::Parts(parts) if let [Part::Text(text)] = &parts[..] => Some(text),
            _ => None,
        }
    }
}

/// A replacement as it is written down.
pub(crate) type WrittenReplacement = Substitute<WrittenPart>;

/// A part of a replacement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WrittenPart {
    /// The part of the original with this index, which is not written down again.
    Kept(usize),
    /// Another part.
    New(Part),
}

impl WrittenReplacement {
    /// Writes `substitute` down. Parts that are in `originals` too are kept; both are in one order.
    pub(crate) fn of(substitute: &Substitute, originals: &[Part]) -> Self {
        let parts = match substitute {
            Substitute::Parts(parts) => parts,
            Substitute::Arguments(text) => return Self::Arguments(text.clone()),
        };
        let mut next = 0;
        let put = parts.iter().map(|part| {
            let mut later = originals.iter().enumerate().skip(next);
            match later.find(|(_, original)| *original == part) {
                Some((at, _)) => {
                    next = at + 1;
                    WrittenPart::Kept(at)
                }
                None => WrittenPart::New(part.clone()),
            }
        });
        Self::Parts(put.collect())
    }

    /// The replacement of an original, of which `original` gives single parts. `None` if it needs a
    /// part that does not exist, or if these arguments are not JSON.
    pub(crate) fn over(&self, original: impl Fn(usize) -> Option<Part>) -> Option<Substitute> {
        Some(match self {
            Self::Parts(parts) => {
                let parts = parts.iter().map(|part| match part {
                    WrittenPart::Kept(at) => original(*at),
                    WrittenPart::New(part) => Some(part.clone()),
                });
                Substitute::Parts(parts.collect::<Option<_>>()?)
            }
            Self::Arguments(text) => {
                serde_json::from_str::<IgnoredAny>(text).ok()?;
                Substitute::Arguments(text.clone())
            }
        })
    }
}

/// A decision about one result or one call's arguments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Decided {
    pub(crate) slot: SlotId,
    pub(crate) moment: Moment,
    pub(crate) put: WrittenReplacement,
    /// Locations of the original.
    #[serde(rename = "at", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) locations: Vec<Location>,
}

/// All decisions about one conversation so far. For each slot and moment the last one counts.
#[derive(Debug, Default)]
pub(crate) struct Decisions {
    known: HashMap<(SlotId, Moment), Decided>,
    /// Locations of originals, the next to be looked at first.
    locations: VecDeque<Location>,
}

impl Decisions {
    /// Adds decisions, which count from now on.
    pub(crate) fn add(&mut self, decisions: Vec<Decided>) {
        for decided in decisions {
            self.locations.extend(decided.locations.iter().cloned());
            self.known.insert((decided.slot, decided.moment), decided);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// At most so many locations of originals, others each time until all were given.
    pub(crate) fn in_turn(&mut self, most: usize) -> Vec<Location> {
        let most = most.min(self.locations.len());
        let given = self.locations.iter().take(most).cloned().collect();
        self.locations.rotate_left(most);
        given
    }

    /// The decision to repeat. A result that the model has not answered is still what it was when it
    /// arrived.
    pub(crate) fn about(&self, slot: SlotId, is_answered: bool) -> Option<&Decided> {
        let at = |moment| self.known.get(&(slot, moment));
        let pass = at(Moment::Pass).filter(|_| is_answered);
        pass.or_else(|| at(Moment::Arrival))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprint::SlotIds;

    fn parts(parts: &[&str]) -> Vec<Part> {
        parts.iter().map(|part| (*part).into()).collect()
    }

    #[test]
    fn kept_parts_are_not_written_down_again() {
        let originals = parts(&["head", "image", "long", "image"]);
        let substitute = Substitute::Parts(parts(&["head", "hint", "image"]));
        let put = WrittenReplacement::of(&substitute, &originals);
        let new = |part: &str| WrittenPart::New(part.into());
        assert_eq!(
            put,
            WrittenReplacement::Parts(vec![
                WrittenPart::Kept(0),
                new("hint"),
                WrittenPart::Kept(1)
            ])
        );
        assert_eq!(put.over(|at| originals.get(at).cloned()), Some(substitute));
        assert_eq!(put.over(|_| None), None);
        let arguments = |text: &str| WrittenReplacement::Arguments(text.to_owned()).over(|_| None);
        assert!(arguments("{}").is_some() && arguments("{").is_none());
    }

    #[test]
    fn c13_an_unanswered_result_is_what_it_was_when_it_arrived() {
        let slot = SlotIds::default().next(1);
        let decided = |moment, text: &str| Decided {
            slot,
            moment,
            put: WrittenReplacement::Arguments(text.to_owned()),
            locations: Vec::new(),
        };
        let mut decisions = Decisions::default();
        decisions.add(vec![
            decided(Moment::Pass, "old"),
            decided(Moment::Pass, "cleared"),
        ]);
        let about = |decisions: &Decisions, is_answered| {
            decisions
                .about(slot, is_answered)
                .map(|decided| decided.put.clone())
        };
        let put = |text: &str| Some(WrittenReplacement::Arguments(text.to_owned()));
        assert_eq!(
            (about(&decisions, true), about(&decisions, false)),
            (put("cleared"), None)
        );
        decisions.add(vec![decided(Moment::Arrival, "cut")]);
        assert_eq!(
            (about(&decisions, true), about(&decisions, false)),
            (put("cleared"), put("cut"))
        );
    }
}
