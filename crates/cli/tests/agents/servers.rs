//! MCP servers in settings as people have them, with Offcut put in front and taken back.

use std::fs;
use std::path::PathBuf;

use offcut_cli::agents::Agent;
use offcut_cli::agents::doctor::{self, Level};
use offcut_cli::agents::install::{Installation, Scope, Servers};
use offcut_cli::agents::layout::Home;
use tempfile::TempDir;

const PROGRAM: &str = "/opt/o \"x\"/offcut";

struct Project {
    folder: TempDir,
    installation: Installation,
}

impl Project {
    fn new(agent: Agent) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let installation = Installation {
            agent,
            scope: Scope::Project(folder.path().to_owned()),
            home: Home::at(folder.path().join("home")),
            store: folder.path().join("home/store"),
            program: PROGRAM.into(),
        };
        Self {
            folder,
            installation,
        }
    }

    fn with(agent: Agent, text: &str) -> Self {
        let project = Self::new(agent);
        fs::create_dir_all(project.file().parent().unwrap()).unwrap();
        fs::write(project.file(), text).unwrap();
        project
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join(match self.installation.agent {
            Agent::ClaudeCode => ".mcp.json",
            Agent::GeminiCli => ".gemini/settings.json",
            _ => "opencode.json",
        })
    }

    fn text(&self) -> String {
        fs::read_to_string(self.file()).unwrap()
    }

    /// Puts Offcut in front of the servers.
    fn wrap(&self) -> Servers {
        let changed = self.installation.install_with_servers().unwrap();
        changed.servers.unwrap()
    }

    /// Takes it out again.
    fn unwrap(&self) -> Option<Servers> {
        self.installation.uninstall().unwrap().servers
    }
}

/// The values of settings, without empty lists of arguments.
fn values(text: &str) -> serde_json::Value {
    let text = text.replace("\"args\":[ ],", "");
    let root = jsonc_parser::cst::CstRootNode::parse(&text, &jsonc_parser::ParseOptions::default());
    root.unwrap().to_serde_value().unwrap()
}

/// Settings of each agent, with the servers over stdio and those with a URL.
fn files() -> Vec<(
    Agent,
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
)> {
    let claude = "{\r\n  \"mcpServers\": {\r\n\t\"a\": {\"command\": \"npx\", \"args\": [\"-y\", \"x\"], \"env\": {\"K\": \"v\"}},\r\n    \"b\" : { \"args\":[ ],\"command\":\"b\\u0062\" },\r\n  \"c\": {\"type\": \"stdio\", \"command\": \"c\"},\r\n \"d\": {\"type\": \"http\", \"url\": \"https://e\"}}, \"n\": 1.0e2}";
    let state = "{\"projects\": {\"/p\": {\"mcpServers\": {\"mine\": {\"command\": \"m\"}}, \"other\": []}}, \"mcpServers\": {}}";
    let gemini = "// mine\n{\"mcpServers\": {\"a\": {\"command\": \"a\" /* why */, \"args\": [\n  \"1\", // one\n]}, \"h\": {\"httpUrl\": \"https://e\"}},}";
    let opencode = "{\"mcp\": {\"a\": {\"type\": \"local\", \"command\": [ \"a\", \"b c\" ]}, \"u\": {\"type\": \"remote\", \"url\": \"https://e\"}}}";
    vec![
        (Agent::ClaudeCode, claude, &["a", "b", "c"], &["d"]),
        (Agent::ClaudeCode, state, &["mine"], &[]),
        (Agent::GeminiCli, gemini, &["a"], &["h"]),
        (Agent::OpenCode, opencode, &["a"], &["u"]),
    ]
}

