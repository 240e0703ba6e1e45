//! Several processes store under the same ids in one place at the same moment, some of it the same content.

use std::io::Read;
use std::process::Stdio;

use futures_util::future::try_join_all;
use lexopt::ValueExt;
use offcut::OnOffloadError;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::conversation::{Conversation, Script, reduction, verify_all};
use crate::originals::Originals;
use crate::tally::Tally;
use crate::{PATIENCE, Result, store};

/// What `main` takes for a child that stores among others.
pub(crate) const CONTEND: &str = "contend";

const PROCESSES: u64 = 8;
/// How many conversations each process holds at the same moment.
const CONVERSATIONS: u64 = 4;

/// What the `n`-th conversation of the `process`-th process asks: one half as all others do, one half of its own.
fn script(originals: Originals, process: u64, n: u64, steps: u64) -> Script {
    let first_of_its_own = (1 + process * CONVERSATIONS + n) * 1_000_000;
    Script { originals, first: 0, first_of_its_own, steps }
}

/// The child: waits until all are there, lives its conversations, and writes their messages.
pub(crate) async fn contend(arguments: &mut lexopt::Parser) -> Result<()> {
    let store = store::open_lightly(&arguments.value()?.string()?)?;
    let originals = Originals { seed: arguments.value()?.parse()? };
    let (process, steps): (u64, u64) = (arguments.value()?.parse()?, arguments.value()?.parse()?);
    std::io::stdin().read_to_end(&mut Vec::new())?; // nothing else runs yet
    let lives = (0..CONVERSATIONS).map(|n| {
        let store = store.clone();
        tokio::spawn(async move {
            // One configuration in many places, and no session between them: the same names everywhere.
            let reduction = reduction(store, OnOffloadError::Fail)?;
            let mut conversation = Conversation::new(script(originals, process, n, steps), Vec::new());
            while !conversation.is_over() {
                conversation.go_on(&reduction, PATIENCE, |_, _| ()).await?;
            }
            Result::Ok(conversation.messages)
        })
    });
    let messages: Vec<Vec<Value>> = try_join_all(lives).await?.into_iter().collect::<Result<_>>()?;
    println!("{}", json!(messages));
    Ok(())
}

/// Lets all of them store `results` results each in the store of this name.
pub(crate) async fn run(store: &str, results: u64, seed: u64) -> Result<Tally> {
    let (originals, steps) = (Originals { seed }, results.div_ceil(CONVERSATIONS));
    let mut children = Vec::new();
    for process in 0..PROCESSES {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(CONTEND).args([store.to_owned(), seed.to_string(), process.to_string(), steps.to_string()]);
        children.push(command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?);
    }
    // All of them wait for the end of their input.
    for child in &mut children {
        if let Some(mut input) = child.stdin.take() {
            input.shutdown().await?;
        }
    }
    let outputs = try_join_all(children.into_iter().map(tokio::process::Child::wait_with_output)).await?;
    let mut all = Tally::default();
    let store = store::open_lightly(store)?;
    let reduction = reduction(store.clone(), OnOffloadError::Fail)?;
    for (process, output) in outputs.iter().enumerate() {
        if !output.status.success() {
            all.problem(format!("a process ended with {}", output.status));
            continue;
        }
        for (n, messages) in serde_json::from_slice::<Vec<Vec<Value>>>(&output.stdout)?.into_iter().enumerate() {
            let mut conversation = Conversation::new(script(originals, process as u64, n as u64, steps), messages);
            all.results += conversation.step();
            conversation.verify(&reduction).await;
            all += conversation.tally;
        }
    }
    verify_all(&store, originals, &mut all).await?;
    Ok(all)
}
