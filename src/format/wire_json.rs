//! The trait behind all wire formats: each is written once, for messages that are values and for
//! messages that are text.

use crate::json::{Edit, New, Step, View};

use super::{Piece, Role};
use crate::content::Part;

/// Edits that replace something; `None` if that does not exist.
pub(crate) type Edits<'m> = Option<Vec<Edit<'m>>>;

/// The path to an object, and the field of it that holds a text.
pub(crate) type TextPlace = (Vec<Step>, &'static str);

/// A format of messages that are JSON.
pub(crate) trait WireJson: Copy + Send + Sync {
    /// Calls `see` with each piece of `message`, in order.
    fn see<'m, V: View<'m>>(self, message: V, see: &mut dyn FnMut(Piece<'m>));

    /// The edits that replace the content of a result slot by `parts`.
    fn result<'m, V: View<'m>>(self, message: V, slot: usize, parts: Vec<Part>) -> Edits<'m>;

    /// The edits that replace the arguments of a call by `new`.
    fn arguments<'m, V: View<'m>>(self, message: V, call: usize, new: String) -> Edits<'m>;

    /// The place of a user's n-th text.
    fn text_at<'m, V: View<'m>>(self, message: V, nth: usize) -> Option<TextPlace>;

    /// The edits that replace a user's n-th text by `new`.
    fn set_text<'m, V: View<'m>>(self, message: V, nth: usize, new: String) -> Edits<'m> {
        let (path, field) = self.text_at(message, nth)?;
        Some(vec![Edit::set(path, field, New::Value(new.into()))])
    }
}

/// The roles in a message with pieces of several authors.
pub(super) struct Roles {
    /// The role of all pieces that are not results.
    own: Role,
    last: Option<Role>,
}

impl Roles {
    /// The roles of a message from `own`.
    pub(super) fn new(own: Role) -> Self {
        Self { own, last: None }
    }

    /// Shows the role of the next piece, unless the piece before it had the same.
    pub(super) fn show<'m>(&mut self, is_result: bool, see: &mut dyn FnMut(Piece<'m>)) {
        let role = if is_result { Role::Tool } else { self.own };
        if self.last.replace(role) != Some(role) {
            see(Piece::Role(role));
        }
    }

    /// Shows the role of a message without pieces.
    pub(super) fn end<'m>(self, see: &mut dyn FnMut(Piece<'m>)) {
        if self.last.is_none() {
            see(Piece::Role(self.own));
        }
    }
}