#[test]
fn offcut_is_put_in_front_of_servers_and_taken_back() {
    for (agent, text, stdio, remote) in files() {
        for is_lost in [false, true] {
            // One file has its servers and its hook.
            let is_lost = is_lost && agent != Agent::GeminiCli;
            let project = Project::with(agent, text);
            let wrapped = project.wrap();
            assert_eq!(
                (wrapped.wrapped, wrapped.bare.len()),
                (to_owned(stdio), 0),
                "{agent}"
            );
            assert_eq!(wrapped.others, to_owned(remote), "{agent}");
            assert!(wrapped.is_changed);
            let now = project.text();
            let program = serde_json::Value::from(PROGRAM).to_string();
            assert_eq!(now.matches(&*program).count(), stdio.len(), "{now}");
            for comment in ["// mine", "/* why */", "// one", "1.0e2"] {
                assert_eq!(now.contains(comment), text.contains(comment), "{comment}");
            }
            // A second time, nothing changes.
            assert!(!project.wrap().is_changed && project.text() == now);
            let without = project.installation.install().unwrap().servers.unwrap();
            assert!(!without.is_changed && project.text() == now);
            // Another program takes the place of the first.
            let moved = Installation {
                program: "/opt/new/offcut".into(),
                ..project.installation.clone()
            };
            assert!(moved.install().unwrap().servers.unwrap().is_changed);
            assert!(!project.text().contains(&*program));
            if is_lost {
                fs::remove_dir_all(moved.home.path()).unwrap();
            }
            let bare = moved.uninstall().unwrap().servers.unwrap();
            assert_eq!((bare.wrapped.len(), bare.bare), (0, to_owned(stdio)));
            match is_lost {
                false => assert_eq!(project.text(), text, "{agent}"),
                // Without the user's folder, nobody knows how a list was written.
                true => assert_eq!(values(&project.text()), values(text), "{agent}"),
            }
            assert_eq!(project.unwrap(), None);
        }
    }
}

#[test]
fn servers_that_the_user_wrapped_stay_until_others_are_asked_for() {
    let text = r#"{"mcpServers": {
  "a": {"command": "offcut", "args": [
    "mcp",
    "--",
    "npx"
  ]},
  "b": {"command": "env", "args": ["OFFCUT_HOME=/srv/x", "offcut", "mcp", "--", "b"]},
  "c": {"command": "c"}
}}"#;
    let project = Project::with(Agent::ClaudeCode, text);
    let servers = project.installation.install().unwrap().servers.unwrap();
    assert!(!servers.is_changed && project.text() == text);
    assert_eq!(servers.wrapped, ["a", "b"]);
    assert_eq!(project.wrap().wrapped, ["a", "b", "c"]);
    let program = serde_json::Value::from(PROGRAM).to_string();
    assert_eq!(project.text().matches(&*program).count(), 3);
    // Written anew, with an item per line, they stay so.
    let text = project.text().replace(", ", ",\n      ");
    fs::write(project.file(), &text).unwrap();
    let again = project.installation.install().unwrap().servers.unwrap();
    assert!(!again.is_changed && !project.wrap().is_changed);
    assert_eq!(project.text(), text);
}

#[cfg(unix)]
#[test]
fn an_installation_that_fails_leaves_the_earlier_one_with_its_record() {
    let text = r#"{"mcp": {"a": {"command": ["a"]}}}"#;
    let project = Project::with(Agent::OpenCode, text);
    let plugin = project.folder.path().join(".opencode/plugins/offcut.js");
    fs::create_dir_all(plugin.parent().unwrap()).unwrap();
    fs::write(&plugin, "mine").unwrap();
    project.wrap();
    let records = project.installation.home.path().join("installed/opencode");
    let state = || {
        let mut files: Vec<_> = fs::read_dir(&records)
            .unwrap()
            .map(|file| file.unwrap().path())
            .collect();
        files.sort();
        files.extend([plugin.clone(), project.file()]);
        let text = |file| fs::read_to_string(file).unwrap();
        files.into_iter().map(text).collect::<Vec<_>>()
    };
    let before = state();
    // A file with two names is changed by the first, so it is not as it was for the second.
    let other = project.file().with_file_name("opencode.jsonc");
    std::os::unix::fs::symlink(project.file(), &other).unwrap();
    let moved = Installation {
        program: "/opt/new/offcut".into(),
        ..project.installation.clone()
    };
    let error = moved.install().unwrap_err().to_string();
    assert!(error.contains("at the same moment"), "{error}");
    assert_eq!(state(), before);
    fs::remove_file(other).unwrap();
    project.unwrap();
    assert_eq!(fs::read_to_string(&plugin).unwrap(), "mine");
    assert_eq!(project.text(), text);
}

