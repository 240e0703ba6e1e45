//! A task: files to begin with, a prompt, an agent, and what must come of it.

use std::fs;
use std::io;
use std::path::Path;

use crate::scripted::step::{Step, Thought};
use crate::scripted::view::RequestView;

/// The sizes of a task, by name.
pub const SIZES: [&str; 4] = ["small", "middling", "large", "beyond"];

/// A task.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// Its name.
    pub name: &'static str,
    /// The number of lines, records, pages or answers: small, middling, large, and more than a context window holds.
    pub sizes: [usize; 4],
    pub(crate) set_up: fn(usize) -> Set,
    /// Its agent, which is a function of the messages that it is shown, as a model is.
    pub(crate) agent: fn(&RequestView) -> Thought,
}

/// A task of one size.
#[derive(Debug, Default)]
pub(crate) struct Set {
    pub(crate) prompt: String,
    /// Files to begin with.
    pub(crate) files: Vec<(String, String)>,
    /// The right answer.
    pub(crate) answer: String,
    /// Files as they must be in the end.
    pub(crate) expected: Vec<(String, String)>,
}

impl Task {
    /// Writes the files of a size into `folder`.
    pub(crate) fn lay_out(&self, folder: &Path, size: usize) -> io::Result<Set> {
        let set = (self.set_up)(size);
        for (path, text) in &set.files {
            let path = folder.join(path);
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(path, text)?;
        }
        Ok(set)
    }

    /// Lets the agent act on what it is shown.
    pub(crate) fn step(&self, view: &RequestView) -> Step {
        (self.agent)(view).unwrap_or_else(|before| before)
    }
}

impl Set {
    /// Checks an answer and the files. An error says what is wrong.
    pub(crate) fn checked(&self, folder: &Path, answer: &str) -> Result<(), String> {
        if answer != self.answer {
            return Err(format!("answered {answer:?} for {:?}", self.answer));
        }
        for (path, text) in &self.expected {
            if fs::read_to_string(folder.join(path)).ok().as_ref() != Some(text) {
                return Err(format!("{path} is not as it must be"));
            }
        }
        Ok(())
    }
}

/// A sentence that no task depends on.
pub(crate) fn filler(random: &mut offcut_cli::trials::Random) -> String {
    const WORDS: [&str; 24] = [
        "the", "queue", "was", "drained", "before", "a", "second", "worker", "took", "over", "and",
        "every", "shard", "reported", "its", "state", "to", "an", "older", "replica", "without",
        "losing", "any", "batch",
    ];
    let words: Vec<&str> = (0..12).map(|_| WORDS[random.below(WORDS.len())]).collect();
    words.join(" ")
}
