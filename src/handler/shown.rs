//! What can be shown in place of a result.

use crate::content::Part;

/// What can be shown in place of a result. Public because [`Replacement`](super::Replacement) takes
/// it, and nameless outside of this crate.
pub trait IntoParts {
    /// It, as parts.
    fn parts(self) -> Vec<Part>;
}

impl IntoParts for String {
    fn parts(self) -> Vec<Part> {
        vec![Part::Text(self)]
    }
}

impl IntoParts for &str {
    fn parts(self) -> Vec<Part> {
        self.to_owned().parts()
    }
}

impl IntoParts for Vec<Part> {
    fn parts(self) -> Vec<Part> {
        self
    }
}
