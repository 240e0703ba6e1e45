//! `offcut hook`.

use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;

use clap::ValueEnum as _;

use super::tidy;
use crate::agents::hook::{self, Answer, Surroundings};
use crate::agents::layout::Home;
use crate::agents::{Agent, journal, log, transcripts};
use crate::failure::{Failure, OrFail as _};
use crate::{args, settings};

/// Answers the event on stdin. Never fails: an agent goes on with its own result instead.
pub(crate) fn run(args: &args::Hook) -> ExitCode {
    // A panic is noted in the log; stderr may be shown to the model.
    std::panic::set_hook(Box::new(|_| {}));
    let answer = catch_unwind(AssertUnwindSafe(|| answer(args)))
        .unwrap_or_else(|_| Err(Failure::new("the program has a bug: it panicked")));
    let written = answer.and_then(|answer| {
        let mut stdout = io::stdout().lock();
        let output = answer.output.unwrap_or_default();
        let written = stdout.write_all(output.as_bytes());
        let written = written.and_then(|()| stdout.flush());
        written.or_fail("the answer can't be written")?;
        Ok(answer.row)
    });
    let Some(home) = Home::from_env() else {
        return ExitCode::SUCCESS;
    };
    let rows = written.as_ref().map_or(&[][..], Option::as_slice);
    let noted = transcripts::remember(&home, rows)
        .and_then(|()| journal::append(&home.journal(), rows))
        .or_fail("the journal can't be written");
    let failed = written.and(noted).err();
    let not_swept = tidy::start(&home).err();
    let problems = [
        not_swept.map(|error| format!("sweep: it does not start: {error}")),
        failed.map(|failure| format!("hook {}: {failure}", args.agent)),
    ];
    for problem in problems.into_iter().flatten() {
        // There is nowhere to report that the log can't be written.
        _ = log::append(&home.log(), &problem);
    }
    ExitCode::SUCCESS
}

fn answer(args: &args::Hook) -> Result<Answer, Failure> {
    let mut event = Vec::new();
    let read = io::stdin().lock().read_to_end(&mut event);
    read.or_fail("the event can't be read")?;
    let agent = Agent::from_str(&args.agent, false)
        .map_err(|_| Failure::new(format!("no agent is called `{}`", args.agent)))?;
    let runtime = settings::runtime()?;
    let _inside = runtime.enter();

    let mut surroundings = Surroundings {
        store: None,
        user_store: settings::user_store()
            .ok()
            .and_then(|url| url.directory().map(Path::to_owned)),
        agent_home: agent.facts().home.path(),
        temporary: Some(std::env::temp_dir()),
    };
    let (mut settings, origin) = settings::named(&args.of_user, || {
        let wanted = hook::store(agent, &event, &surroundings);
        let wanted = wanted.and_then(|path| path.into_os_string().into_string().ok());
        wanted.map_or_else(settings::user_store, |path| Ok(path.into()))
    })?;
    // In an agent that has a reader of its own, hints name that one.
    settings.read_file_tool_name = agent.facts().reader.map(str::to_owned);
    let reduction = settings::build_lasting(&settings, &origin)?;
    let store = settings.backend_url.as_ref();
    surroundings.store = store.and_then(|url| url.directory()).map(Path::to_owned);
    runtime.block_on(hook::answer(agent, &event, &reduction, &surroundings))
}
