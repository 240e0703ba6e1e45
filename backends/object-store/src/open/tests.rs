//! What opens and what does not.
