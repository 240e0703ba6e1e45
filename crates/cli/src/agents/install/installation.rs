//! An agent, and the place where Offcut is installed.

use std::path::{Path, PathBuf};

use super::file::{because, refused};
use crate::agents::Agent;
use crate::agents::layout::Home;
use crate::failure::Failure;

/// The place of an agent's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// The user's own settings, for all projects.
    User,
    /// The user's own settings for the project in this folder, which are not shared with others.
    Project(PathBuf),
}

impl Scope {
    /// The file of `agent` in this scope: `of_user`, or `of_project` in the project's folder.
    pub(super) fn place(
        &self,
        agent: Agent,
        of_user: Option<PathBuf>,
        of_project: &str,
    ) -> Result<PathBuf, Failure> {
        match self {
            Self::User => of_user.ok_or_else(|| {
                let problem = "there is no home directory; set HOME";
                refused(Path::new(agent.facts().name), problem)
            }),
            Self::Project(folder) => {
                let problem = "it can't be opened; name the folder of a project";
                let opened = folder.canonicalize().map_err(because(folder, problem));
                opened.map(|folder| folder.join(of_project))
            }
        }
    }
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
    /// The directory that the agent gets the right to read: the store of the user's settings if it is one, else that of
    /// the user's folder.
    pub store: PathBuf,
    /// The program `offcut`, which the settings name.
    pub program: PathBuf,
}

/// The change that is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Goal {
    Install,
    InstallWithServers,
    Uninstall,
}
