//! Four real tools: list, grep, read, and run a command. None of them limits its output, because
//! the library does.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use offcut::agent::{Tool, ToolDefinition};
use offcut::{ToolCall, ToolError, ToolOutput};
use regex::Regex;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::args::Failure;

/// Commands that only read. A real model needs a sandbox, not a list.
const PROGRAMS: [&str; 3] = ["git", "ls", "wc"];
const TIMEOUT: Duration = Duration::from_secs(10);
/// In bytes. Larger files are data rather than text, and `grep` skips them.
const MAX_GREP: u64 = 256 * 1024;

/// The directory that the tools work in. No path leads out of it.
#[derive(Debug)]
pub(crate) struct Directory {
    root: PathBuf,
}

impl Directory {
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        match fs::canonicalize(path) {
            Ok(root) if root.is_dir() => Ok(Self { root }),
            Ok(_) => Err(Failure::usage(format!(
                "--dir {}: not a directory: name one",
                path.display()
            ))),
            Err(error) => Err(Failure::usage(format!("--dir {}: {error}", path.display()))),
        }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Resolves a path written by the model. Fails if it leads out of the directory.
    fn inside(&self, path: &str) -> Result<PathBuf, ToolError> {
        let full = fs::canonicalize(self.root.join(path))
            .map_err(|error| ToolError::new(format!("{path}: {error}")))?;
        if full.starts_with(&self.root) {
            Ok(full)
        } else {
            Err(ToolError::new(format!(
                "{path} is outside the directory: copy a path from `list_files`"
            )))
        }
    }

    /// All text files by path, with their sizes in bytes. Skips hidden files, links and builds.
    fn files(&self) -> Vec<(String, u64)> {
        let mut files = Vec::new();
        let mut to_visit = vec![self.root.clone()];
        while let Some(directory) = to_visit.pop() {
            let Ok(entries) = fs::read_dir(directory) else {
                continue;
            };
            for entry in entries.flatten() {
                let (name, path) = (entry.file_name(), entry.path());
                let is_skipped = name.as_encoded_bytes().starts_with(b".")
                    || name == "target"
                    || name == "node_modules";
                let Ok(kind) = entry.file_type() else {
                    continue;
                };
                if is_skipped {
                    continue;
                } else if kind.is_dir() {
                    to_visit.push(path);
                } else if let (true, Ok(below), Ok(size)) = (
                    kind.is_file(),
                    path.strip_prefix(&self.root),
                    text_size(&path),
                ) {
                    files.extend(size.map(|size| (below.display().to_string(), size)));
                }
            }
        }
        files.sort();
        files
    }
}

/// A text file's size in bytes; `None` for a binary file.
fn text_size(path: &Path) -> std::io::Result<Option<u64>> {
    let file = fs::File::open(path)?;
    let size = file.metadata()?.len();
    let mut head = Vec::new();
    file.take(4096).read_to_end(&mut head)?;
    Ok((!head.contains(&0)).then_some(size))
}

/// `list_files {}`
#[derive(Debug)]
pub(crate) struct ListFiles(pub(crate) Arc<Directory>);

#[async_trait]
impl Tool for ListFiles {
    fn definition(&self) -> ToolDefinition {
        define(
            "list_files",
            "All text files, each with its size in bytes.",
            &json!({}),
        )
    }

    async fn call(&self, _: &ToolCall) -> Result<ToolOutput, ToolError> {
        let directory = self.0.clone();
        blocking(move || {
            let mut out = String::new();
            for (path, size) in directory.files() {
                out.push_str(&format!("{size:>9}  {path}\n"));
            }
            Ok(if out.is_empty() {
                "there are no text files here".to_owned()
            } else {
                out
            })
        })
        .await
    }
}

/// `grep { pattern }`
#[derive(Debug)]
pub(crate) struct Grep(pub(crate) Arc<Directory>);

#[async_trait]
impl Tool for Grep {
    fn definition(&self) -> ToolDefinition {
        let pattern = json!({"type": "string", "description": "A regular expression."});
        define(
            "grep",
            "The lines of all text files that match, as path:line:text.",
            &json!({"pattern": pattern}),
        )
    }

