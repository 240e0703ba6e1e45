//! The type of agents.

use crate::scripted::step::Step;
use crate::scripted::view::RequestView;

/// An agent: a function of the messages that it is shown, as a model is.
pub(crate) type Agent = fn(&RequestView) -> Step;
