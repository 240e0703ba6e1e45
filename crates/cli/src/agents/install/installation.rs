//! An agent, and the place where Offcut is installed.

use std::path::{Path, PathBuf};

use super::file::{because, refused};
use crate::agents::Agent;
use crate::agents::layout::Home;
use crate::failure::Failure;

/// An installation: an agent, the place of its settings, and what they are to name.
#[derive(Debug, Clone)]
pub struct Installation {
    /// The agent.
    pub agent: Agent,
    /// The project for which its user's own settings are changed, and not shared with others. `None` for those for all
    /// projects.
    pub project: Option<PathBuf>,
    /// True for a dry run, which writes nothing.
    pub is_dry: bool,
    /// The user's folder.
    pub home: Home,
    /// The directory that the agent gets the right to read: the store of the user's settings if it is one, else that of
    /// the user's folder.
    pub store: PathBuf,
    /// The program `offcut`, which the settings name.
    pub program: PathBuf,
}

impl Installation {
    /// The file that an installation changes: the agent's settings, or a plug-in of ours.
    pub(crate) fn path(&self) -> Result<PathBuf, Failure> {
        let facts = self.agent.facts();
        let [of_user, of_project] = facts.installed;
        match &self.project {
            None => facts.settings.join(of_user).ok_or_else(|| {
                let problem = "there is no home directory; set HOME";
                refused(Path::new(facts.name), problem)
            }),
            Some(folder) => {
                let problem = "it can't be opened; name the folder of a project";
                let opened = folder.canonicalize().map_err(because(folder, problem));
                opened.map(|folder| folder.join(of_project))
            }
        }
    }
}
