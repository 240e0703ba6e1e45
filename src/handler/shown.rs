//! Values that can replace a result.

use crate::content::Part;

/// A value that can replace a result. Public because [`Replacement`](super::Replacement) takes it,
/// but not exported from the crate.
pub trait IntoParts {
    /// Converts the value into parts.
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