#[test]
fn an_empty_list_of_arguments_and_none_come_back() {
    for text in [
        r#"{"mcpServers": {"a": {"command": "c"}}}"#,
        r#"{"mcpServers": {"a": {"command": "c", "args": []}}}"#,
    ] {
        let project = Project::with(Agent::ClaudeCode, text);
        project.wrap();
        project.unwrap();
        assert_eq!(project.text(), text);
    }
}

#[test]
fn a_key_that_is_there_twice_is_refused() {
    let text = r#"{"mcpServers": {"a": {"command": "x", "args": ["1"], "command": "b"}}}"#;
    let project = Project::with(Agent::ClaudeCode, text);
    let error = project.installation.install_with_servers().unwrap_err();
    assert!(error.to_string().contains("`command` is there twice"));
    assert_eq!(project.text(), text);
}

fn to_owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn a_wrapped_command_is_the_old_one_after_offcuts_own() {
    let project = Project::with(
        Agent::ClaudeCode,
        r#"{"mcpServers": {"a": {"command": "npx", "args": ["x", "-y"]}}}"#,
    );
    project.wrap();
    // The user's own folder is not the usual one, so it is named.
    let text = |project: &Project| {
        let home = format!("OFFCUT_HOME={}", project.installation.home.path().display());
        assert!(project.text().contains(&home), "{}", project.text());
        // Words that go in front of others may have more spaces between them.
        let words = project.text().replace(&home, "HOME");
        words.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        text(&project),
        r#"{"mcpServers": {"a": {"command": "env", "args": ["HOME", "/opt/o \"x\"/offcut", "mcp", "--", "npx", "x", "-y"]}}}"#
    );
    let project = Project::with(
        Agent::OpenCode,
        r#"{"mcp": {"a": {"command": ["npx", "x"]}}}"#,
    );
    project.wrap();
    assert_eq!(
        text(&project),
        r#"{"mcp": {"a": {"command": ["env", "HOME", "/opt/o \"x\"/offcut", "mcp", "--", "npx", "x"]}}}"#
    );
}

