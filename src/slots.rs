//! The results and calls of a conversation: their identities, what is shown in their place, and the memory of
//! what was decided about them.

mod memory;
mod overlay;
mod reading;

pub(crate) use crate::format::Place;
pub(crate) use crate::rounds::{Grounds, Item, ItemContent};
pub(crate) use memory::{Anchor, Known, Memory};
pub(crate) use overlay::{Overlay, Puts, Repeated, repeat};
pub(crate) use reading::{Slots, bytes_of, tokens_of};
