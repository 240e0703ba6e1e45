//! Settings from files or from this program's policies, and the stores that they name.

use std::path::Path;

use crate::agents::layout::Home;
use offcut::backend::{Key, Location, StoreUrl};
use offcut::{Settings, ToolReduction};

use tokio::runtime::Runtime;

use crate::failure::{Failure, OrFail as _, chain};
use crate::policies::READY;
use crate::units::grouped;
use crate::{args, output, stores};

/// A store of its own for each command, which ends with it.
pub(crate) const MEMORY: &str = "memory:";
/// Advice for wrong settings.
pub(crate) const HELP: &str = "`offcut config default` prints every option";

/// Reads a settings file, or the built-in policy of that name if there is no such file.
pub(crate) fn load(name: &str) -> Result<Settings, Failure> {
    let names = READY.map(|(ready, _)| ready).join(", ");
    let ready = READY.iter().find(|(ready, _)| *ready == name);
    let settings = match ready {
        _ if Path::new(name).exists() => Settings::load(name),
        Some((_, text)) => Settings::from_toml(text),
        None => {
            return Err(Failure::usage(
                format!(
                    "there is no built-in policy and no file called {name} (built in: {names})"
                ),
                "name one of these, or a .toml or .json file",
            ));
        }
    };
    settings.map_err(|error| {
        let hint = match &*error.field {
            "" if error.line.is_none() => {
                &format!("name a .toml or .json file, or a built-in policy: {names}")
            }
            "preset" => &format!("`offcut config default POLICY` prints all of one: {names}"),
            _ => HELP,
        };
        Failure::usage(error.to_string(), hint)
    })
}

/// Builds the reduction for `settings`, which are called `origin`.
pub(crate) fn build(settings: &Settings, origin: &str) -> Result<ToolReduction, Failure> {
    let builder = ToolReduction::builder().settings(settings.clone(), stores::open);
    let built = builder.build();
    built.map_err(|error| Failure::usage(format!("{origin}: {}", chain(&error)), HELP))
}

/// Builds the reduction for a command's arguments.
pub(crate) fn reduction(args: &args::Reduction) -> Result<ToolReduction, Failure> {
    let (settings, origin) = named(&args.of_user, user_store)?;
    of_session(&settings, &origin, args.session.as_deref())
}

/// Builds the reduction of `run`. By default, each day is a conversation: a sweep removes those that have come to rest.
#[cfg(unix)]
pub(crate) fn of_run(args: &args::Run) -> Result<ToolReduction, Failure> {
    const DAY: u64 = 24 * 60 * 60;
    let (mut settings, origin) = named(&args.reduction.of_user, user_store)?;
    // Whoever has run a command can run this program too, which reads a file in any store.
    if settings.read_file_tool_name == Settings::default().read_file_tool_name {
        settings.read_file_tool_name = Some("offcut read".to_owned());
    }
    let session = args.reduction.session.clone();
    let session = session.unwrap_or_else(|| format!("run-{}", crate::units::now() / DAY));
    of_session(&settings, &origin, Some(&session))
}

/// The name of the settings of a command: those of the arguments, else the user's, else a built-in policy.
pub(crate) fn of_user(named: Option<&str>, home: Option<&Home>) -> String {
    let of_user = home.map(Home::settings).filter(|file| file.exists());
    let of_user = of_user.and_then(|file| file.into_os_string().into_string().ok());
    let named = named.map(str::to_owned).or(of_user);
    named.unwrap_or_else(|| READY[0].0.to_owned())
}

/// The settings of a command, and the name of their source. If nothing names a store, it is `or_else`.
pub(crate) fn named(
    args: &args::OfUser,
    or_else: impl FnOnce() -> Result<StoreUrl, Failure>,
) -> Result<(Settings, String), Failure> {
    let origin = of_user(args.config.as_deref(), Home::from_env().as_ref());
    let mut settings = load(&origin)?;
    let url = args.backend.clone().or(settings.backend_url.take());
    let url = url.map_or_else(or_else, Ok)?;
    output::detail(&format!("settings {origin}, store {url}"));
    settings.backend_url = Some(url);
    Ok((settings, origin))
}

/// The store of this user, for settings that name none.
pub(crate) fn user_store() -> Result<StoreUrl, Failure> {
    let store = Home::required()?.store();
    let url = store.to_str().map(StoreUrl::from);
    url.ok_or_else(|| {
        let problem = format!("the path {} is not text", store.display());
        Failure::usage(problem, "set OFFCUT_HOME to another directory")
    })
}

/// The store of all tools in the user's settings, or the user's own if they name none.
pub(crate) fn store_in_use() -> Result<StoreUrl, Failure> {
    let (settings, _) = named(&args::OfUser::default(), user_store)?;
    settings.backend_url.map_or_else(user_store, Ok)
}