#[test]
fn what_others_change_in_between_stays() {
    let text = r#"{"mcpServers": {"a": {"command": "a", "args": ["1"]}, "b": {"command": "b"}}}"#;
    let project = Project::with(Agent::ClaudeCode, text);
    project.wrap();
    // An argument more, a server less, one that the user wrapped, and a change elsewhere.
    let changed = project.text().replace(r#""1"]"#, r#""1", "2"]"#);
    let from = changed.find(r#", "b": "#).unwrap();
    let own = r#", "own": {"command": "offcut", "args": ["mcp", "--limit", "9000", "--", "own"]}}, "x": 1}"#;
    fs::write(project.file(), format!("{}{own}", &changed[..from])).unwrap();
    let servers = project.installation.servers().unwrap().unwrap();
    assert_eq!(servers.wrapped, ["a", "own"]);
    project.unwrap();
    assert_eq!(
        values(&project.text()),
        values(&format!(
            r#"{{"mcpServers": {{"a": {{"command": "a", "args": ["1", "2"]}}{own}"#
        ))
    );
}

#[test]
fn offcut_is_taken_out_of_settings_that_were_written_anew() {
    for (agent, text, stdio, _) in files() {
        let project = Project::with(agent, text);
        project.wrap();
        // Line breaks between all words, a comma after the last, and another name for the first server.
        let apart = if agent == Agent::ClaudeCode {
            "\n  ]"
        } else {
            ",\n  ]"
        };
        let home = format!(
            "\"OFFCUT_HOME={}\", ",
            project.installation.home.path().display()
        );
        let now = project
            .text()
            .replace(&home, &home.replace(", ", "\n    ,\n"));
        let now = now
            .replace("\"--\", ", "\"--\",\n    ")
            .replace("\"]", &format!("\"{apart}"));
        let (old, new) = (format!("\"{}\"", stdio[0]), "\"new\"");
        let now = now.replacen(&old, new, 1);
        fs::write(project.file(), &now).unwrap();
        let bare = project.unwrap().unwrap();
        assert_eq!(
            (bare.wrapped.len(), bare.bare.len()),
            (0, stdio.len()),
            "{now}"
        );
        let text = project.text();
        assert!(
            !text.contains("offcut") && !text.contains("env\","),
            "{text}"
        );
    }
}

#[test]
fn servers_in_both_files_of_opencode_come_and_go_together() {
    let text = |name| format!("{{\"mcp\": {{\"{name}\": {{\"command\": [\"{name}\"]}}}}}}");
    let project = Project::with(Agent::OpenCode, &text("a"));
    let other = project.file().with_file_name("opencode.jsonc");
    fs::write(&other, text("b")).unwrap();
    let wrapped = project.wrap();
    assert_eq!(wrapped.wrapped, ["b", "a"]);
    assert_eq!(wrapped.path, project.folder.path().canonicalize().unwrap());
    // If one is broken, the other stays too.
    let now = project.text();
    let whole = fs::read_to_string(&other).unwrap();
    fs::write(&other, "{\"offcut").unwrap();
    project.installation.uninstall().unwrap_err();
    assert_eq!(project.text(), now);
    fs::write(&other, whole).unwrap();
    project.unwrap();
    assert_eq!(
        (project.text(), fs::read_to_string(&other).unwrap()),
        (text("a"), text("b"))
    );
}

#[cfg(unix)]
#[test]
fn if_one_file_of_opencode_is_read_only_both_stay() {
    use std::os::unix::fs::PermissionsExt;
    let text = r#"{"mcp": {"a": {"command": ["a"]}}}"#;
    let project = Project::with(Agent::OpenCode, text);
    let other = project.file().with_file_name("opencode.jsonc");
    fs::write(&other, text).unwrap();
    fs::set_permissions(project.file(), fs::Permissions::from_mode(0o444)).unwrap();
    let error = project.installation.install_with_servers().unwrap_err();
    assert!(error.to_string().contains("read-only"), "{error}");
    assert_eq!(fs::read_to_string(&other).unwrap(), text);
    assert_eq!(project.text(), text);
    // Neither is there a hook without them.
    assert!(!project.folder.path().join(".opencode").exists());
    assert!(!project.folder.path().join("home/installed").exists());
}

#[test]
fn servers_whose_command_is_none_are_named() {
    let text = r#"{"mcpServers": {"a": {"command": "a", "args": null}, "b": {"command": 3}, "c": {"command": "c"}}}"#;
    let project = Project::with(Agent::ClaudeCode, text);
    let wrapped = project.wrap();
    assert_eq!(wrapped.others, ["a", "b"]);
    assert_eq!(wrapped.wrapped, ["c"]);
}

#[test]
fn files_that_are_missing_or_wrong_stay_as_they_are() {
    for agent in [Agent::ClaudeCode, Agent::GeminiCli, Agent::OpenCode] {
        let project = Project::new(agent);
        let servers = project.wrap();
        let is_new = agent == Agent::GeminiCli;
        assert!(servers.wrapped.is_empty() && project.file().exists() == is_new);
        let project = Project::with(agent, "{\"key\": sk-secret");
        let error = project.installation.install_with_servers().unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("it is not") && !error.contains("secret"),
            "{error}"
        );
        assert_eq!(project.text(), "{\"key\": sk-secret");
    }
    for agent in [Agent::Codex, Agent::Pi] {
        let without = Project::new(agent);
        let installed = without.installation.install_with_servers().unwrap();
        assert_eq!(installed.servers, None);
    }
}

#[test]
fn doctor_names_the_servers_whose_program_is_gone() {
    let (agent, text, ..) = files().swap_remove(0);
    let mut project = Project::with(agent, text);
    project.installation.program = project.folder.path().join("offcut");
    let about_servers = || {
        let findings = doctor::examine(&project.installation);
        findings
            .into_iter()
            .filter(|one| one.text.contains("MCP servers"))
            .collect::<Vec<_>>()
    };
    assert!(about_servers().is_empty());
    project.wrap();
    // The program in front of them is not there.
    let found = about_servers();
    assert!(
        found[0].level == Level::Problem && found[0].text.ends_with(": a, b, c"),
        "{found:?}"
    );
    let advice = found[0].advice.as_deref().unwrap();
    assert!(advice.contains("that you put there yourself"), "{advice}");
    fs::write(&project.installation.program, "").unwrap();
    assert!(about_servers().is_empty());
}
