//! `offcut install`, `uninstall` and `doctor`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;

use crate::agents::Agent;
use crate::agents::doctor::{self, Level};
use crate::agents::install::{Installation, Outcome, Scope};
use crate::agents::layout::Home;
use crate::failure::{FAILED, Failure, OrFail as _};
use crate::{args, output, settings};

/// Puts Offcut into an agent's settings.
pub(crate) fn install(args: &args::Place, json: bool) -> Result<ExitCode, Failure> {
    let installation = installation(args)?;
    let agent = installation.agent;
    let _alone = installation.lock()?;
    let changed = installation.install()?;
    if json {
        output::write_json(&changed)?;
        return Ok(ExitCode::SUCCESS);
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
        arguments += &format!(" --project {}", output::quoted(&project.to_string_lossy()));
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
        output::write_json(&changed)?;
        return Ok(ExitCode::SUCCESS);
    }
    let path = changed.path.display();
    let mut text = match changed.outcome {
        Outcome::Restored if !changed.path.exists() => format!("{path} is removed\n"),
        Outcome::Restored => format!("{path} is as it was before\n"),
        Outcome::Removed => format!(
            "{path} has changed since, or its backup is gone: only Offcut's values were removed\n"
        ),
        _ => format!("{path} is unchanged: Offcut is not in it\n"),
    };
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
