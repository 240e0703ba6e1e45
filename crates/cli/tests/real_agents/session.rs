//! Sessions of an agent with and without Offcut.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use offcut_testkit::ShownResult;
use serde_json::Value;

use crate::model::{Model, Script};
use crate::script::{Tools, create_project, files};

/// An agent that can be started without anybody at the keyboard.
pub trait Client: Tools {
    /// Its name in `offcut install`.
    const NAME: &'static str;
    /// Its program in the folder of all agents.
    const PROGRAM: &'static str;
    /// Its words for a command that exits with 3, if it tells the model.
    const EXIT_3: Option<&'static str>;
    /// True if it reads a command's stdout and stderr from two pipes, so that their order is left to chance.
    const STREAMS_RACE: bool = false;

    /// Writes the settings of the user `home`: the model is at `url`, and `mcp` are the program and the
    /// script of an MCP server.
    fn settle(&self, home: &Path, url: &str, mcp: &[PathBuf; 2]);

    /// Adds the arguments and the environment of a session to the command that runs its program.
    fn start(&self, command: &mut Command, home: &Path, url: &str);

    /// Trusts the installed hook, as the user would who is asked. `command` runs its program for the user.
    fn trust(&self, _command: Command, _home: &Path) {}

    /// Its words about output that it has put into a file, of which it shows an excerpt.
    fn excerpt(&self) -> &'static str;

    /// True if its hook can replace a result only by an error.
    const REPLACES_BY_ERRORS: bool = false;

    /// Returns true if a line of a result differs between two runs.
    fn differs(&self, line: &str) -> bool {
        line.contains("/tmp")
    }
}

/// An agent that can go on with a session.
pub trait Resumes: Client {
    /// Adds the arguments and the environment of a second prompt to the command that runs its program.
    fn resume(&self, command: &mut Command, home: &Path, url: &str);
}

/// Writes settings in JSON.
pub fn write(path: &Path, settings: &Value) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, settings.to_string()).unwrap();
}

/// A session that is over.
pub struct Session {
    pub offcut: Offcut,
    pub code: Option<i32>,
    pub files: Vec<(PathBuf, Vec<u8>)>,
    pub requests: Vec<usize>,
    pub rounds: Vec<Vec<ShownResult>>,
    /// Requests that do not begin with the whole one before.
    pub breaks: usize,
    /// Number of times that the agent compacted its history.
    pub compactions: usize,
    _home: tempfile::TempDir,
}

impl Session {
    /// The length in bytes of the messages in all requests.
    pub fn bill(&self) -> usize {
        self.requests.iter().sum()
    }
}

/// The state of Offcut in a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Offcut {
    Absent,
    /// In the agent's hooks.
    Installed,
    /// Between the agent and its provider.
    Wrapping,
}

/// A user with a project, an agent and a model.
struct Place {
    home: tempfile::TempDir,
    agents: PathBuf,
    runtime: tokio::runtime::Runtime,
    model: Model,
    url: String,
}

impl Place {
    fn new(client: &impl Client, script: impl FnOnce(&Path) -> Script) -> Self {
        let agents = std::env::var_os("OFFCUT_AGENTS").map_or_else(
            || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/agents"),
            PathBuf::from,
        );
        let home = tempfile::tempdir().unwrap();
        let project = home.path().join("project");
        create_project(&project);
        let node = Command::new("sh")
            .args(["-c", "command -v node"])
            .output()
            .unwrap();
        let node = PathBuf::from(String::from_utf8(node.stdout).unwrap().trim());
        let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real_agents/rows.mjs");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap();
        let (model, url) = runtime.block_on(Model::start(script(&project)));
        client.settle(home.path(), &url, &[node, server]);
        Self {
            home,
            agents,
            runtime,
            model,
            url,
        }
    }

    /// Runs our own program.
    fn program(&self, args: &[&str]) -> String {
        let mut command = crate::support::command(args);
        environment(&mut command, self.home.path());
        let ran = crate::support::run_command(&mut command, "");
        assert_eq!(ran.code, 0, "{args:?}: {}{}", ran.out, ran.err);
        ran.out
    }

