//! `offcut install`, `uninstall` and `doctor`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;

use crate::agents::Agent;
use crate::agents::doctor::{self, Level};
use crate::agents::install::{Changed, Installation, Outcome, Scope, Servers};
use crate::agents::layout::Home;
use crate::failure::{FAILED, Failure, OrFail as _};
use crate::{args, output, settings};

/// Puts Offcut into an agent's settings.
pub(crate) fn install(args: &args::Install, json: bool) -> Result<ExitCode, Failure> {
    let installation = installation(&args.place)?;
    let agent = installation.agent;
    let _alone = installation.lock()?;
    #[cfg(unix)]
    let has_servers = args.mcp_servers;
    #[cfg(not(unix))]
    let has_servers = false;
    let changed = match has_servers {
        true => installation.install_with_servers()?,
        false => installation.install()?,
    };
    let args = &args.place;
    if json {
        return write_json(args, &changed);
    }
    let first = match changed.outcome {
        Outcome::Unchanged => "is unchanged: Offcut is in it already",
        Outcome::Created => "is new",
        _ => "is changed",
    };
    let mut text = format!("{} {first}\n", changed.path.display());
    for value in &changed.values {
        text += &format!("  It has {value}\n");
    }
    if let Some(backup) = &changed.backup {
        text += &format!("  Backup: {}\n", backup.display());
    }
    if let Some(servers) = &changed.servers {
        text += &in_words(servers);
    } else if has_servers {
        text += &format!("Offcut is put in front of no MCP servers of {agent}\n");
    }
    if agent == Agent::Codex {
        text += "Start codex, enter `/hooks`, read Offcut's hook and trust it: until then it is skipped.\n";
        text += &format!(
            "In its sandbox, `offcut run` needs `writable_roots = [{}]` below `[sandbox_workspace_write]`.\n",
            // A string of JSON is one of TOML too.
            json!(installation.store.to_string_lossy())
        );
    }
    let mut arguments = agent.to_string();
    if let Some(project) = &args.project {
        arguments += &format!(" --project {}", project.display());
    }
    text += &format!(
        "New sessions use it. `offcut doctor {arguments}` tries it; `offcut uninstall {arguments}` takes it out.\n"
    );
    output::write(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Takes Offcut out of an agent's settings.
pub(crate) fn uninstall(args: &args::Place, json: bool) -> Result<ExitCode, Failure> {
    let installation = installation(args)?;
    // A user's folder that is gone must not come back.
    let is_there = installation.home.path().exists();
    let _alone = is_there.then(|| installation.lock()).transpose()?;
    let changed = installation.uninstall()?;
    if json {
        return write_json(args, &changed);
    }
    let mut text = String::new();
    if let Some(servers) = &changed.servers {
        let path = servers.path.display();
        text += &format!("{path}: MCP servers run without Offcut again\n");
    }
    let path = changed.path.display();
    text += &match changed.outcome {
        Outcome::Restored if !changed.path.exists() => format!("{path} is removed\n"),
        Outcome::Restored => format!("{path} is as it was before\n"),
        Outcome::Removed => {
            format!(
                "{path} has changed since, or its backup is gone; only Offcut's values were removed\n"
            )
        }
        _ => format!("{path} is unchanged: Offcut is not in it\n"),
    };
    let servers = installation.servers().ok().flatten();
    if let Some(servers) = servers.filter(|servers| !servers.wrapped.is_empty()) {
        text += &format!(
            "{}: Offcut stays in front of {}, with options of its own; take it out by hand if it is to go\n",
            servers.path.display(),
            output::visible(&servers.wrapped.join(", "))
        );
    }
    let entries = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let projects = Agent::GeminiCli.facts().home.join("tmp");
    let projects = projects.filter(|_| args.agent == Agent::GeminiCli);
    let projects = projects.iter().flat_map(|folder| entries(folder));
    let stores = projects.map(|project| project.path().join("offcut/store"));
    for store in stores.chain([installation.store]) {
        if entries(&store).any(|entry| entry.file_name() != ".staging") {
            text += &format!(
                "Stored results stay in {}; remove that folder if no conversation needs them.\n",
                store.display()
            );
        }
    }
    output::write(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Examines an installation.
pub(crate) fn doctor(args: &args::Place, json: bool) -> Result<ExitCode, Failure> {
    let installation = installation(args)?;
    let findings = doctor::examine(&installation);
    if json {
        let agent = installation.agent.facts().name;
        output::write_json(&json!({"agent": agent, "findings": findings}))?;
    } else {
        let mut text = String::new();
        for finding in &findings {
            let level = format!("{:?}", finding.level).to_lowercase();
            text += &format!("{level:8} {}\n", output::visible(&finding.text));
            if let Some(advice) = &finding.advice {
                text += &format!("{:8} → {advice}\n", "");
            }
        }
        output::write(&text)?;
    }
    let has_problem = findings
        .iter()
        .any(|finding| finding.level == Level::Problem);
    Ok(ExitCode::from(if has_problem { FAILED } else { 0 }))
}

/// The servers that have Offcut in front, and those that have none.
fn in_words(servers: &Servers) -> String {
    let path = servers.path.display();
    let names = |names: &[String]| output::visible(&names.join(", "));
    let mut text = match servers.wrapped.is_empty() {
        true => format!("{path} names no MCP servers over stdio\n"),
        false => format!(
            "{path}: Offcut is in front of {}\n",
            names(&servers.wrapped)
        ),
    };
    if !servers.others.is_empty() {
        text += &format!(
            "  As they were, because they have a URL, or a command that is no text: {}. `offcut mcp --listen` can stand in front of a URL.\n",
            names(&servers.others)
        );
    }
    text
}

fn write_json(args: &args::Place, changed: &Changed) -> Result<ExitCode, Failure> {
    output::write_json(&json!({
        "agent": args.agent.facts().name,
        "path": changed.path,
        "outcome": changed.outcome,
        "backup": changed.backup,
        "values": changed.values,
        "servers": changed.servers,
    }))?;
    Ok(ExitCode::SUCCESS)
}

fn installation(args: &args::Place) -> Result<Installation, Failure> {
    let scope = args.project.clone().map_or(Scope::User, Scope::Project);
    let home = Home::required()?;
    // The hook's log names what is wrong with the settings.
    let settings = settings::load(&settings::of_user(None, Some(&home))).ok();
    let store = settings.and_then(|settings| Some(settings.backend_url?.directory()?.to_owned()));
    Ok(Installation {
        agent: args.agent,
        scope,
        store: store
            .filter(|store| store.is_absolute())
            .unwrap_or_else(|| home.store()),
        home,
        program: match &args.program {
            Some(program) => absolute(program)?,
            None => own_path()?,
        },
    })
}

/// The path on the PATH by which this program is called: a link to it stays right when an update moves the program
/// itself, as package managers do.
fn own_path() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe().or_fail("this program's own path is unknown")?;
    let called = std::env::args_os().next().map(PathBuf::from);
    let name = called.as_deref().and_then(Path::file_name);
    let name = name.unwrap_or(own.as_os_str());
    let resolved = own.canonicalize().ok();
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut on_path = std::env::split_paths(&folders).map(|folder| folder.join(name));
    let is_this = |path: &PathBuf| resolved.is_some() && path.canonicalize().ok() == resolved;
    Ok(on_path
        .find(|path| path.is_absolute() && is_this(path))
        .unwrap_or(own))
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    let found = path.is_file().then(|| std::path::absolute(path));
    found.and_then(Result::ok).ok_or_else(|| {
        let message = format!("there is no program at {}", path.display());
        Failure::usage(message, "--program names the program that the hook runs")
    })
}
