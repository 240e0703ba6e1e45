//! Settings files as people have them, installed into and taken back.

use std::fs;
use std::path::{Path, PathBuf};

use offcut_cli::agents::Agent;
use offcut_cli::agents::doctor::{self, Level};
use offcut_cli::agents::install::{Changed, Installation, Outcome};
use offcut_cli::agents::layout::Home;
use offcut_cli::failure::Failure;
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A user with a project.
struct User {
    folder: TempDir,
}

impl User {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("project")).unwrap();
        Self { folder }
    }

    fn with(settings: &str) -> Self {
        let user = Self::new();
        fs::create_dir_all(user.settings().parent().unwrap()).unwrap();
        fs::write(user.settings(), settings).unwrap();
        user
    }

    fn settings(&self) -> PathBuf {
        let folder = self.folder.path().canonicalize().unwrap();
        folder.join("project/.claude/settings.local.json")
    }

    fn installation(&self, program: &str) -> Installation {
        Installation {
            agent: Agent::ClaudeCode,
            project: Some(self.folder.path().join("project")),
            is_dry: false,
            home: Home::at(self.folder.path().join("home")),
            store: self.folder.path().join("home/store"),
            program: program.into(),
        }
    }

    fn install(&self) -> Result<Changed, Failure> {
        self.installation("/opt/offcut").install()
    }

    fn uninstall(&self) -> Result<Changed, Failure> {
        self.installation("/opt/offcut").uninstall()
    }

    fn text(&self) -> String {
        fs::read_to_string(self.settings()).unwrap()
    }
}

/// Settings files as people have them.
const FILES: [&str; 20] = [
    "",
    "\n",
    "{}",
    "{}\n",
    "{\n}\n",
    "{ }",
    "// nothing yet\n{}\n",
    "{\"model\":\"opus\"}",
    "{\n  \"model\": \"opus\",\n  \"env\": {\n    \"A\": \"1\"\n  }\n}\n",
    "{\n\t\"permissions\": {\n\t\t\"allow\": [\"Bash(ls:*)\"],\n\t\t\"deny\": [\"Read(./.env)\"]\n\t}\n}",
    "{\r\n  \"permissions\": {\r\n    \"allow\": []\r\n  }\r\n}\r\n",
    "\u{feff}{\n  \"hooks\": {}\n}\n",
    "{\n  // my own\n  \"hooks\": {\n    /* a formatter */\n    \"PostToolUse\": [\n      {\"matcher\": \"Edit|Write\", \"hooks\": [{\"type\": \"command\", \"command\": \"prettier\"}]}, // last\n    ],\n  },\n}\n",
    "{\n  \"hooks\": {\n    \"PostToolUse\": [\n      {\n        \"matcher\": \"Bash\",\n        \"hooks\": [\n          {\n            \"type\": \"command\",\n            \"command\": \"rtk hook claude\"\n          }\n        ]\n      }\n    ],\n    \"Stop\": []\n  }\n}\n",
    "{\"hooks\":{\"PostToolUse\":[]},\"permissions\":{\"allow\":[]}}",
    "{\"hooks\":{\"PreToolUse\":[{\"matcher\":\"Bash\",\"hooks\":[{\"type\":\"command\",\"command\":\"offcut-like hook\"}]}]}}\n",
    "{ \"permissions\": { \"allow\": [ \"Read(//srv/**)\", \"Bash\" ] , \"defaultMode\" : \"plan\" } }\n\n\n",
    "{\"a\": \"\\u00e9\\ud83d\\ude00\", \"n\": 1.0e3, \"big\": 123456789012345678901234567890}\n",
    "{\"statusLine\": {\"type\": \"command\", \"command\": \"echo \\\"hi\\\" # {\"}}\n// the end",
    "{\n    \"enabledPlugins\": {},\n\n\n    \"feedbackSurveyState\": {\"lastShownTime\": 1754}\n}\n",
];

