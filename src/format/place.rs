//! The places of what can be replaced in messages.

use super::{PartRef, Piece, Role};
use crate::report::Subject;

/// The place of a result, of a call's arguments or of a user's text. Indices count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) message: usize,
    pub(crate) subject: Subject,
    /// Its number among the message's results, calls or users' texts.
    pub(crate) index: usize,
}

/// Tells the places of the pieces of one message.
#[derive(Debug, Default)]
pub(crate) struct Places {
    pub(crate) message: usize,
    /// Numbers of the results, calls and users' texts so far.
    seen: [usize; 3],
    is_users: bool,
    /// True while content belongs to a result.
    pub(crate) in_result: bool,
}

impl Places {
    /// The places of the message with this index.
    pub(crate) fn of(message: usize) -> Self {
        Self {
            message,
            ..Self::default()
        }
    }

    /// The place of the next piece, if it is a result, a call or a user's text.
    pub(crate) fn see(&mut self, piece: Piece<'_>) -> Option<Place> {
        let subject = match piece {
            Piece::Role(role) => {
                (self.is_users, self.in_result) = (role == Role::User, false);
                return None;
            }
            Piece::Result(_) => {
                (self.is_users, self.in_result) = (false, true);
                Subject::Result
            }
            Piece::Call(_) => {
                self.is_users = false;
                Subject::Arguments
            }
            Piece::Content(PartRef::Text(_)) if self.is_users => Subject::UserText,
            Piece::Content(_) => return None,
        };
        let seen = &mut self.seen[subject as usize];
        *seen += 1;
        Some(Place {
            message: self.message,
            subject,
            index: *seen - 1,
        })
    }
}
