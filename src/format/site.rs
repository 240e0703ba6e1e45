//! The terms that all wire formats are written in, for messages that are values and for messages that are text.

use crate::json::{Edit, New, View};

use super::{Piece, Role};

/// Sees a piece, and where it can be changed.
pub(super) type See<'s, 'm, V> = &'s mut dyn FnMut(Piece<'m>, Option<Site<V>>);

/// The field of a message that holds a result's content, a call's arguments, or a text.
#[derive(Clone, Copy)]
pub(super) struct Site<V> {
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

    /// The JSON pointer to the object.
    pub(super) fn path(self) -> String {
        let item = self.item.map(|(list, at)| format!("/{list}/{at}"));
        let key = self.key.map(|key| format!("/{key}"));
        item.into_iter().chain(key).collect()
    }

    /// The edit that gives the field a `new` value.
    pub(super) fn set(self, new: New<'m>) -> Edit<'m> {
        Edit::set(self.path(), self.field, new)
    }
}

/// Shows the role of the next piece, unless the piece before it had the `last` one.
pub(super) fn show_role<'m, V>(role: Role, last: &mut Option<Role>, see: See<'_, 'm, V>) {
    if last.replace(role) != Some(role) {
        see(Piece::Role(role), None);
    }
}