    /// Runs the agent for one prompt, for which `start` adds the arguments. Returns its exit code.
    fn prompt<C: Client>(
        &self,
        client: &C,
        offcut: Offcut,
        start: impl FnOnce(&C, &mut Command, &Path, &str),
    ) -> Option<i32> {
        let mut command = Command::new("timeout");
        command.arg("600");
        let own = self.agents.join(C::PROGRAM);
        if offcut == Offcut::Wrapping {
            let ours = env!("CARGO_BIN_EXE_offcut");
            command.args([ours, "wrap", C::NAME]);
        } else {
            command.arg(&own);
        }
        start(client, &mut command, self.home.path(), &self.url);
        environment(&mut command, self.home.path());
        if offcut == Offcut::Wrapping {
            let path = std::env::var_os("PATH").unwrap();
            let folders = std::env::split_paths(&path);
            let folders = [own.parent().unwrap().to_owned()]
                .into_iter()
                .chain(folders);
            command.env("PATH", std::env::join_paths(folders).unwrap());
        }
        let output = command
            .current_dir(self.home.path().join("project"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        if output.status.code() != Some(0) {
            println!(
                "{}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
        }
        output.status.code()
    }

    /// The session that is over.
    fn end(self, offcut: Offcut, code: Option<i32>) -> Session {
        let log = std::mem::take(&mut *self.model.log.lock().unwrap());
        assert_eq!(log.refused, Vec::<String>::new());
        drop(self.runtime);
        Session {
            offcut,
            code,
            files: files(&self.home.path().join("project")),
            requests: log.requests,
            rounds: log.rounds,
            breaks: log.breaks,
            compactions: log.compactions,
            _home: self.home,
        }
    }
}

/// Runs a session of `client`, in which the model follows the script that `script` makes for a project.
pub fn run<C: Client>(client: &C, offcut: Offcut, script: impl FnOnce(&Path) -> Script) -> Session {
    let place = Place::new(client, script);
    let is_installed = offcut == Offcut::Installed;
    if is_installed {
        println!("{}", place.program(&["install", C::NAME]));
        let mut command = Command::new(place.agents.join(C::PROGRAM));
        environment(&mut command, place.home.path());
        client.trust(command, place.home.path());
        let found = place.program(&["doctor", C::NAME]);
        assert!(found.contains("a probe of"), "{found}");
    }
    let code = place.prompt(client, offcut, C::start);
    if is_installed {
        let log = place.home.path().join(".local/share/offcut/hook.log");
        let text = std::fs::read_to_string(log);
        assert!(text.is_err(), "the hook's log: {text:?}");
        place.program(&["uninstall", C::NAME]);
    }
    place.end(offcut, code)
}

/// Runs a session of two prompts, each with a process of its own. `between` is called when the first is over.
pub fn run_resumed<C: Resumes>(
    client: &C,
    offcut: Offcut,
    script: impl FnOnce(&Path) -> Script,
    between: impl FnOnce(),
) -> Session {
    let place = Place::new(client, script);
    assert_eq!(place.prompt(client, offcut, C::start), Some(0));
    between();
    let code = place.prompt(client, offcut, C::resume);
    place.end(offcut, code)
}

/// Runs a session in which the model says after `round` rounds that its window is full.
pub fn run_compacted<C: Client>(
    client: &C,
    offcut: Offcut,
    script: impl FnOnce(&Path) -> Script,
    round: usize,
) -> Session {
    let place = Place::new(client, script);
    place.model.log.lock().unwrap().full_after = Some(round);
    let code = place.prompt(client, offcut, C::start);
    place.end(offcut, code)
}

/// An environment in which nothing but the home directory of the session is known.
fn environment(command: &mut Command, home: &Path) {
    let own: Vec<_> = command
        .get_envs()
        .map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned)))
        .collect();
    command.env_clear();
    for (name, value) in own {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    // Temporary files of agents go with the session.
    let temporary = home.join("tmp");
    std::fs::create_dir_all(&temporary).unwrap();
    command.env("HOME", home).env("TMPDIR", temporary);
    command.env("PATH", std::env::var_os("PATH").unwrap());
}
