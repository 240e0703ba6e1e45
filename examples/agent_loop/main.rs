//! An agent explores a directory with real tools in a small context: results that are too long or
//! too old are stored, and the model reads back the parts that it needs.
//!
//! ```text
//! cargo run --example agent_loop
//! cargo run --example agent_loop -- --dir some/other/tree --backend some/store --max-tokens 5000
//! OPENAI_API_KEY=… cargo run --example agent_loop --features openai -- --model NAME
//! ```
//!
//! [`explore`] shows the library at work. Everything else belongs to the example: the tools in `tools`,
//! the model in `model`, the measurements in `tally`, and the proof that nothing was lost in
//! `verify`.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that talks to a person"
)]

mod args;
mod messages;
mod model;
mod show;
mod tally;
mod tools;
mod verify;
mod watched;

use std::process::ExitCode;
use std::sync::Arc;

use offcut::ToolReduction;
use offcut::agent::Agent;
use offcut::format::Message;

use args::{Failure, Options, open_backend, open_model};
use tally::Tally;
use tools::{Directory, Grep, ListFiles, Read, Run};
use watched::watched;

/// Runs the agent, prints its steps, reads everything back. Returns the number of lost originals.
async fn explore(options: &Options) -> Result<usize, Failure> {
    let directory = Arc::new(Directory::open(&options.dir)?);
    let backend = open_backend(options.backend.as_deref()).await?;
    let tally = Tally::new(&*backend);

    let mut builder = ToolReduction::recommended(backend);
    if let Some(length) = options.max_length {
        builder = builder
            .max_length_for_trunc(length)
            .preview_length((length / 4).min(2_000));
    }
    let reduction = builder
        .max_tokens_for_clear(options.max_tokens)
        .clear_retention_suffix_limit(options.keep_rounds)
        .language(options.language)
        .on_report(tally.observer())
        .build()?;
    let agent = Agent::builder(watched(
        open_model(options.model.as_deref(), &reduction)?,
        &tally,
        &reduction,
    ))
    .tool(ListFiles(directory.clone()))
    .tool(Grep(directory.clone()))
    .tool(Read(directory.clone()))
    .tool(Run(directory.clone()))
    .tool(reduction.read_file_tool()) // hints name it, and the agent would not build without it
    .middleware(reduction.clone())
    .middleware(tally.recorder()) // the last one is the innermost: it sees what the tools really return
    .max_model_calls(50)
    .build()?;

    show::introduction(options, &directory, &tally);
    let mut messages = vec![
        Message::system(
            "You explore a source tree with tools. What is no longer shown is stored; read it back when you need it.",
        ),
        Message::user("What is in this directory, and what are its main parts?"),
    ];
    agent.run(&mut messages).await?;

    let verdict = verify::verify(&reduction, &tally, &messages).await;
    show::summary(&tally, &verdict, &messages);
    if options.json {
        show::totals(&tally, &verdict);
    }
    Ok(verdict.lost())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let outcome = match Options::parse(lexopt::Parser::from_env()) {
        Ok(Some(options)) => explore(&options).await,
        Ok(None) => {
            print!("{}", args::HELP);
            return ExitCode::SUCCESS;
        }
        Err(error) => Err(error),
    };
    match outcome {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("agent_loop: {}", failure.text);
            ExitCode::from(failure.code)
        }
    }
}
