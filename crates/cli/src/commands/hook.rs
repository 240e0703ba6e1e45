//! `offcut hook`.

use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;

use crate::agents::hook::{self, Answer, Surroundings};
use crate::agents::layout::{self, Home};
use crate::agents::{Agent, journal, log, transcripts};
use offcut::ToolReduction;
use offcut::backend::StoreUrl;
use tokio::runtime::Runtime;

use super::tidy;
use crate::failure::{Failure, chain};
use crate::{args, settings, stores};

/// Answers the event on stdin. Never fails: an agent goes on with its own result instead.
pub(crate) fn run(args: &args::Hook) -> ExitCode {
    let home = Home::from_env();
    // A panic is noted in the log; stderr may be shown to the model.
    std::panic::set_hook(Box::new(|_| {}));
    let answer = catch_unwind(AssertUnwindSafe(|| answer(args, home.as_ref())))
        .unwrap_or_else(|_| Err(Failure::new("the program has a bug: it panicked")));
    let written = answer.and_then(|answer| {
        let mut stdout = io::stdout().lock();
        let output = answer.output.unwrap_or_default();
        let written = stdout
            .write_all(output.as_bytes())
            .and_then(|()| stdout.flush());
        written.map_err(|error| Failure::new(format!("the answer can't be written: {error}")))?;
        Ok(answer.rows)
    });
    let rows = written.as_deref().unwrap_or_default();
    let noted = home.as_ref().map_or(Ok(()), |home| {
        transcripts::remember(home, rows)?;
        journal::append(&home.journal(), rows)
    });
    let noted =
        noted.map_err(|error| Failure::new(format!("the journal can't be written: {error}")));
    let written = written.and(noted);
    if let Some(home) = &home
        && let Err(error) = tidy::start(home)
    {
        // There is nowhere to report that the log can't be written.
        _ = log::append(&home.log(), &format!("sweep: it does not start: {error}"));
    }
    if let (Err(failure), Some(home)) = (written, home) {
        // There is nowhere to report that the log can't be written.
        _ = log::append(&home.log(), &format!("hook {}: {failure}", args.agent));
    }
    ExitCode::SUCCESS
}

/// A reduction for the results of an agent, and the places that it has to know.
struct OpenedHook {
    runtime: Runtime,
    reduction: ToolReduction,
    surroundings: Surroundings,
}

fn answer(args: &args::Hook, home: Option<&Home>) -> Result<Answer, Failure> {
    let mut event = Vec::new();
    let read = io::stdin().lock().read_to_end(&mut event);
    read.map_err(|error| Failure::new(format!("the event can't be read: {error}")))?;
    let agent = Agent::named(&args.agent)
        .ok_or_else(|| Failure::new(format!("no agent is called `{}`", args.agent)))?;

    let opened = OpenedHook::open(agent, &event, args, home)?;
    let _inside = opened.runtime.enter();
    let answer = hook::answer(agent, &event, &opened.reduction, &opened.surroundings);
    let answer = opened.runtime.block_on(answer);
    answer.map_err(|error| Failure::new(chain(&error)))
}

impl OpenedHook {
    /// Opens the store that the settings name, else the one that `agent` wants for an `event`.
    fn open(
        agent: Agent,
        event: &[u8],
        args: &args::Hook,
        home: Option<&Home>,
    ) -> Result<Self, Failure> {
        let runtime = settings::runtime()?;
        let inside = runtime.enter();
        let origin = settings::of_user(args.config.as_deref(), home);
        let mut settings = settings::load(&origin)?;
        if let Some(store) = &args.backend {
            settings.backend_url = Some(store.clone());
        }
        let mut surroundings = Surroundings {
            store: None,
            agent_home: layout::agent_home(agent),
            temporary: Some(std::env::temp_dir()),
        };
        if settings.backend_url.is_none() {
            let wanted = hook::store(agent, event, &surroundings);
            let wanted = wanted.and_then(|path| path.into_os_string().into_string().ok());
            settings.backend_url = Some(match wanted {
                Some(path) => StoreUrl::from(path),
                None => settings::user_store()?,
            });
        }
        // In an agent that has a reader of its own, hints name that one.
        settings.read_file_tool_name = hook::reader(agent).map(str::to_owned);
        let reduction = settings::build_with(&settings, &origin, None, stores::open)?;
        surroundings.store = settings
            .backend_url
            .as_ref()
            .and_then(|url| url.directory())
            .map(Path::to_owned);
        drop(inside);
        Ok(Self {
            runtime,
            reduction,
            surroundings,
        })
    }
}
