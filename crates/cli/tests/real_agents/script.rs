//! The script of a session: over twenty calls, as an agent makes them in a project.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use offcut_testkit::ShownResult;
use serde_json::{Value, json};

use crate::model::{Call, Script};

/// The tools of an agent.
pub trait Tools: Send + Sync + 'static {
    fn shell(&self, command: &str) -> Call;
    fn read(&self, path: &Path, offset: usize, limit: usize) -> Call;
    fn edit(&self, path: &Path, old: &str, new: &str) -> Call;
    fn write(&self, path: &Path, content: &str) -> Call;
    /// The tool `rows` of the MCP server `probe`, if the agent has MCP.
    fn rows(&self, arguments: Value) -> Option<Call>;
    /// Arguments of more calls of `rows`, for an agent in which only the results of MCP become shorter.
    fn more_rows(&self) -> Vec<Value> {
        Vec::new()
    }
    /// The lines in a result of `read`, without what the agent adds.
    fn lines_read(&self, result: &str) -> Vec<String>;
    /// A line of a file as `read` shows it.
    fn line_shown(&self, line: &str) -> String {
        line.to_owned()
    }
    /// The lines of a page as `read` shows them together.
    fn page_shown(&self, lines: Vec<String>) -> Vec<String> {
        lines
    }
}

/// A hint that the model was shown, and the part of the stored content that it has read after it.
#[derive(Clone, Debug)]
pub struct Followed {
    pub path: PathBuf,
    pub lines: Vec<String>,
}

/// The hints that a session followed.
pub type Trail = Arc<Mutex<Vec<Followed>>>;

/// Number of lines that are read of a stored result.
const PAGE: usize = 200;

/// Makes the script for a session in `project`. If `is_reader`, a call after each result with a hint reads the
/// start of the stored content.
pub fn script(tools: impl Tools, project: &Path, is_reader: bool) -> (Script, Trail) {
    let trail = Trail::default();
    let steps = steps(&tools, project);
    let seen = trail.clone();
    let script: Script = Arc::new(move |rounds: &[Vec<ShownResult>]| {
        // Each step is one round; each hint in its results adds another.
        let (mut round, mut followed) = (0, Vec::new());
        for step in &steps {
            if round == rounds.len() {
                *seen.lock().unwrap() = followed;
                return Some(step.clone());
            }
            let hints = hints(&rounds[round]);
            round += 1;
            for path in hints.into_iter().filter(|_| is_reader) {
                if round == rounds.len() {
                    return Some(vec![tools.read(&path, 1, PAGE)]);
                }
                let lines = tools.lines_read(&rounds[round][0].text);
                followed.push(Followed { path, lines });
                round += 1;
            }
        }
        *seen.lock().unwrap() = followed;
        None
    });
    (script, trail)
}

/// The paths in the hints of a round.
pub fn hints(round: &[ShownResult]) -> Vec<PathBuf> {
    let lines = round.iter().flat_map(|shown| shown.text.lines());
    // The agent may put a line number or a tag before a hint.
    let headers = lines.filter_map(|line| line.find("[offcut/1 ").map(|at| &line[at..]));
    let paths = headers.filter_map(|header| {
        let quoted = &header[header.find(" \"")? + 1..];
        let mut values = serde_json::Deserializer::from_str(quoted).into_iter::<String>();
        values.next()?.ok().map(PathBuf::from)
    });
    paths.collect()
}

