//! The terms that all wire formats are written in, for messages that are values and for messages that are text.

use crate::json::{Edit, New, Step, View};

use super::{Piece, Role};

/// Edits that replace something; `None` if that does not exist.
pub(crate) type Edits<'m> = Option<Vec<Edit<'m>>>;

/// Sees a piece, and where it can be changed.
pub(crate) type See<'s, 'm, V> = &'s mut dyn FnMut(Piece<'m>, Option<Site<V>>);

/// The field of a message that holds a result's content, a call's arguments, or a text.
#[derive(Clone, Copy)]
pub(crate) struct Site<V> {
    /// A list of the message and the index of an item, from which the object is reached.
    pub(super) item: Option<(&'static str, usize)>,
    /// The key of the object, if it is not the item or the message itself.
    pub(super) key: Option<&'static str>,
    /// The object that has the field.
    pub(super) object: V,
    pub(super) field: &'static str,
}

impl<'m, V: View<'m>> Site<V> {
    /// A field of `object`, which is the message itself.
    pub(super) fn of(object: V, field: &'static str) -> Self {
        Self {
            item: None,
            key: None,
            object,
            field,
        }
    }

    /// The value of the field.
    pub(super) fn get(self) -> Option<V> {
        self.object.get(self.field)
    }

    /// The path to the object.
    pub(super) fn path(self) -> Vec<Step> {
        let item = self
            .item
            .map(|(list, at)| [Step::Field(list), Step::Item(at)]);
        let key = self.key.map(Step::Field);
        item.into_iter().flatten().chain(key).collect()
    }

    /// The edit that gives the field a `new` value.
    pub(super) fn set(self, new: New<'m>) -> Edit<'m> {
        Edit::set(self.path(), self.field, new)
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
    pub(super) fn show<'m, V>(&mut self, is_result: bool, see: See<'_, 'm, V>) {
        let role = if is_result { Role::Tool } else { self.own };
        if self.last.replace(role) != Some(role) {
            see(Piece::Role(role), None);
        }
    }

    /// Shows the role of a message without pieces.
    pub(super) fn end<'m, V>(self, see: See<'_, 'm, V>) {
        if self.last.is_none() {
            see(Piece::Role(self.own), None);
        }
    }
}