    async fn call(&self, call: &ToolCall) -> Result<ToolOutput, ToolError> {
        let pattern = text(&arguments(call)?, "pattern")?;
        let pattern = Regex::new(&pattern)
            .map_err(|error| ToolError::new(format!("`pattern` can't be used: {error}")))?;
        let directory = self.0.clone();
        blocking(move || {
            let mut out = String::new();
            for (path, _) in directory
                .files()
                .into_iter()
                .filter(|(_, size)| *size <= MAX_GREP)
            {
                let Ok(content) = fs::read(directory.root.join(&path)) else {
                    continue;
                };
                let content = String::from_utf8_lossy(&content);
                for (line, number) in content
                    .lines()
                    .zip(1..)
                    .filter(|(line, _)| pattern.is_match(line))
                {
                    out.push_str(&format!("{path}:{number}:{line}\n"));
                }
            }
            Ok(if out.is_empty() {
                "no lines match".to_owned()
            } else {
                out
            })
        })
        .await
    }
}

/// `read { path }`
#[derive(Debug)]
pub(crate) struct Read(pub(crate) Arc<Directory>);

#[async_trait]
impl Tool for Read {
    fn definition(&self) -> ToolDefinition {
        let path = json!({"type": "string", "description": "A path as `list_files` shows it."});
        define("read", "A whole text file.", &json!({"path": path}))
    }

    async fn call(&self, call: &ToolCall) -> Result<ToolOutput, ToolError> {
        let path = text(&arguments(call)?, "path")?;
        let directory = self.0.clone();
        blocking(move || {
            let full = directory.inside(&path)?;
            fs::read_to_string(full).map_err(|error| ToolError::new(format!("{path}: {error}")))
        })
        .await
    }
}

/// `run { program, args }`
#[derive(Debug)]
pub(crate) struct Run(pub(crate) Arc<Directory>);

#[async_trait]
impl Tool for Run {
    fn definition(&self) -> ToolDefinition {
        let program = json!({"type": "string", "enum": PROGRAMS});
        let args = json!({"type": "array", "items": {"type": "string"}});
        define(
            "run",
            "Runs a program in the directory and returns what it prints.",
            &json!({"program": program, "args": args}),
        )
    }

    async fn call(&self, call: &ToolCall) -> Result<ToolOutput, ToolError> {
        let given = arguments(call)?;
        let program = text(&given, "program")?;
        if !PROGRAMS.contains(&program.as_str()) {
            return Err(ToolError::new(format!(
                "`{program}` is not allowed; use one of: {}",
                PROGRAMS.join(", ")
            )));
        }
        let args = given["args"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        let mut command = Command::new(&program);
        command
            .args(args)
            .current_dir(&self.0.root)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command.env("LC_ALL", "C").env("GIT_OPTIONAL_LOCKS", "0");
        let ended = match tokio::time::timeout(TIMEOUT, command.output()).await {
            Ok(ended) => ended.map_err(|error| {
                ToolError::new(format!("{program} could not be started: {error}"))
            })?,
            Err(_) => {
                return Err(ToolError::new(format!(
                    "{program} was stopped after {} seconds",
                    TIMEOUT.as_secs()
                )));
            }
        };
        let (out, complaints) = (
            String::from_utf8_lossy(&ended.stdout),
            String::from_utf8_lossy(&ended.stderr),
        );
        if ended.status.success() {
            Ok(format!("{out}{complaints}").into())
        } else {
            // A failing command has a result too. It is marked as an error, and the reduction keeps
            // short errors in the context.
            Ok(ToolOutput::error(format!(
                "{}\n{complaints}{out}",
                ended.status
            )))
        }
    }
}

fn define(name: &str, description: &str, properties: &Value) -> ToolDefinition {
    let required: Vec<&String> = properties
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name)
        .collect();
    let parameters = json!({"type": "object", "properties": properties, "required": required});
    ToolDefinition {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters,
    }
}

fn arguments(call: &ToolCall) -> Result<Value, ToolError> {
    serde_json::from_str(&call.arguments)
        .map_err(|error| ToolError::new(format!("the arguments are not valid JSON: {error}")))
}

fn text(arguments: &Value, name: &str) -> Result<String, ToolError> {
    arguments[name]
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| ToolError::new(format!("`{name}` is missing")))
}

/// Runs `work` on a blocking thread, so that parallel calls run in parallel.
async fn blocking(
    work: impl FnOnce() -> Result<String, ToolError> + Send + 'static,
) -> Result<ToolOutput, ToolError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map(ToolOutput::from),
        Err(error) => Err(ToolError::new(format!("the tool failed: {error}"))),
    }
}
