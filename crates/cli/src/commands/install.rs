//! `offcut install`, `uninstall` and `doctor`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use offcut::backend::StoreUrl;
use serde_json::json;

use crate::agents::Agent;
use crate::agents::doctor::{self, Finding, Level};
use crate::agents::install::{Changed, Installation, Outcome};
use crate::agents::layout::Home;
use crate::failure::{FAILED, Failure, OrFail as _};
use crate::{args, output, settings, stores};

/// Puts Offcut into an agent's settings, or says what that would change.
pub(crate) fn install(args: &args::InstallOptions, json: bool) -> Result<ExitCode, Failure> {
    let (installation, mut findings) = installation(&args.place, args.dry_run)?;
    let alone = (!args.dry_run).then(|| installation.lock()).transpose()?;
    let changed = installation.install()?;
    drop(alone);
    findings.extend(doctor::check(&installation));
    let is_quiet = output::is_quiet();
    findings.retain(|finding| match finding.level {
        Level::Works => false,
        Level::Note => !is_quiet,
        Level::Problem => true,
    });
    if json {
        return write_json(&changed, &findings);
    }
    let what = match changed.outcome {
        Outcome::Unchanged => "is unchanged: Offcut is in it already",
        Outcome::Created => "is new",
        _ => "is changed",
    };
    let mut text = in_words(&changed, what);
    text += &findings_in_words(&findings);
    let mut arguments = installation.agent.to_string();
    if let Some(project) = &args.place.project {
        arguments += &format!(" --project {}", output::quoted(&project.to_string_lossy()));
    }
    let used = match (doctor::has_problem(&findings), args.dry_run) {
        (true, _) => "It does not work before the above is mended.",
        (_, true) => "New sessions would use it.",
        _ => "New sessions use it.",
    };
    text += &format!(
        "{used} `offcut doctor {arguments}` tries it; `offcut uninstall {arguments}` takes it out.\n"
    );
    output::write(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Takes Offcut out of an agent's settings, or says what that would change.
pub(crate) fn uninstall(args: &args::InstallOptions, json: bool) -> Result<ExitCode, Failure> {
    let (installation, _) = installation(&args.place, args.dry_run)?;
    // A user's folder that is gone must not come back.
    let is_locked = !args.dry_run && installation.home.path().exists();
    let _alone = is_locked.then(|| installation.lock()).transpose()?;
    let changed = installation.uninstall()?;
    if json {
        return write_json(&changed, &[]);
    }
    let what = match changed.outcome {
        Outcome::Deleted => "is removed",
        Outcome::Restored => "is as it was without Offcut",
        Outcome::Removed => {
            "has changed since, or its backup is gone: only Offcut's values were removed"
        }
        _ => "is unchanged: Offcut is not in it",
    };
    let mut text = in_words(&changed, what);
    let in_projects = match installation.agent {
        agent @ Agent::GeminiCli => agent.facts().home.join("tmp/PROJECT/offcut/store"),
        _ => None,
    };
    text += &format!(
        "Stored results stay in {}; remove that folder if no conversation needs them.\n",
        in_projects.unwrap_or(installation.store).display()
    );
    output::write(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Examines an installation.
pub(crate) fn doctor(args: &args::Place, json: bool) -> Result<ExitCode, Failure> {
    let (installation, mut findings) = installation(args, true)?;
    findings.extend(doctor::examine(&installation));
    if json {
        let agent = installation.agent.facts().name;
        output::write_json(&json!({"agent": agent, "findings": findings}))?;
    } else {
        output::write(&findings_in_words(&findings))?;
    }
    let code = if doctor::has_problem(&findings) {
        FAILED
    } else {
        0
    };
    Ok(ExitCode::from(code))
}

/// A change as JSON, with what keeps it from working.
fn write_json(changed: &Changed, findings: &[Finding]) -> Result<ExitCode, Failure> {
    let mut told = json!(changed);
    told["findings"] = json!(findings);
    output::write_json(&told)?;
    Ok(ExitCode::SUCCESS)
}

/// A change in words. `what` became of its file is said in the present, of a dry run too.
fn in_words(changed: &Changed, what: &str) -> String {
    let mut text = format!("{} {what}\n", changed.path.display());
    if changed.is_dry {
        text.insert_str(0, "This is a dry run: nothing was changed. Without it:\n");
    }
    let removed = changed.removed.iter().map(|value| ('-', value));
    for (sign, value) in removed.chain(changed.added.iter().map(|value| ('+', value))) {
        text += &format!("  {sign} {}\n", output::visible(value));
    }
    if let Some(backup) = &changed.backup {
        text += &format!("  Backup: {}\n", backup.display());
    }
    text
}

fn findings_in_words(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let level = format!("{:?}", finding.level).to_lowercase();
        text += &format!("{level:8} {}\n", output::visible(&finding.text));
        if let Some(advice) = &finding.advice {
            text += &format!("{:8} → {}\n", "", output::visible(advice));
        }
    }
    text
}

/// The installation that arguments name, with findings about the user's settings.
fn installation(args: &args::Place, is_dry: bool) -> Result<(Installation, Vec<Finding>), Failure> {
    let home = Home::required()?;
    let name = settings::of_user(None, Some(&home));
    let loaded = settings::load(&name);
    let mut findings = Vec::new();
    let stores = loaded.as_ref().ok().map(stores::named_in);
    let directories = stores.into_iter().flatten().filter_map(StoreUrl::directory);
    for relative in directories.filter(|directory| directory.is_relative()) {
        findings.push(doctor::problem(
            format!(
                "in {name}, {} is another directory wherever the agent runs",
                relative.display()
            ),
            "write an absolute path as `backend`, or leave it out",
        ));
    }
    let store = loaded.as_ref().ok().and_then(|settings| {
        let directory = settings.backend_url.as_ref()?.directory()?;
        directory.is_absolute().then(|| directory.to_owned())
    });
    match loaded.and_then(|mut settings| {
        settings::forget_stores(&mut settings);
        settings::build(&settings, &name)
    }) {
        Ok(_) => findings.extend(
            settings::without_preset(&name).map(|[text, advice]| doctor::note(text, advice)),
        ),
        Err(error) => {
            let advice = error.what_to_do().unwrap_or_default();
            findings.push(doctor::problem(error.to_string(), advice));
        }
    }
    let installation = Installation {
        agent: args.agent,
        project: args.project.clone(),
        is_dry,
        store: store.unwrap_or_else(|| home.store()),
        home,
        program: own_path()?,
    };
    Ok((installation, findings))
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
