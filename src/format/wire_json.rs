//! The trait behind all wire formats: each is written once, for messages that are values and for
//! messages that are text.

use crate::json::{Edit, New, Step, View};

use super::place::{Place, Places};
use super::{Piece, Role};
use crate::content::Part;
use crate::report::Subject;

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

/// A format of messages that are JSON.
pub(crate) trait WireJson: Copy + Send + Sync {
    /// Calls `see` with each piece of `message`, in order, and with the site of what can be replaced.
    fn see<'m, V: View<'m>>(self, message: V, see: See<'_, 'm, V>);

    /// The edits that replace the content of a result by `parts`.
    fn fill<'m, V: View<'m>>(self, result: Site<V>, parts: Vec<Part>) -> Vec<Edit<'m>>;

    /// The value of new arguments, which are JSON, in place of `old` ones. By default they are not text.
    fn new_arguments<'m, V: View<'m>>(self, old: Option<V>, new: String) -> New<'m> {
        let _ = old;
        New::Text(new)
    }

    /// The site of a result, of a call's arguments or of a user's text; `None` if it must stay as it is.
    fn site<'m, V: View<'m>>(self, message: V, subject: Subject, index: usize) -> Option<Site<V>> {
        let (mut places, mut found) = (Places::default(), None);
        let wanted = Place {
            message: 0,
            subject,
            index,
        };
        self.see(message, &mut |piece, site| {
            let is_fixed = match piece {
                Piece::Result(head) => head.is_fixed,
                Piece::Call(call) => call.is_fixed,
                Piece::Role(_) | Piece::Content(_) => false,
            };
            if places.see(piece) == Some(wanted) && !is_fixed {
                found = site;
            }
        });
        found
    }

    /// The edits that replace the content of a result slot by `parts`.
    fn result<'m, V: View<'m>>(self, message: V, slot: usize, parts: Vec<Part>) -> Edits<'m> {
        let site = self.site(message, Subject::Result, slot)?;
        Some(self.fill(site, parts))
    }

    /// The edits that replace the arguments of a call by `new`.
    fn arguments<'m, V: View<'m>>(self, message: V, call: usize, new: String) -> Edits<'m> {
        let site = self.site(message, Subject::Arguments, call)?;
        let new = self.new_arguments(site.get(), new);
        Some(vec![site.set(new)])
    }

    /// The edits that replace a user's n-th text by `new`.
    fn set_text<'m, V: View<'m>>(self, message: V, nth: usize, new: String) -> Edits<'m> {
        let site = self.site(message, Subject::UserText, nth)?;
        Some(vec![site.set(New::Value(new.into()))])
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
