//! The ends of pages of long content that were read.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::backend::Location;
use crate::hint::Position;

/// Maximum number of ends remembered.
const MAX_ENDS: usize = 256;

/// A place in stored content: its line position and its byte offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) position: Position,
    pub(crate) at: u64,
}

impl Place {
    pub(crate) const START: Self = Self {
        position: Position::START,
        at: 0,
    };
}

/// Ends of pages of long content, at which reading can continue without reading anything before.
#[derive(Debug, Default)]
pub(crate) struct PageEnds(Mutex<VecDeque<PageEnd>>);

#[derive(Debug, PartialEq)]
pub(crate) struct PageEnd {
    pub(crate) location: Location,
    pub(crate) place: Place,
    /// Length of the content. After a sweep, other content may get its name.
    pub(crate) total: u64,
}

impl PageEnds {
    /// The last known place in the content at or before `from`, and the content's length at that
    /// time.
    pub(crate) fn before(&self, location: &Location, from: Position) -> Option<(Place, u64)> {
        let ends = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ends = ends
            .iter()
            .filter(|end| end.location == *location && end.place.position <= from);
        ends.map(|end| (end.place, end.total))
            .max_by_key(|(place, _)| place.at)
    }

    pub(crate) fn note(&self, end: PageEnd) {
        let mut ends = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if ends.contains(&end) {
            return;
        }
        if ends.len() >= MAX_ENDS {
            ends.pop_front();
        }
        ends.push_back(end);
    }
}
