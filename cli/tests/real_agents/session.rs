//! Sessions of an agent with and without Offcut.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::model::{Model, Script, Shown};
use crate::script::{Tools, create_project, files};

/// An agent that can be started without anybody at the keyboard.
pub trait Client: Tools {
    /// Its name in `offcut install`.
    const NAME: &'static str;
    /// Its program in the folder of all agents.
    const PROGRAM: &'static str;
    /// Its words for a command that exits with 3, if it tells the model.
    const EXIT_3: Option<&'static str>;

    /// Writes the settings of the user `home`: the model is at `url`, and `mcp` are the program and the
    /// script of an MCP server.
    fn settle(&self, home: &Path, url: &str, mcp: &[PathBuf; 2]);

    /// Adds the arguments and the environment of a session to the command that runs its program.
    fn start(&self, command: &mut Command, home: &Path, url: &str);

    /// Trusts the installed hook, as the user would who is asked. `command` runs its program for the user.
    fn trust(&self, _command: Command, _home: &Path) {}

    /// Arguments of the installation.
    fn options(&self) -> &'static [&'static str] {
        &[]
    }

    /// Its words about output that it has put into a file, of which it shows an excerpt.
    fn excerpt(&self) -> &'static str;

    /// Returns true if a line of a result differs between two runs.
    fn differs(&self, line: &str) -> bool {
        line.contains("/tmp")
    }
}

/// Writes settings in JSON.
pub fn write(path: &Path, settings: &Value) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, settings.to_string()).unwrap();
}

/// A session that is over.
pub struct Session {
    pub code: Option<i32>,
    pub files: Vec<(PathBuf, Vec<u8>)>,
    pub requests: Vec<usize>,
    pub rounds: Vec<Vec<Shown>>,
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

/// Runs a session of `client`, in which the model follows the script that `script` makes for a project.
pub fn run<C: Client>(client: &C, offcut: Offcut, script: impl FnOnce(&Path) -> Script) -> Session {
    let is_installed = offcut == Offcut::Installed;
    let agents = std::env::var_os("OFFCUT_AGENTS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/agents"),
        PathBuf::from,
    );
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join("project");
    create_project(&project);
    let program = |args: &[&str]| {
        let mut command = crate::support::command(args);
        environment(&mut command, home.path());
        let ran = crate::support::run_command(&mut command, "");
        assert_eq!(ran.code, 0, "{args:?}: {}{}", ran.out, ran.err);
        ran.out
    };
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
    if is_installed {
        let install = [&["install", C::NAME], client.options()].concat();
        println!("{}", program(&install));
        let mut command = Command::new(agents.join(C::PROGRAM));
        environment(&mut command, home.path());
        client.trust(command, home.path());
        let found = program(&["doctor", C::NAME]);
        assert!(found.contains("a probe of"), "{found}");
    }
    let mut command = Command::new("timeout");
    command.arg("180");
    let own = agents.join(C::PROGRAM);
    if offcut == Offcut::Wrapping {
        let ours = env!("CARGO_BIN_EXE_offcut");
        command.args([ours, "wrap", C::NAME]);
    } else {
        command.arg(&own);
    }
    client.start(&mut command, home.path(), &url);
    environment(&mut command, home.path());
    if offcut == Offcut::Wrapping {
        let path = std::env::var_os("PATH").unwrap();
        let folders = std::env::split_paths(&path);
        let folders = [own.parent().unwrap().to_owned()]
            .into_iter()
            .chain(folders);
        command.env("PATH", std::env::join_paths(folders).unwrap());
    }
    let output = command
        .current_dir(&project)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let log = std::mem::take(&mut *model.log.lock().unwrap());
    assert_eq!(log.refused, Vec::<String>::new());
    if output.status.code() != Some(0) {
        println!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    if is_installed {
        let text = std::fs::read_to_string(home.path().join(".local/share/offcut/hook.log"));
        assert!(text.is_err(), "the hook's log: {text:?}");
        program(&["uninstall", C::NAME]);
    }
    Session {
        code: output.status.code(),
        files: files(&project),
        requests: log.requests,
        rounds: log.rounds,
        _home: home,
    }
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