/// The steps without hints.
fn steps(tools: &impl Tools, project: &Path) -> Vec<Vec<Call>> {
    let shell = |command: &str| vec![tools.shell(command)];
    let big = project.join("big.txt");
    let mut steps = vec![
        shell("ls"),
        shell("cat big.txt"),
        shell("seq 1 40000"),
        // No command needs a redirection or a substitution, for which Gemini CLI would ask its user.
        shell("cat big.txt; ls missing.txt; exit 3"),
        shell("head -c 3000 data.bin"),
        shell("sleep 1; echo slow"),
        shell("yes endless | head -c 2000000"),
        shell("seq 1 2000 | sed 's/.*/row & of the list/' | tee rows.txt"),
        vec![tools.read(&big, 1, 1_500)],
        vec![tools.read(&big, 700, 40)],
        vec![tools.edit(&big, "line 777 of the file\n", "line 777 was changed\n")],
        shell("grep -n line big.txt"),
        vec![tools.write(&project.join("new.txt"), "written\n")],
        vec![
            tools.shell("seq 1 3000"),
            tools.shell("seq 5000 8000"),
            tools.read(&project.join("small.txt"), 1, 10),
        ],
        // The shell of Claude Code would stay in the directory; OpenCode would ask its user about `..`.
        shell("(cd sub && pwd)"),
        shell("false"),
        shell("yes ä | head -n 9000 | tr -d '\\n'"),
        shell("cat small.txt"),
        vec![tools.read(&project.join("missing.txt"), 1, 10)],
        shell("git --version; find . -type f | sort"),
    ];
    let rows = [json!({"count": 600}), json!({"count": 600, "fails": true})];
    let rows = rows.into_iter().chain(tools.more_rows());
    steps.extend(rows.filter_map(|arguments| Some(vec![tools.rows(arguments)?])));
    steps.push(shell("cat rows.txt | sort | tail -n 500"));
    steps.push(shell("echo end | tee -a new.txt"));
    steps
}

/// Checks that each line read of a stored result is a line of it, from the first on.
pub fn check(tools: &impl Tools, trail: &Trail) {
    let trail = trail.lock().unwrap();
    assert!(trail.len() >= 6, "hints that were followed: {trail:#?}");
    for followed in trail.iter() {
        let stored = std::fs::read(&followed.path).unwrap();
        let stored = String::from_utf8(stored).unwrap();
        let expected: Vec<_> = stored
            .lines()
            .take(PAGE)
            .map(|line| tools.line_shown(line))
            .collect();
        let expected = tools.page_shown(expected);
        assert_eq!(followed.lines, expected, "{}", followed.path.display());
    }
}

/// Creates the files of a project.
pub fn create_project(project: &Path) {
    std::fs::create_dir_all(project.join("sub")).unwrap();
    let lines = (1..=1_500).map(|n| format!("line {n} of the file\n"));
    std::fs::write(project.join("big.txt"), lines.collect::<String>()).unwrap();
    std::fs::write(project.join("small.txt"), "small\n").unwrap();
    let bytes: Vec<u8> = (0..3_000_u32).map(|n| (n * 7 % 256) as u8).collect();
    std::fs::write(project.join("data.bin"), bytes).unwrap();
}

/// Checks that a session has done its work.
pub fn check_project(files: &[(PathBuf, Vec<u8>)]) {
    let text = |name: &str| {
        let found = files.iter().find(|(path, _)| path == Path::new(name));
        String::from_utf8(found.expect(name).1.clone()).unwrap()
    };
    assert_eq!(text("new.txt"), "written\nend\n");
    assert_eq!(text("rows.txt").lines().count(), 2_000);
    assert_eq!(
        text("big.txt").lines().nth(776),
        Some("line 777 was changed")
    );
}

/// The files below `folder`, by their paths, with their bytes.
pub fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_owned();
                files.push((name, std::fs::read(path).unwrap()));
            }
        }
    }
    files.sort();
    files
}

/// An argument of a call.
pub fn text(path: &Path) -> Value {
    path.to_str().unwrap().into()
}

/// The lines of a page that have a number and `separator` before them, without both.
pub fn numbered(page: &str, separator: &str) -> Vec<String> {
    let numbered = page.lines().filter_map(|line| line.split_once(separator));
    let is_number = |number: &str| number.trim().parse::<usize>().is_ok();
    numbered
        .filter(|(number, _)| is_number(number))
        .map(|(_, line)| line.to_owned())
        .collect()
}

/// A line as it is shown by a reader that cuts it after `most` UTF-16 units, and adds `mark`.
pub fn cut(line: &str, most: usize, mark: &str) -> String {
    let units: Vec<u16> = line.encode_utf16().collect();
    match units.get(..most) {
        Some(kept) if kept.len() < units.len() => String::from_utf16_lossy(kept) + mark,
        _ => line.to_owned(),
    }
}
