//! Several processes store at once under the same ids in one place, partly the same content.

use std::process::Stdio;

use futures_util::future::try_join_all;
use lexopt::ValueExt;
use offcut::OnOffloadError;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

use crate::conversation::{Conversation, PATIENCE, Script, reduction, verify_all};
use crate::originals::Originals;
use crate::result::Result;
use crate::store;
use crate::tally::Tally;

/// Argument that makes `main` a child that stores along with others.
pub(crate) const CONTEND: &str = "contend";

const PROCESSES: u64 = 8;
/// Number of conversations that each process drives at the same time.
const CONVERSATIONS: u64 = 4;

/// The script of conversation `n` of a process: every other step is shared by all conversations.
fn script(originals: Originals, process: u64, n: u64, steps: u64) -> Script {
    let first_of_its_own = (1 + process * CONVERSATIONS + n) * 1_000_000;
    Script {
        originals,
        first: 0,
        first_of_its_own,
        steps,
        ids: steps,
    }
}

/// The child: drives its conversations, one round for each line from the parent, and prints their
/// messages at the end.
pub(crate) async fn contend(arguments: &mut lexopt::Parser) -> Result<()> {
    let store = store::open_lightly(&arguments.value()?.string()?)?;
    let originals = Originals {
        seed: arguments.value()?.parse()?,
    };
    let (process, steps): (u64, u64) = (arguments.value()?.parse()?, arguments.value()?.parse()?);
    // The same configuration everywhere, without sessions, so all use the same names.
    let mut lives = Vec::new();
    for n in 0..CONVERSATIONS {
        let conversation = Conversation::new(script(originals, process, n, steps), Vec::new());
        lives.push((
            reduction(store.clone(), OnOffloadError::Fail)?,
            conversation,
        ));
    }
    let mut rounds = std::io::stdin().lines();
    for _ in 0..steps {
        println!("ready");
        rounds.next().ok_or("the parent is gone")??;
        let all = lives.into_iter().map(|(reduction, mut conversation)| {
            tokio::spawn(async move {
                conversation.go_on(&reduction, PATIENCE, |_, _| ()).await?;
                Result::Ok((reduction, conversation))
            })
        });
        lives = try_join_all(all)
            .await?
            .into_iter()
            .collect::<Result<_>>()?;
    }
    let messages: Vec<_> = lives
        .into_iter()
        .map(|(_, conversation)| conversation.messages)
        .collect();
    println!("{}", json!(messages));
    Ok(())
}

/// Lets all processes store `results` results each in the store called `store`, round by round, so
/// that they reach each id at the same time.
pub(crate) async fn run(store: &str, results: u64, seed: u64) -> Result<Tally> {
    let (originals, steps) = (Originals { seed }, results.div_ceil(CONVERSATIONS));
    let mut children = Vec::new();
    for process in 0..PROCESSES {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(CONTEND).args([
            store.to_owned(),
            seed.to_string(),
            process.to_string(),
            steps.to_string(),
        ]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (input, output) = input.zip(output).ok_or("a child without pipes")?;
        children.push((child, input, BufReader::new(output).lines()));
    }
    for _ in 0..steps {
        for (_, _, output) in &mut children {
            output.next_line().await?;
        }
        for (_, input, _) in &mut children {
            input.write_all(b"go\n").await?;
        }
    }
    let mut all = Tally::default();
    let store = store::open_lightly(store)?;
    let reduction = reduction(store.clone(), OnOffloadError::Fail)?;
    for (process, (mut child, input, mut output)) in children.into_iter().enumerate() {
        let last = output.next_line().await?.unwrap_or_default();
        drop(input);
        let status = child.wait().await?;
        if !status.success() {
            all.problem(format!("a process ended with {status}"));
            continue;
        }
        for (n, messages) in serde_json::from_str::<Vec<Vec<Value>>>(&last)?
            .into_iter()
            .enumerate()
        {
            let mut conversation =
                Conversation::new(script(originals, process as u64, n as u64, steps), messages);
            all.results += conversation.step();
            conversation.verify(&reduction).await;
            all += conversation.tally;
        }
    }
    verify_all(&store, originals, &mut all).await?;
    Ok(all)
}
