//! An agent.

use crate::step::Step;
use crate::view::View;

/// A function of what it is shown, as a model is.
pub(crate) type Agent = fn(&View) -> Step;
