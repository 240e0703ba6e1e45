//! What a wire format is: written once, for messages that are values and for messages that are
//! text.

use super::Piece;
use super::json::{Edit, View};
use crate::content::Part;

/// A format of messages that are JSON.
pub(crate) trait WireJson: Copy + Send + Sync {
    /// Shows `see` what `message` holds.
    fn see<'m, V: View<'m>>(self, message: V, see: &mut dyn FnMut(Piece<'m>));

    /// The edits that replace the content of a result slot; `None` if it is not there.
    fn result<'m, V: View<'m>>(
        self,
        message: V,
        slot: usize,
        parts: Vec<Part>,
    ) -> Option<Vec<Edit<'m>>>;

    /// The edits that replace the arguments of a call; `None` if it is not there.
    fn arguments<'m, V: View<'m>>(
        self,
        message: V,
        call: usize,
        arguments: String,
    ) -> Option<Vec<Edit<'m>>>;
}
