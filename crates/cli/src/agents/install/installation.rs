//! An agent, and the place where Offcut is installed.

use std::path::PathBuf;

use crate::agents::Agent;
use crate::agents::layout::Home;

/// The place of an agent's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// The user's own settings, for all projects.
    User,
    /// The user's own settings for the project in this folder, which are not shared with others.
    Project(PathBuf),
}

/// An installation: an agent, the place of its settings, and what they are to name.
#[derive(Debug, Clone)]
pub struct Installation {
    /// The agent.
    pub agent: Agent,
    /// The place of its settings.
    pub scope: Scope,
    /// The user's folder.
    pub home: Home,
    /// The program `offcut`, which the settings name.
    pub program: PathBuf,
}