/// Builds the reduction for `read`, of stores that must exist, and lists the locations that `named` may mean. Without
/// a session, it reads whatever conversation's content the command line names, and without any option, in any store.
pub(crate) fn reader(
    args: &args::Read,
    named: &str,
) -> Result<(ToolReduction, Vec<Location>), Failure> {
    let (mut of_user, session) = (args.reduction.of_user.clone(), &args.reduction.session);
    let is_plain = of_user.config.is_none() && of_user.backend.is_none() && session.is_none();
    if let Some(file) = args.location.as_deref().filter(|_| is_plain) {
        of_user.backend = stores::around(file);
    }
    let (mut settings, origin) = self::named(&of_user, user_store)?;
    for url in stores::named_in(&settings) {
        stores::expect(url).map_err(|failure| match Path::new(&origin).exists() {
            true if of_user.backend.as_ref() != Some(url) => failure.of(&origin),
            _ => failure,
        })?;
    }
    let reduction = of_session(&settings, &origin, session.as_deref())?;
    let all = reduction.stores();
    let mut meant = stores::meanings(&all, named);
    let mut keys = meant
        .iter()
        .flat_map(|one| all.iter().find_map(|store| store.resolve(one.as_str())));
    let key = keys.next();
    let conversation = key.as_ref().and_then(Key::conversation);
    // A person may name what any conversation has stored, as a server's are many.
    let is_any = is_plain || session.is_none() && args.location.is_some();
    if let Some(conversation) = conversation.filter(|_| is_any) {
        settings.root_dir = conversation.trim_end_matches('/').to_owned();
        // The reader refuses a place that belongs to no conversation.
        return Ok((build(&settings, &origin).unwrap_or(reduction), meant));
    }
    let prefix = reduction.prefix();
    if let Some(key) = Key::new(format!("{prefix}{named}"))
        .ok()
        .filter(|_| !prefix.is_empty())
    {
        meant.splice(0..0, all.iter().map(|store| store.locate(&key)));
    }
    Ok((reduction, meant))
}

/// Says that the file `origin` nearly switches shortening off, and what to write: it names no preset, and has no limit
/// of its own. `None` for all others.
pub(crate) fn without_preset(origin: &str) -> Option<[String; 2]> {
    const SAID: [&str; 4] = [
        "preset",
        "max_length_for_trunc",
        "preview_above",
        "skip_truncation",
    ];
    let text = offcut::config::read_file(Path::new(origin)).ok()?;
    let text = String::from_utf8_lossy(&text);
    let mut lines = text.lines().filter_map(|line| line.split('#').next());
    let says = |line: &str| SAID.iter().any(|name| line.contains(name));
    (!lines.any(says)).then(|| {
        let limit = grouped(Settings::default().max_length_for_trunc as i64);
        [
            format!("{origin} names no preset, so only results over {limit} bytes are shortened"),
            "set `preset` to \"recommended\" in it, or a limit of its own, `max_length_for_trunc`"
                .to_owned(),
        ]
    })
}

/// Replaces all stores that `settings` name by memory.
pub(crate) fn forget_stores(settings: &mut Settings) {
    settings.backend_url = Some(MEMORY.into());
    for tool in settings.tool_config.values_mut() {
        tool.backend_url = None;
    }
}

fn of_session(
    settings: &Settings,
    origin: &str,
    session: Option<&str>,
) -> Result<ToolReduction, Failure> {
    Ok(in_session(build_lasting(settings, origin)?, session))
}

/// Builds the reduction of a command that ends before what it stores is read.
pub(crate) fn build_lasting(settings: &Settings, origin: &str) -> Result<ToolReduction, Failure> {
    if stores::named_in(settings).any(|url| url.as_str().starts_with(MEMORY)) {
        return Err(Failure::usage(
            "a store in memory ends with this command, and everything in it is lost",
            "name a directory as `backend`, or with --backend",
        )
        .of(origin));
    }
    build(settings, origin)
}

/// The reduction of a conversation, if its id is given.
pub(crate) fn in_session(reduction: ToolReduction, id: Option<&str>) -> ToolReduction {
    match id {
        Some(id) => reduction.session(id),
        None => reduction,
    }
}

/// Creates the runtime that stores need.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.or_fail("the async runtime can't be started")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o3_built_in_policies_equal_the_presets_of_their_names() {
        assert_eq!(load("recommended").unwrap(), Settings::recommended());
        assert_eq!(load("eino").unwrap(), Settings::eino());
        assert_eq!(load("anthropic").unwrap(), Settings::anthropic());
    }
}
