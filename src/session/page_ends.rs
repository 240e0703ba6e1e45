//! The ends of pages of long content that were read.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::backend::Location;
use crate::hint::Position;

/// How many ends of pages are known at most.
const MAX_ENDS: usize = 256;

/// A place in stored content: by lines, and its byte.
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

/// Where pages of long content ended: from there, reading on needs nothing of what is before it.
#[derive(Debug, Default)]
pub(crate) struct PageEnds(Mutex<VecDeque<PageEnd>>);

#[derive(Debug, PartialEq)]
pub(crate) struct PageEnd {
    pub(crate) location: Location,
    pub(crate) place: Place,
    /// The content's length. Once it has been swept, other content may get its name.
    pub(crate) total: u64,
}

impl PageEnds {
    /// The last place that is known in the content before `from`, or at it, and how long the
    /// content was.
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
