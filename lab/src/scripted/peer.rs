//! A context editor in a process of its own, such as the real code of another library.

use std::cell::RefCell;
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;

use serde_json::{Value, json};

/// A context editor that decides about each request. `scripts/peer_policies/live.py` has the lines that it
/// is asked with and answers.
#[derive(Clone, Debug)]
pub struct Peer(Rc<RefCell<Process>>);

#[derive(Debug)]
struct Process {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Process {
    fn ask(&mut self, question: &Value) -> Result<Value, Box<dyn Error>> {
        writeln!(self.stdin, "{question}")?;
        self.stdin.flush()?;
        let mut line = String::new();
        if self.stdout.read_line(&mut line)? == 0 {
            return Err("the context editor has ended".into());
        }
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

impl Peer {
    /// Starts the program of a context editor.
    ///
    /// # Errors
    ///
    /// It does not start.
    pub fn start(mut program: Command) -> std::io::Result<Self> {
        let no_pipe = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        let mut child = program
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdin = child.stdin.take().ok_or_else(no_pipe)?;
        let stdout = BufReader::new(child.stdout.take().ok_or_else(no_pipe)?);
        Ok(Self(Rc::new(RefCell::new(Process {
            child,
            stdin,
            stdout,
        }))))
    }

    /// Begins a conversation. Returns the tools that the editor adds to it.
    pub(crate) fn begin(&self) -> Result<Vec<Value>, Box<dyn Error>> {
        let answer = self.0.borrow_mut().ask(&json!({"new": true}))?;
        Ok(answer["tools"].as_array().cloned().unwrap_or_default())
    }

    /// Takes the messages that are new, and makes `request` the next one.
    pub(crate) fn edit(
        &self,
        new: &[Value],
        request: &mut Vec<Value>,
    ) -> Result<(), Box<dyn Error>> {
        let answer = self.0.borrow_mut().ask(&json!({"add": new}))?;
        let (Some(keep), Value::Array(messages)) = (answer["keep"].as_u64(), &answer["messages"])
        else {
            return Err("the context editor's answer is not a request".into());
        };
        request.truncate(usize::try_from(keep)?);
        request.extend(messages.iter().cloned());
        Ok(())
    }

    /// The result of a call of one of the editor's tools. For any other call, `None`, and the arguments
    /// with which it is to run.
    pub(crate) fn answer(
        &self,
        tool: &str,
        arguments: Value,
    ) -> Result<(Option<String>, Value), Box<dyn Error>> {
        let call = json!({"call": {"name": tool, "arguments": arguments}});
        let mut answer = self.0.borrow_mut().ask(&call)?;
        let changed = answer.get_mut("arguments").map(Value::take);
        let changed = changed.filter(|changed| !changed.is_null());
        let result = answer["result"].as_str().map(str::to_owned);
        Ok((result, changed.unwrap_or(arguments)))
    }
}
