//! One clear pass, checked against every law about it.

use std::collections::BTreeSet;

use offcut::Report;
use offcut::report::Subject as About;

use super::drive::Run;
use super::generate::Speaker;
use super::shadow::view;
use super::subject::{OffcutSubject, Subject};
use super::valid::{changed, pairs};
use super::wire::Wire;
use super::world::{Setup, World};
use super::{Violation, require};

/// Runs a pass over the conversation and checks it. With `may_fail` a store may fail once.
pub(crate) async fn pass<F: Wire, S: Subject<F>>(
    wire: F,
    subject: &S,
    run: &mut Run<F>,
    may_fail: bool,
) -> Result<(), Violation> {
    let failed = one(wire, subject, run, may_fail).await?;
    if failed {
        subject.heal();
        let again = one(wire, subject, run, false).await?;
        require(!again, "L2", || {
            "a retry reports a failing store that has been healed".into()
        })?;
    }
    subject.heal();
    check_stable(wire, subject, run).await
}

/// Runs a pass over `messages` alone, however odd. A message that answers them is added first.
pub(crate) async fn pass_over<F: Wire>(
    wire: F,
    setup: Setup,
    mut messages: Vec<F::Message>,
) -> Result<(), Violation> {
    messages.push(wire.say(Speaker::Assistant, ".".into(), 0));
    let mut run = Run {
        messages,
        ..Run::default()
    };
    for (at, message) in run.messages.iter().enumerate() {
        run.shadow.append(wire, at, message, None);
    }
    pass(
        wire,
        &OffcutSubject::new(World::new(setup)),
        &mut run,
        false,
    )
    .await
}

/// Runs and checks one pass. Returns whether a store failed in it.
async fn one<F: Wire, S: Subject<F>>(
    wire: F,
    subject: &S,
    run: &mut Run<F>,
    may_fail: bool,
) -> Result<bool, Violation> {
    let before = run.messages.clone();
    let mut is_retry = false;
    let report = match subject.clear(&mut run.messages).await {
        Ok(report) => report,
        Err(why) => {
            require(may_fail, "L2", || {
                format!("failed although no store did: {why}")
            })?;
            require(run.messages == before, "L2", || {
                "an error changed the messages".into()
            })?;
            run.shadow.check_store(subject).await?;
            subject.heal();
            is_retry = true;
            let again = subject.clear(&mut run.messages).await;
            again.map_err(|why| Violation::new("L2", format!("a retry failed: {why}")))?
        }
    };
    let failed = !is_retry && report.as_ref().is_some_and(has_failed);
    run.shadow.check_store(subject).await?;
    let changed = changed(wire, &before, &run.messages)?;
    require(
        pairs(wire, &before) == pairs(wire, &run.messages),
        "L5",
        || "results answer other calls".into(),
    )?;
    if wire.accepts(&before).is_ok() {
        wire.accepts(&run.messages)
            .map_err(|why| Violation::new("L5", format!("accepted before, and now: {why}")))?;
    }
    for at in &changed {
        check_shorter(wire, subject, &before[*at], &run.messages[*at])
            .map_err(|why| Violation::new("L3", format!("message {at}: {why}")))?;
    }
    let lost = run.shadow.check(wire, subject, &run.messages).await?;
    let newly_lost: BTreeSet<_> = lost.difference(&run.lost).copied().collect();
    require(newly_lost.is_empty() || failed, "L1", || {
        format!("lost although no store failed: {newly_lost:?}")
    })?;
    run.lost = lost;
    if let Some(report) = &report {
        check_report(wire, subject, report, &before, &run.messages, &changed)?;
    }
    subject.check_places()?;
    for message in &run.messages {
        run.known.learn(&view(wire, message));
    }
    Ok(failed)
}

/// Tells whether a store failed. Failing handlers and callbacks, which change nothing, don't count.
pub(crate) fn has_failed(report: &Report) -> bool {
    let of_handlers = [
        "the truncation handler",
        "the clear handler",
        "the id callback",
    ];
    let is_of_store = |error: &String| !of_handlers.iter().any(|name| error.starts_with(name));
    report
        .decisions
        .iter()
        .filter_map(|decision| decision.error.as_ref())
        .any(is_of_store)
}

/// Checks L3: each replacement has fewer bytes and no more tokens than the text it replaces.
fn check_shorter<F: Wire, S: Subject<F>>(
    wire: F,
    subject: &S,
    before: &F::Message,
    after: &F::Message,
) -> Result<(), String> {
    let [old, new] = [view(wire, before), view(wire, after)];
    for (old, new) in old
        .slots
        .iter()
        .zip(&new.slots)
        .filter(|(old, new)| old != new)
    {
        if size(new) >= size(old) {
            return Err(format!(
                "{} bytes were replaced by {}",
                size(old),
                size(new)
            ));
        }
    }
    for (old, new) in old.arguments.iter().zip(&new.arguments) {
        if old != new && new.len() >= old.len() {
            return Err(format!(
                "{} bytes of arguments were replaced by {}",
                old.len(),
                new.len()
            ));
        }
    }
    let [before, after] = [subject.count(before), subject.count(after)];
    if after > before {
        Err(format!("{before} tokens were replaced by {after}"))
    } else {
        Ok(())
    }
}

