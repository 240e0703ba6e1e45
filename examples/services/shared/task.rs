//! The command line of the examples.

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;

/// The task that the command line gives to an agent.
#[derive(Clone, Debug)]
pub struct Task {
    /// The model's name at the provider.
    pub model: String,
    /// The directory that the tool searches.
    pub directory: PathBuf,
    /// The user's question.
    pub question: String,
}

impl Task {
    /// Reads `MODEL DIRECTORY QUESTION` from the process's arguments.
    ///
    /// # Errors
    ///
    /// An argument is missing, or is not Unicode. The text says how to call the program.
    pub fn from_args() -> Result<Self, Box<dyn Error>> {
        let mut arguments = std::env::args_os().skip(1);
        let usage = "pass a model, a directory and a question: MODEL DIRECTORY \"QUESTION\"";
        let mut next = || arguments.next().ok_or(usage);
        let (model, directory, question) = (next()?, next()?, next()?);
        let text = |argument: std::ffi::OsString| argument.into_string().map_err(|_| usage);
        Ok(Self {
            model: text(model)?,
            directory: directory.into(),
            question: text(question)?,
        })
    }
}

/// Prints the model's answer without control characters that a terminal would obey.
///
/// # Errors
///
/// Standard output can't be written to.
pub fn print(answer: &str) -> io::Result<()> {
    let is_harmless = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    let answer: String = answer.chars().filter(is_harmless).collect();
    writeln!(io::stdout(), "{answer}")
}
