//! Something that a turn needs and no longer sees.

use std::sync::Arc;

use offcut::backend::Location;

/// Something that has to be read back.
pub(super) struct Gone {
    pub(super) text: String,
    /// Index of the newest message whose hint leads to it, or else of the one that held it.
    pub(super) message: usize,
    /// The stored content that holds it; `None` if no hint leads to it.
    pub(super) stored: Option<(Location, Arc<str>)>,
}