fn size(parts: &[super::shadow::PartContent]) -> u64 {
    parts.iter().map(|part| part.bytes().len() as u64).sum()
}

/// Checks L12: the sums are exact, and the report matches the changes.
fn check_report<F: Wire, S: Subject<F>>(
    wire: F,
    subject: &S,
    report: &Report,
    before: &[F::Message],
    after: &[F::Message],
    changed: &BTreeSet<usize>,
) -> Result<(), Violation> {
    let total = |messages: &[F::Message]| {
        messages
            .iter()
            .map(|message| subject.count(message))
            .sum::<u64>()
    };
    let (before_total, after_total) = (total(before), total(after));
    let tokens = report
        .decisions
        .iter()
        .filter_map(|decision| decision.tokens);
    let difference: i128 = tokens
        .map(|change| i128::from(change.before) - i128::from(change.after))
        .sum();
    require(
        difference == i128::from(before_total) - i128::from(after_total),
        "L12",
        || {
            format!(
                "the report says {difference} tokens were freed; {before_total} became {after_total}"
            )
        },
    )?;
    require(
        i128::from(report.cleared_input_tokens()) == difference,
        "L12",
        || "the total is not the sum".into(),
    )?;
    let said: BTreeSet<usize> = report
        .decisions
        .iter()
        .filter(|decision| decision.outcome.is_change())
        .filter_map(|decision| decision.message)
        .collect();
    require(said == *changed, "L12", || {
        format!("said to be changed: {said:?}; changed: {changed:?}")
    })?;
    for decision in report
        .decisions
        .iter()
        .filter(|decision| decision.outcome.is_change())
    {
        let now = view(wire, &after[decision.message.unwrap()]);
        let sizes: Vec<u64> = match decision.subject {
            About::Result => now.slots.iter().map(|parts| size(parts)).collect(),
            About::UserText => {
                let texts = now.texts.iter();
                texts.map(|text| text.bytes().len() as u64).collect()
            }
            _ => now
                .arguments
                .iter()
                .map(|arguments| arguments.len() as u64)
                .collect(),
        };
        require(sizes.contains(&decision.bytes.after), "L12", || {
            format!("said to be {} bytes: {sizes:?}", decision.bytes.after)
        })?;
    }
    Ok(())
}

/// Checks L4: over its own output a pass does nothing, also after a JSON round trip or a restart.
async fn check_stable<F: Wire, S: Subject<F>>(
    wire: F,
    subject: &S,
    run: &mut Run<F>,
) -> Result<(), Violation> {
    let written: Vec<F::Message> = run
        .messages
        .iter()
        .map(|message| round_trip(wire, message))
        .collect();
    require(written == run.messages, "L4", || {
        "a message is another one once it was written and read".into()
    })?;
    repeat(wire, subject, run, "again").await?;
    repeat(wire, &subject.restarted(), run, "in another process").await
}

async fn repeat<F: Wire, S: Subject<F>>(
    _: F,
    subject: &S,
    run: &mut Run<F>,
    how: &str,
) -> Result<(), Violation> {
    let writes = subject.writes();
    let mut again = run.messages.clone();
    let report = subject
        .clear(&mut again)
        .await
        .map_err(|why| Violation::new("L4", format!("a pass {how} failed: {why}")))?;
    for (at, (first, second)) in run.messages.iter().zip(&again).enumerate() {
        require(first == second, "L4", || {
            format!("a pass {how} changed message {at}: {first:.600?}\ninto {second:.600?}")
        })?;
    }
    require(again.len() == run.messages.len(), "L4", || {
        format!("a pass {how} changed how many messages there are")
    })?;
    require(subject.writes() == writes, "L4", || {
        format!(
            "a pass {how} stored something: {:?}",
            report.as_ref().map(|report| &report.decisions)
        )
    })?;
    require(
        !report.is_some_and(|report| report.is_change()),
        "L12",
        || format!("a pass {how} says that it changed something"),
    )?;
    let stored = subject.stored().await;
    require(run.shadow.is_stored(&stored), "L4", || {
        format!("a pass {how} changed the store")
    })
}

pub(crate) fn round_trip<F: Wire>(wire: F, message: &F::Message) -> F::Message {
    wire.parse(serde_json::from_str(&wire.json(message).to_string()).unwrap())
}