/// The settings without Offcut's own values.
fn without_ours(mut settings: Value) -> Value {
    let is_ours = |value: &Value| {
        value.to_string().contains("/opt/offcut") || value.to_string().contains("/home/store")
    };
    for list in ["/hooks/PostToolUse", "/permissions/allow"] {
        if let Some(list) = settings.pointer_mut(list).and_then(Value::as_array_mut) {
            list.retain(|value| !is_ours(value));
        }
    }
    settings
}

/// A value without empty lists and objects, which stay where Offcut has added something.
fn filled(value: Value) -> Value {
    let is_filled = |value: &Value| *value != json!([]) && *value != json!({});
    match value {
        Value::Object(fields) => {
            let fields = fields
                .into_iter()
                .map(|(name, value)| (name, filled(value)));
            Value::Object(fields.filter(|(_, value)| is_filled(value)).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(filled).collect()),
        value => value,
    }
}

fn parse(text: &str) -> Value {
    let text = text.trim_start_matches('\u{feff}');
    let root = jsonc_parser::cst::CstRootNode::parse(text, &jsonc_parser::ParseOptions::default());
    let value = root.unwrap().value();
    value.map_or_else(|| json!({}), |value| value.to_serde_value().unwrap())
}

#[test]
fn uninstalling_restores_every_file_byte_for_byte() {
    for file in FILES {
        let user = User::with(file);
        let installed = user.install().unwrap();
        assert_eq!(installed.outcome, Outcome::Added, "{file}");
        let text = user.text();
        let settings = parse(&text);
        let hooks = settings["hooks"]["PostToolUse"].as_array().unwrap();
        assert!(hooks.iter().any(|hook| {
            hook["hooks"][0]["command"]
                .as_str()
                .unwrap()
                .ends_with("'/opt/offcut' hook claude-code || true")
        }));
        let rules = settings["permissions"]["allow"].as_array().unwrap();
        assert!(
            rules
                .iter()
                .any(|rule| rule.as_str().unwrap().ends_with("/home/store/**)"))
        );
        for comment in [
            "// nothing yet",
            "// my own",
            "/* a formatter */",
            "// last",
            "// the end",
        ] {
            assert_eq!(text.contains(comment), file.contains(comment), "{text}");
        }
        assert_eq!(text.starts_with('\u{feff}'), file.starts_with('\u{feff}'));
        assert_eq!(fs::read_to_string(installed.backup.unwrap()).unwrap(), file);

        assert_eq!(user.install().unwrap().outcome, Outcome::Unchanged);
        assert_eq!(user.text(), text, "a second time");
        assert_eq!(user.uninstall().unwrap().outcome, Outcome::Restored);
        assert_eq!(user.text(), file);
        assert_eq!(user.uninstall().unwrap().outcome, Outcome::Unchanged);
        assert_eq!(user.text(), file);
    }
}

#[test]
fn a_file_that_somebody_else_changed_keeps_the_change() {
    for file in FILES {
        let user = User::with(file);
        user.install().unwrap();
        let mut settings = parse(&user.text());
        settings["theme"] = "dark".into();
        fs::write(user.settings(), format!("// changed\n{settings:#}\n")).unwrap();
        assert_eq!(user.install().unwrap().outcome, Outcome::Unchanged);
        assert_eq!(user.uninstall().unwrap().outcome, Outcome::Removed);
        let mut expected = parse(file);
        expected["theme"] = "dark".into();
        assert_eq!(filled(parse(&user.text())), filled(expected), "{file}");
        assert!(user.text().starts_with("// changed\n"));
        // Another installation begins afresh.
        let before = user.text();
        user.install().unwrap();
        user.uninstall().unwrap();
        assert_eq!(user.text(), before);
    }
}

#[test]
fn no_empty_list_of_ours_is_left_and_no_comma_of_others_goes() {
    for (file, commas) in [
        ("{}", 0),
        ("{\"model\": \"opus\"}", 1),
        ("{\"model\": \"opus\",}", 2),
        ("{\"permissions\": {\"allow\": [\"Bash\",],}}", 3),
        (
            "{\n  \"permissions\": {\n    \"allow\": [\n      \"Bash\", // mine\n    ],\n  },\n}\n",
            4,
        ),
    ] {
        let user = User::with(file);
        user.install().unwrap();
        let edit = |text: &str| text.replacen('{', "{\"theme\": \"dark\",", 1);
        fs::write(user.settings(), edit(&user.text())).unwrap();
        assert_eq!(user.uninstall().unwrap().outcome, Outcome::Removed);
        let left = user.text();
        assert_eq!(parse(&left), parse(&edit(file)), "{left}");
        assert_eq!(left.matches(',').count(), commas, "{left}");
    }
    // Nor does what somebody has noted in them.
    let user = User::with("{}");
    user.install().unwrap();
    let noted = user
        .text()
        .replacen("\"PostToolUse\": [", "\"PostToolUse\": [ // mine\n", 1);
    fs::write(user.settings(), noted).unwrap();
    user.uninstall().unwrap();
    assert!(user.text().contains("// mine"), "{}", user.text());
    assert_eq!(parse(&user.text()), json!({"hooks": {"PostToolUse": []}}));
}

#[test]
fn a_hook_that_somebody_changed_is_neither_doubled_nor_left_behind() {
    let own = json!({"type": "command", "command": "mine"});
    let edits: [(&str, Value, Value); 3] = [
        ("/0/hooks/0/timeout", json!(60), json!([])),
        ("/0/matcher", json!("Bash|Glob"), json!([])),
        ("/0/hooks", json!([own.clone()]), json!([{"hooks": [own]}])),
    ];
    for (place, new, left) in edits {
        let user = User::with("{\"a\": 1}");
        user.install().unwrap();
        let change = |user: &User| {
            let mut settings = parse(&user.text());
            let changed = settings["hooks"]["PostToolUse"].pointer_mut(place).unwrap();
            match (changed, &new) {
                (Value::Array(hooks), Value::Array(new)) => hooks.extend(new.clone()),
                (changed, new) => *changed = new.clone(),
            }
            fs::write(user.settings(), settings.to_string()).unwrap();
        };
        let of_others = |user: &User| {
            let mut groups = parse(&user.text())["hooks"]["PostToolUse"].clone();
            for group in groups.as_array_mut().into_iter().flatten() {
                group.as_object_mut().unwrap().remove("matcher");
            }
            groups
        };
        change(&user);
        assert_eq!(user.install().unwrap().outcome, Outcome::Added, "{place}");
        let text = user.text();
        assert_eq!(text.matches(" hook claude-code").count(), 1, "{text}");
        let values = parse(&text).to_string();
        assert!(values.contains(r#""timeout":30"#), "{text}");
        assert!(!values.contains(r#""timeout":60"#), "{text}");
        user.uninstall().unwrap();
        let others = of_others(&user);
        assert!(
            others.is_null() && left == json!([]) || others == left,
            "{others}"
        );

        let user = User::with("{\"a\": 1}");
        user.install().unwrap();
        change(&user);
        assert_eq!(
            user.uninstall().unwrap().outcome,
            Outcome::Removed,
            "{place}"
        );
        let others = of_others(&user);
        assert!(
            others.is_null() && left == json!([]) || others == left,
            "{others}"
        );
        assert!(!user.text().contains("offcut"), "{}", user.text());
    }

    // Nor is one whose line was changed.
    let user = User::with("{}");
    for is_installed in [true, false] {
        user.install().unwrap();
        let changed = user.text().replace(" || true", " || date");
        fs::write(user.settings(), &changed).unwrap();
        if is_installed {
            user.install().unwrap();
            assert_eq!(user.text().matches(" hook claude-code").count(), 1);
        }
        user.uninstall().unwrap();
        assert!(!user.text().contains("offcut"), "{}", user.text());
    }
}

#[test]
fn an_installation_is_taken_back_though_the_settings_could_not_name_its_store_any_more() {
    let user = User::with(FILES[12]);
    user.install().unwrap();
    let mut renamed = user.installation("/opt/offcut");
    renamed.store = user.folder.path().join("store (1)");
    renamed.install().unwrap_err();
    assert_eq!(renamed.uninstall().unwrap().outcome, Outcome::Restored);
    assert_eq!(user.text(), FILES[12]);
}

#[test]
fn without_its_backup_or_record_an_installation_is_taken_out_too() {
    let records = |user: &User| user.folder.path().join("home/installed/claude-code");
    for lost in ["backup", "json", "both"] {
        for file in [FILES[8], FILES[12]] {
            for program in ["/opt/offcut", "/usr/bin/offcut"] {
                let user = User::with(file);
                user.install().unwrap();
                match lost {
                    "both" => fs::remove_dir_all(records(&user)).unwrap(),
                    ending => {
                        let mut files = fs::read_dir(records(&user)).unwrap();
                        let mut file = files.find_map(|file| {
                            let path = file.unwrap().path();
                            (path.extension()? == ending).then_some(path)
                        });
                        fs::remove_file(file.take().unwrap()).unwrap();
                    }
                }
                let moved = user.installation(program);
                moved.install().unwrap();
                let text = user.text();
                assert_eq!(text.matches(" hook claude-code").count(), 1, "{text}");
                assert!(text.contains(program), "{text}");
                moved.uninstall().unwrap();
                assert_eq!(filled(parse(&user.text())), filled(parse(file)), "{lost}");
            }
        }
    }
}

#[test]
fn hooks_of_other_programs_stay() {
    let command = "/opt/other/tool hook claude-code || true";
    let hook = json!({"hooks": [{"type": "command", "command": command}]});
    let others = json!({"hooks": {"PostToolUse": [hook]}}).to_string();
    let user = User::with(&others);
    let uninstalled = user.uninstall().unwrap();
    assert_eq!(uninstalled.outcome, Outcome::Unchanged);
    assert_eq!(
        (user.text(), uninstalled.removed.len()),
        (others.clone(), 0)
    );
    // Ours goes, with a record and without one.
    for program in ["/opt/offcut", "/opt/o c/offcut"] {
        for is_lost in [false, true] {
            let installed = user.installation(program).install().unwrap();
            let changed = user.text() + "// changed\n";
            fs::write(user.settings(), changed).unwrap();
            if is_lost {
                fs::remove_dir_all(user.folder.path().join("home/installed")).unwrap();
            }
            let moved = user.installation(&program.replace("/opt", "/usr"));
            let removed = moved.uninstall().unwrap();
            assert_eq!(removed.removed[0], installed.added[0]);
            assert_eq!(removed.outcome, Outcome::Removed);
            assert_eq!(filled(parse(&user.text())), filled(parse(&others)));
            fs::write(user.settings(), &others).unwrap();
        }
    }
}

#[test]
fn only_removed_values_are_named() {
    for is_lost in [false, true] {
        let user = User::with("{\"a\": 1}");
        let values = user.install().unwrap().added;
        assert_eq!(values.len(), 2);
        let mut settings = parse(&user.text());
        settings["permissions"]["allow"] = json!([]);
        fs::write(user.settings(), settings.to_string()).unwrap();
        if is_lost {
            fs::remove_dir_all(user.folder.path().join("home/installed")).unwrap();
        }
        let moved = user.installation("/usr/bin/offcut");
        assert_eq!(moved.uninstall().unwrap().removed, values[..1]);
        assert!(moved.uninstall().unwrap().removed.is_empty());
    }
}

#[test]
fn a_new_file_is_removed_again() {
    let user = User::new();
    assert_eq!(user.install().unwrap().outcome, Outcome::Created);
    assert!(user.text().ends_with("}\n"), "{}", user.text());
    // Another installation knows too which folders are ours.
    let moved = user.installation("/usr/bin/offcut");
    assert_eq!(moved.install().unwrap().outcome, Outcome::Added);
    assert_eq!(moved.uninstall().unwrap().outcome, Outcome::Deleted);
    let folder = user.settings().parent().unwrap().to_owned();
    assert!(!folder.exists());
    // Those that somebody else has made or uses stay.
    fs::create_dir(&folder).unwrap();
    user.install().unwrap();
    user.uninstall().unwrap();
    fs::remove_dir(&folder).unwrap();
    user.install().unwrap();
    fs::write(folder.join("mine"), "").unwrap();
    user.uninstall().unwrap();
    assert!(folder.join("mine").exists() && !user.settings().exists());
}

#[test]
fn another_program_replaces_the_first() {
    for is_touched in [false, true] {
        let user = User::with(FILES[12]);
        user.install().unwrap();
        if is_touched {
            let text = user.text() + "// touched\n";
            fs::write(user.settings(), text).unwrap();
        }
        let moved = user.installation("/usr/local/it's here/offcut");
        moved.install().unwrap();
        let text = user.text();
        assert_eq!(
            text.matches(" hook claude-code || true").count(),
            1,
            "{text}"
        );
        let program = r"'/usr/local/it'\\''s here/offcut' hook";
        assert!(text.contains(program), "{text}");
        user.uninstall().unwrap();
        match is_touched {
            false => assert_eq!(user.text(), FILES[12]),
            true => {
                assert_eq!(filled(parse(&user.text())), filled(parse(FILES[12])));
                assert!(user.text().ends_with("// touched\n"));
            }
        }
    }
}

#[test]
fn values_that_the_user_had_stay() {
    let user = User::new();
    user.install().unwrap();
    let own = user.text();
    user.uninstall().unwrap();
    fs::create_dir_all(user.settings().parent().unwrap()).unwrap();
    fs::write(user.settings(), &own).unwrap();
    assert_eq!(user.install().unwrap().outcome, Outcome::Unchanged);
    assert_eq!(user.text(), own);
}

#[test]
fn files_that_cant_be_understood_stay_unchanged() {
    let cases = [
        ("[]", "not a JSON object"),
        ("{", "not JSON"),
        ("{\"hooks\": 5}", "`hooks` is not an object"),
        (
            "{\"hooks\": {\"PostToolUse\": {}}}",
            "`PostToolUse` is not a list",
        ),
        (
            "{\"permissions\": {\"allow\": \"Bash\"}}",
            "`allow` is not a list",
        ),
        ("{\"hooks\": {}, \"hooks\": {}}", "`hooks` is there twice"),
        ("{\"key\": \"sk-secret\" \"b\": 1}", "not JSON"),
    ];
    for (file, expected) in cases {
        let user = User::with(file);
        let error = user.install().unwrap_err();
        let text = error.to_string();
        assert!(
            ["settings.local.json", "mend it"]
                .iter()
                .all(|part| text.contains(part))
                && text.contains(expected),
            "{text}"
        );
        assert!(!text.contains("secret"), "{text}");
        assert_eq!(user.text(), file);
        assert!(
            !user.folder.path().join("home/installed").exists(),
            "nothing to take back"
        );
    }
}

#[cfg(unix)]
#[test]
fn links_stay_links_and_modes_stay() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let user = User::with("{}");
    let dotfiles = user.folder.path().join("dotfiles.json");
    fs::rename(user.settings(), &dotfiles).unwrap();
    fs::set_permissions(&dotfiles, fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&dotfiles, user.settings()).unwrap();
    user.install().unwrap();
    assert!(user.settings().is_symlink());
    assert_eq!(
        fs::metadata(&dotfiles).unwrap().permissions().mode() & 0o777,
        0o640
    );
    user.uninstall().unwrap();
    assert!(user.settings().is_symlink());
    assert_eq!(user.text(), "{}");

    fs::remove_file(&dotfiles).unwrap();
    let error = user.install().unwrap_err().to_string();
    assert!(error.contains("it can't be read"), "{error}");
    assert!(user.settings().is_symlink());
}

#[cfg(unix)]
#[test]
fn what_a_new_file_would_not_have_stays() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    let user = User::with("{\"a\": 1}");
    let other = user.folder.path().join("dotfile");
    fs::hard_link(user.settings(), &other).unwrap();
    user.install().unwrap();
    assert_eq!(user.text(), fs::read_to_string(&other).unwrap());
    assert!(user.text().contains("/opt/offcut"));
    user.uninstall().unwrap();
    assert_eq!(fs::read_to_string(&other).unwrap(), "{\"a\": 1}");

    fs::remove_file(&other).unwrap();
    fs::set_permissions(user.settings(), fs::Permissions::from_mode(0o600)).unwrap();
    // Only root may give a file away.
    if chown(user.settings(), Some(1_000), None).is_ok() {
        user.install().unwrap();
        let found = fs::metadata(user.settings()).unwrap();
        assert_eq!((found.uid(), found.mode() & 0o777), (1_000, 0o600));
        user.uninstall().unwrap();
        assert_eq!(user.text(), "{\"a\": 1}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn access_lists_and_attributes_stay() {
    let user = User::with("{}");
    let flags = rustix::fs::XattrFlags::empty();
    if rustix::fs::setxattr(user.settings(), "user.note", b"mine", flags).is_err() {
        // This file system has none.
        return;
    }
    user.install().unwrap();
    let mut value = [0; 4];
    let length = rustix::fs::getxattr(user.settings(), "user.note", &mut value[..]);
    assert_eq!((length, &value), (Ok(4), b"mine"));
}

#[cfg(unix)]
#[test]
fn a_file_that_is_not_regular_is_refused() {
    let user = User::with("{}");
    fs::remove_file(user.settings()).unwrap();
    let refused = || {
        let error = user.install().unwrap_err().to_string();
        assert!(error.contains("not a regular file"), "{error}");
        let error = user.uninstall().unwrap_err().to_string();
        assert!(error.contains("not a regular file"), "{error}");
    };
    let made = std::process::Command::new("mkfifo")
        .arg(user.settings())
        .status();
    assert!(made.unwrap().success());
    refused();
    fs::remove_file(user.settings()).unwrap();
    for device in ["/dev/zero", "/dev/null"] {
        std::os::unix::fs::symlink(device, user.settings()).unwrap();
        refused();
        fs::remove_file(user.settings()).unwrap();
    }
    fs::create_dir(user.settings()).unwrap();
    refused();
}

#[test]
fn a_file_that_is_too_long_is_refused() {
    let user = User::with("{}");
    let file = fs::File::create(user.settings()).unwrap();
    file.set_len(16 * 1024 * 1024 + 1).unwrap();
    let error = user.install().unwrap_err().to_string();
    assert!(error.contains("it is longer than 16 MiB"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_read_only_file_stays_unchanged() {
    use std::os::unix::fs::PermissionsExt;
    let user = User::with("{\"a\": 1}");
    fs::set_permissions(user.settings(), fs::Permissions::from_mode(0o444)).unwrap();
    if fs::OpenOptions::new()
        .write(true)
        .open(user.settings())
        .is_ok()
    {
        // Root may write to any file.
        return;
    }
    let error = user.install().unwrap_err().to_string();
    assert!(error.contains("make it writable"), "{error}");
    assert_eq!(user.text(), "{\"a\": 1}");
    assert_eq!(user.uninstall().unwrap().outcome, Outcome::Unchanged);
}

#[cfg(unix)]
#[test]
fn backups_can_only_be_read_by_their_user() {
    use std::os::unix::fs::PermissionsExt;
    let user = User::with("{\"env\": {\"KEY\": \"sk-secret\"}}");
    user.install().unwrap();
    let folder = user.folder.path().join("home/installed/claude-code");
    let files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .collect();
    assert_eq!(files.len(), 2);
    for file in files {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn odd_paths_are_refused() {
    let user = User::new();
    let odd = Installation {
        store: user.folder.path().join("a*b"),
        ..user.installation("/opt/offcut")
    };
    assert!(
        odd.install()
            .unwrap_err()
            .to_string()
            .contains("set OFFCUT_HOME")
    );
    for program in ["/opt/off\ncut", "/opt/a\n/offcut", "/opt/tool"] {
        assert!(user.installation(program).install().is_err());
    }
    assert!(!user.settings().exists());
}

#[test]
fn a_plug_in_is_ours_alone() {
    for agent in [Agent::OpenCode, Agent::Pi] {
        let user = User::new();
        let installation = Installation {
            agent,
            ..user.installation("/opt/o'x/offcut")
        };
        let installed = installation.install().unwrap();
        assert_eq!(installed.outcome, Outcome::Created);
        let path = installed.path;
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(r#""/opt/o'x/offcut","hook""#), "{text}");
        assert!(!text.contains("__OFFCUT"));
        // Another program replaces it.
        let moved = Installation {
            program: "/usr/bin/offcut".into(),
            ..installation.clone()
        };
        assert_eq!(moved.install().unwrap().outcome, Outcome::Added);
        assert_eq!(moved.uninstall().unwrap().outcome, Outcome::Deleted);
        assert!(!path.exists());
        assert_eq!(moved.uninstall().unwrap().outcome, Outcome::Unchanged);
        // A file of the user with that name stays.
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "mine").unwrap();
        assert_eq!(moved.uninstall().unwrap().outcome, Outcome::Unchanged);
        let error = moved.install().unwrap_err().to_string();
        assert!(error.contains("a plug-in of yours"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        fs::remove_file(&path).unwrap();
        // Changes of the user are not overwritten.
        moved.install().unwrap();
        let changed = fs::read_to_string(&path).unwrap() + "// changed";
        fs::write(&path, &changed).unwrap();
        for result in [moved.install(), moved.uninstall()] {
            let error = result.unwrap_err().to_string();
            assert!(error.contains("changed after Offcut placed it"), "{error}");
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), changed);
    }
}

#[test]
fn a_plug_in_that_was_changed_stays_with_its_record_and_without() {
    for agent in [Agent::OpenCode, Agent::Pi] {
        let user = User::new();
        let installation = Installation {
            agent,
            ..user.installation("/opt/offcut")
        };
        let path = installation.install().unwrap().path;
        let placed = fs::read_to_string(&path).unwrap();
        let refused = |text: String| {
            fs::write(&path, &text).unwrap();
            installation.install().unwrap_err();
            installation.uninstall().unwrap_err();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        };
        // A formatter broke the line by which Offcut is found.
        let formatted = placed.replace("const COMMAND = [", "const COMMAND = [\n  ");
        refused(formatted.clone());
        fs::remove_dir_all(installation.home.installed()).unwrap();
        refused(format!("{placed}// changed"));
        refused(formatted);
        fs::write(&path, &placed).unwrap();
        let removed = installation.uninstall().unwrap();
        assert_eq!(removed.outcome, Outcome::Deleted);
        assert!(!path.exists());
    }
}

#[test]
fn the_hooks_of_codex_are_added_and_taken_back() {
    for file in FILES {
        let user = User::new();
        let hooks = user.folder.path().join("project/.codex/hooks.json");
        fs::create_dir_all(hooks.parent().unwrap()).unwrap();
        fs::write(&hooks, file).unwrap();
        let installation = Installation {
            agent: Agent::Codex,
            ..user.installation("/opt/offcut")
        };
        assert_eq!(installation.install().unwrap().outcome, Outcome::Added);
        let text = fs::read_to_string(&hooks).unwrap();
        let groups = parse(&text)["hooks"]["PostToolUse"].clone();
        let ours = groups.as_array().unwrap().last().unwrap().clone();
        assert_eq!(ours["matcher"], "Bash|mcp__.*");
        let command = ours["hooks"][0]["command"].as_str().unwrap();
        assert!(
            command.ends_with("'/opt/offcut' hook codex || true"),
            "{command}"
        );
        assert_eq!(installation.install().unwrap().outcome, Outcome::Unchanged);
        assert_eq!(installation.uninstall().unwrap().outcome, Outcome::Restored);
        assert_eq!(fs::read_to_string(&hooks).unwrap(), file);
    }
}

#[test]
fn gemini_cli_needs_its_reader() {
    let user = User::new();
    let settings = user.folder.path().join("project/.gemini/settings.json");
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    let installation = Installation {
        agent: Agent::GeminiCli,
        ..user.installation("/opt/offcut")
    };
    let without = "{\"tools\": {\"core\": [\"run_shell_command\"]}}";
    fs::write(&settings, without).unwrap();
    let error = installation.install().unwrap_err().to_string();
    assert!(error.contains("`read_file`"), "{error}");
    assert_eq!(fs::read_to_string(&settings).unwrap(), without);
    fs::write(&settings, "{}").unwrap();
    installation.install().unwrap();
    let text = fs::read_to_string(&settings).unwrap();
    assert!(
        text.contains("hook gemini-cli 2>/dev/null || true"),
        "{text}"
    );
    installation.uninstall().unwrap();
    assert_eq!(fs::read_to_string(&settings).unwrap(), "{}");
}

#[cfg(unix)]
#[test]
fn the_doctor_says_what_is_wrong() {
    use std::os::unix::fs::PermissionsExt;
    let user = User::new();
    let problem = |program: &Path| {
        let installation = user.installation(program.to_str().unwrap());
        let findings = doctor::examine(&installation);
        let texts = findings
            .into_iter()
            .filter(|finding| finding.level == Level::Problem);
        texts
            .map(|finding| finding.text + ": " + &finding.advice.unwrap())
            .collect::<String>()
    };
    let program = user.folder.path().join("offcut");
    assert!(problem(&program).contains("run `offcut install claude-code`"));
    let cases = [
        ("", "does not run"),
        ("#!/bin/sh\ncat >/dev/null\n", "came back unchanged"),
        (
            "#!/bin/sh\ncat >/dev/null; echo no >&2\n",
            "does not run: no",
        ),
        ("#!/bin/sh\nexit 3\n", "came back unchanged"),
    ];
    for (script, expected) in cases {
        if !script.is_empty() {
            fs::write(&program, script).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        }
        user.installation(program.to_str().unwrap())
            .install()
            .unwrap();
        let found = problem(&program);
        assert!(found.contains(expected), "{script}: {found}");
    }
    let commented = format!("// mine\n{}", user.text());
    fs::write(user.settings(), commented).unwrap();
    assert!(problem(&program).contains("not strict JSON, so Claude Code ignores all of it"));
}

proptest! {
    #[test]
    fn any_settings_keep_their_values(settings in settings(3)) {
        let user = User::with(&settings.to_string());
        if user.install().is_ok() {
            prop_assert_eq!(without_ours(parse(&user.text())), with_places(settings.clone()));
            user.uninstall().unwrap();
        }
        prop_assert_eq!(user.text(), settings.to_string());
    }
}

/// The settings with the empty lists to which values are added.
fn with_places(mut settings: Value) -> Value {
    for (object, list) in [("hooks", "PostToolUse"), ("permissions", "allow")] {
        let object = settings
            .as_object_mut()
            .unwrap()
            .entry(object)
            .or_insert_with(|| json!({}));
        object
            .as_object_mut()
            .unwrap()
            .entry(list)
            .or_insert_with(|| json!([]));
    }
    settings
}

/// Objects with names that matter and others.
fn settings(depth: u32) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    let name = prop_oneof!["hooks", "permissions", "PostToolUse", "allow", ".{0,4}"];
    let value = leaf.prop_recursive(depth, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name.clone(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    let name = prop_oneof!["hooks", "permissions", ".{0,4}"];
    prop::collection::btree_map(name, value, 0..5)
        .prop_map(|map| Value::Object(map.into_iter().collect()))
}
