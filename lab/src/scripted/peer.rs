//! A context editor in a process of its own, such as the real code of another library.

use std::cell::RefCell;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::Result;

/// A context editor: it makes each request, and answers calls of its own tools.
pub trait Editor: std::fmt::Debug {
    /// Begins a conversation. Returns the tools that the editor adds to it.
    ///
    /// # Errors
    ///
    /// It does not work.
    fn begin(&self) -> Result<Vec<Value>>;

    /// The messages to send for all `messages` so far; `None` if the provider refuses them.
    ///
    /// # Errors
    ///
    /// It does not work.
    fn request(&self, tools: &[Value], messages: &[Value]) -> Result<Option<Vec<Value>>>;

    /// The result of a call of one of the editor's tools. For any other call, `None`, and the arguments
    /// with which it is to run.
    ///
    /// # Errors
    ///
    /// It does not work.
    fn answer(&self, tool: &str, arguments: Value) -> Result<(Option<String>, Value)>;
}

/// A context editor that is a program. `scripts/peer_policies/live.py` has the lines that it is asked with and
/// answers.
#[derive(Debug)]
pub struct Peer(RefCell<Process>);

#[derive(Debug)]
struct Process {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    /// Number of messages that it has been given.
    given: usize,
    request: Vec<Value>,
}

impl Process {
    fn ask(&mut self, question: &Value) -> Result<Value> {
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
    pub fn start(mut program: Command) -> io::Result<Self> {
        let no_pipe = || io::Error::from(io::ErrorKind::BrokenPipe);
        let mut child = program
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdin = child.stdin.take().ok_or_else(no_pipe)?;
        let stdout = BufReader::new(child.stdout.take().ok_or_else(no_pipe)?);
        Ok(Self(RefCell::new(Process {
            child,
            stdin,
            stdout,
            given: 0,
            request: Vec::new(),
        })))
    }
}

impl Editor for Peer {
    fn begin(&self) -> Result<Vec<Value>> {
        let mut process = self.0.borrow_mut();
        (process.given, process.request) = (0, Vec::new());
        let answer = process.ask(&json!({"new": true}))?;
        Ok(answer["tools"].as_array().cloned().unwrap_or_default())
    }

    fn request(&self, _tools: &[Value], messages: &[Value]) -> Result<Option<Vec<Value>>> {
        let mut process = self.0.borrow_mut();
        let new = &messages[process.given..];
        let answer = process.ask(&json!({"add": new}))?;
        let (Some(keep), Value::Array(edited)) = (answer["keep"].as_u64(), &answer["messages"])
        else {
            return Err("the context editor's answer is not a request".into());
        };
        process.given = messages.len();
        process.request.truncate(usize::try_from(keep)?);
        process.request.extend(edited.iter().cloned());
        Ok(Some(process.request.clone()))
    }

    fn answer(&self, tool: &str, arguments: Value) -> Result<(Option<String>, Value)> {
        let call = json!({"call": {"name": tool, "arguments": arguments}});
        let mut answer = self.0.borrow_mut().ask(&call)?;
        let changed = answer.get_mut("arguments").map(Value::take);
        let changed = changed.filter(|changed| !changed.is_null());
        let result = answer["result"].as_str().map(str::to_owned);
        Ok((result, changed.unwrap_or(arguments)))
    }
}
