//! Sessions of an agent with and without Offcut, compared.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::model::{Model, Shown};
use crate::script::{self, Tools, Trail, create_project, files};

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
struct Session {
    code: Option<i32>,
    files: Vec<(PathBuf, Vec<u8>)>,
    requests: Vec<usize>,
    rounds: Vec<Vec<Shown>>,
    trail: Trail,
    _home: tempfile::TempDir,
}

impl Session {
    /// The length in bytes of the messages in all requests.
    fn bill(&self) -> usize {
        self.requests.iter().sum()
    }
}

/// A variant of a session: without Offcut, with it, or with a model that also follows each hint.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Without,
    With,
    Reading,
}

/// Runs the same session without and with Offcut, and compares what they leave.
pub fn compare<C: Client>(make: impl Fn() -> C) {
    let without = run(&make, Mode::Without);
    let with = run(&make, Mode::With);
    let reading = run(&make, Mode::Reading);
    for session in [&without, &with, &reading] {
        assert_eq!(session.code, Some(0));
        assert_eq!(session.files, without.files, "the files of the project");
    }
    script::check_project(&without.files);
    script::check(&make(), &reading.trail);
    let plain = |text: &str| plain(&make(), text);

    if let Some(words) = C::EXIT_3 {
        for session in [&without, &with] {
            let mut results = session.rounds.iter().flatten();
            assert!(results.any(|shown| shown.text.contains(words)), "{words}");
        }
    }
    assert_eq!(with.rounds.len(), without.rounds.len());
    let mut shortened = 0;
    for (round, own) in with.rounds.iter().zip(&without.rounds) {
        assert_eq!(round.len(), own.len());
        for (shown, own) in round.iter().zip(own) {
            assert_eq!(shown.is_error, own.is_error, "{shown:?} {own:?}");
            if script::hints(std::slice::from_ref(shown)).is_empty() {
                assert_eq!(plain(&shown.text), plain(&own.text));
                continue;
            }
            // The agent's own preview of output that it has put into a file is short too.
            let is_cut = own.text.contains("<persisted-output>");
            assert!(is_cut || shown.text.len() < own.text.len(), "{own:?}");
            shortened += 1;
        }
    }
    let calls: usize = without.rounds.iter().map(Vec::len).sum();
    assert!(calls >= 20, "{calls} calls");
    let read = reading.trail.lock().unwrap().len();
    assert_eq!(read, shortened, "each hint is followed");
    assert!(with.bill() < without.bill());
    println!(
        "{}: {calls} calls, {shortened} shortened, each read back; messages of {} bytes in {} requests became {} ({:.1} %)",
        C::NAME,
        without.bill(),
        without.requests.len(),
        with.bill(),
        100.0 * with.bill() as f64 / without.bill() as f64,
    );
}

/// A text without the lines that differ between two runs.
fn plain(client: &impl Client, text: &str) -> String {
    let lines = text.lines().filter(|line| !client.differs(line));
    lines.collect::<Vec<_>>().join("\n")
}

fn run<C: Client>(make: &impl Fn() -> C, mode: Mode) -> Session {
    let is_installed = mode != Mode::Without;
    let agents = std::env::var_os("OFFCUT_AGENTS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/agents"),
        PathBuf::from,
    );
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join("project");
    create_project(&project);
    let offcut = |args: &[&str]| {
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
    let (script, trail) = script::script(make(), &project, mode == Mode::Reading);
    let (model, url) = runtime.block_on(Model::start(script));
    make().settle(home.path(), &url, &[node, server]);
    if is_installed {
        println!("{}", offcut(&["install", C::NAME]));
        let found = offcut(&["doctor", C::NAME]);
        assert!(found.contains("a probe of"), "{found}");
    }
    let mut command = Command::new("timeout");
    command.arg("180").arg(agents.join(C::PROGRAM));
    make().start(&mut command, home.path(), &url);
    environment(&mut command, home.path());
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
        offcut(&["uninstall", C::NAME]);
    }
    Session {
        code: output.status.code(),
        files: files(&project),
        requests: log.requests,
        rounds: log.rounds,
        trail,
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
