//! An agent loop over generated steps. Results go through `truncate` as they arrive, passes run in
//! between, and the laws are checked after every step.

use std::collections::BTreeSet;
use std::slice;

use offcut::hint::Kind;
use offcut::preview::text::decoding::text_of;
use offcut::report::Outcome;
use offcut::{Part, Report, ToolCall, ToolOutput};

use super::generate::{Body, CallSpec, Output, Step};
use super::output::{Known, Made, aim, make};
use super::pass::{has_failed, pass, round_trip};
use super::shadow::{PartContent, Shadow, view};
use super::subject::{Shown, Subject};
use super::wire::Wire;
use super::{Violation, require};

/// The write that fails in a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FaultAt {
    pub(crate) step: usize,
    /// Number of the write within the step, from 1.
    pub(crate) nth: u64,
    pub(crate) is_done: bool,
}

/// The state of a driven conversation.
#[derive(Debug)]
pub(crate) struct Run<F: Wire> {
    pub(crate) messages: Vec<F::Message>,
    pub(crate) shadow: Shadow,
    pub(crate) known: Known,
    /// Indexes of the messages that admit a loss.
    pub(crate) lost: BTreeSet<usize>,
    /// Number of writes in each step.
    pub(crate) writes: Vec<u64>,
}

impl<F: Wire> Default for Run<F> {
    fn default() -> Self {
        Self {
            messages: Vec::new(),
            shadow: Shadow::default(),
            known: Known::default(),
            lost: BTreeSet::new(),
            writes: Vec::new(),
        }
    }
}

/// Drives `subject` through `steps`.
pub(crate) async fn drive<F: Wire, S: Subject<F>>(
    wire: F,
    mut subject: S,
    steps: &[Step],
    fault: Option<FaultAt>,
) -> Result<(Run<F>, S), Violation> {
    let mut run = Run::default();
    for (at, step) in steps.iter().enumerate() {
        let writes = subject.writes();
        let fault = fault.filter(|fault| fault.step == at);
        if let Some(fault) = fault {
            subject.fault(fault.nth, fault.is_done);
        }
        match step {
            Step::Restart => subject = subject.restarted(),
            Step::Clear => pass(wire, &subject, &mut run, fault.is_some()).await?,
            step => take(wire, &subject, &mut run, step, fault.is_some()).await?,
        }
        subject.heal();
        run.writes.push(subject.writes() - writes);
    }
    Ok((run, subject))
}

async fn take<F: Wire, S: Subject<F>>(
    wire: F,
    subject: &S,
    run: &mut Run<F>,
    step: &Step,
    may_fail: bool,
) -> Result<(), Violation> {
    match step {
        Step::Say {
            speaker,
            text,
            style,
        } => {
            run.append(wire, wire.say(*speaker, text.render(), *style), None);
        }
        Step::Odd(which) => run.append(wire, wire.odd(*which), None),
        Step::RoundTrip => {
            run.messages = run
                .messages
                .iter()
                .map(|message| round_trip(wire, message))
                .collect();
        }
        Step::Orphan { call, style } => {
            let made = run.call(call);
            if let Some(output) = &call.output {
                arrive(
                    wire,
                    subject,
                    run,
                    &made,
                    output,
                    (*style, Neighbour::None),
                    may_fail,
                )
                .await?;
            }
        }
        Step::Round { says, calls, style } => {
            let made: Vec<ToolCall> = calls.iter().map(|call| run.call(call)).collect();
            for message in wire.ask(says.map(super::text::Text::render), &made, *style) {
                run.append(wire, message, None);
            }
            let mut answers: Vec<_> = made.iter().zip(calls).collect();
            if style % 5 == 0 {
                answers.reverse();
            }
            let mut neighbour = Neighbour::None;
            for (call, spec) in answers {
                if let Some(output) = &spec.output {
                    arrive(
                        wire,
                        subject,
                        run,
                        call,
                        output,
                        (style.rotate_left(3), neighbour),
                        may_fail,
                    )
                    .await?;
                    neighbour = Neighbour::SameRound;
                }
            }
        }
        Step::Clear | Step::Restart => unreachable!("taken by the caller"),
    }
    Ok(())
}

/// Tells whether an arriving result may share a message with the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Neighbour {
    None,
    SameRound,
}

impl<F: Wire> Run<F> {
    fn call(&self, spec: &CallSpec) -> ToolCall {
        let mut call = ToolCall::new(
            &*spec.id.0,
            spec.tool.name(),
            self.known.arguments(&spec.arguments),
        );
        if let Some(output) = &spec.output {
            aim(&self.known, &output.body, &mut call);
        }
        call
    }

    fn append(&mut self, wire: F, message: F::Message, originals: Option<Vec<PartContent>>) {
        self.shadow
            .append(wire, self.messages.len(), &message, originals);
        self.known.learn(&view(wire, &message));
        self.messages.push(message);
    }

    fn answer(
        &mut self,
        wire: F,
        message: F::Message,
        originals: Vec<PartContent>,
        neighbour: Neighbour,
    ) {
        let is_near = neighbour == Neighbour::SameRound;
        match self.messages.len().checked_sub(1).filter(|_| is_near) {
            Some(last) if wire.join(&mut self.messages[last], &message) => {
                self.known.learn(&view(wire, &message));
                self.shadow
                    .append(wire, last, &self.messages[last], Some(originals));
            }
            _ => self.append(wire, message, Some(originals)),
        }
    }
}

/// Truncates a result that arrives, checks it and appends it.
async fn arrive<F: Wire, S: Subject<F>>(
    wire: F,
    subject: &S,
    run: &mut Run<F>,
    call: &ToolCall,
    spec: &Output,
    (style, neighbour): (u8, Neighbour),
    may_fail: bool,
) -> Result<(), Violation> {
    let Made { output, originals } = make(subject, &run.known, call, spec).await;
    let is_error = output.is_error;
    run.shadow.say(&call.id, &originals);
    let shown = match subject.truncate(call, output).await {
        Ok(shown) => shown,
        Err(why) => {
            require(may_fail, "L2", || {
                format!("failed although no store did: {why}")
            })?;
            run.shadow.check_store(subject).await?;
            subject.heal();
            let Made { output, .. } = make(subject, &run.known, call, spec).await;
            let again = subject.truncate(call, output).await;
            again.map_err(|why| Violation::new("L2", format!("a retry failed: {why}")))?
        }
    };
    require(shown.is_error == is_error, "L5", || {
        "the error mark of a result has changed".into()
    })?;
    let failed = shown.report.as_ref().is_some_and(has_failed);
    let now: Vec<PartContent> = shown.parts.iter().map(PartContent::from).collect();
    let returned = originals.clone();
    let (originals, is_lost) = check_arrival(subject, run, call, originals, &now, failed).await?;
    let as_message = |parts: Vec<Part>| wire.answer(call, parts, is_error, style);
    check_shorter(&originals, &shown.parts)?;
    if let Some(report) = &shown.report {
        check_report(report, &returned, &now)?;
    }
    run.shadow.check_store(subject).await?;
    // The error that ended a stream is shown after the result, even beyond the limit.
    let is_broken = matches!(spec.body, Body::Broken(_));
    if !failed && !is_broken {
        check_stable(subject, call, &shown).await?;
        run.shadow.check_store(subject).await?;
    }
    subject.check_places()?;
    run.answer(wire, as_message(shown.parts), originals, neighbour);
    if is_lost {
        run.lost.insert(run.messages.len() - 1);
    }
    Ok(())
}

/// Checks L1 for the parts shown of a result. Returns the parts that count as the original from now
/// on, and whether they admit a loss.
async fn check_arrival<F: Wire, S: Subject<F>>(
    subject: &S,
    run: &mut Run<F>,
    call: &ToolCall,
    originals: Vec<PartContent>,
    now: &[PartContent],
    failed: bool,
) -> Result<(Vec<PartContent>, bool), Violation> {
    let why = match run.shadow.check_slot(subject, &originals, now).await {
        Ok(false) => return Ok((originals, false)),
        Ok(true) if failed => return Ok((originals, true)),
        Ok(true) => "lost although no store failed".to_owned(),
        Err(why) => why,
    };
    // Bytes that are not UTF-8 and not stored can only be shown as text.
    let is_lossy = |(old, now): (&PartContent, &PartContent)| match old {
        PartContent::Raw(bytes) => now.bytes() == text_of(bytes).as_bytes(),
        other => other.bytes() == now.bytes(),
    };
    let is_shown_lossy = originals.len() == now.len() && originals.iter().zip(now).all(is_lossy);
    if is_shown_lossy && (failed || !subject.truncates(&call.name))
        || is_page_of(subject, &originals, now).await
    {
        run.shadow.say(&call.id, now);
        return Ok((now.to_vec(), false));
    }
    Err(Violation::new(
        "L1",
        format!("a result that arrived: {why}"),
    ))
}

/// R3: tells whether `now` is a page of stored content and the original is a stretch of that content starting at the
/// same place. Line numbers do not count, nor do a few words before and after the stretch, which `now` shows in
/// addition to the page. The error that ended a stream is shown after all of it.
async fn is_page_of<F: Wire, S: Subject<F>>(
    subject: &S,
    originals: &[PartContent],
    now: &[PartContent],
) -> bool {
    let (originals, now) = match (originals, now) {
        ([original, error], [now @ .., last]) if error == last => (slice::from_ref(original), now),
        parts => parts,
    };
    let ([original], [beside @ .., PartContent::Text(page)]) = (originals, now) else {
        return false;
    };
    let Some(hint) = offcut::hint::Hint::parse(page) else {
        return false;
    };
    let (Kind::Page { from }, Some(location)) = (hint.kind, hint.location) else {
        return false;
    };
    let Some(content) = subject.read(location.as_str()).await else {
        return false;
    };
    let lines = content
        .split_inclusive(|byte| *byte == b'\n')
        .skip(from.line as usize - 1);
    let there: Vec<u8> = lines
        .clone()
        .flatten()
        .copied()
        .skip(from.byte as usize)
        .collect();
    let numbered = |separator: char| -> Vec<u8> {
        let number = |(line, number): (&[u8], u64)| {
            [format!("{number:>6}{separator}").as_bytes(), line].concat()
        };
        lines.clone().zip(from.line..).flat_map(number).collect()
    };
    let beside: Vec<u8> = beside
        .iter()
        .flat_map(|part| part.bytes().to_vec())
        .collect();
    let ways = [there, numbered('\t')];
    beside.len() <= 256
        && (0..=beside.len()).any(|at| {
            let stretch = original.bytes().strip_prefix(&beside[..at]);
            let stretch = stretch.and_then(|rest| rest.strip_suffix(&beside[at..]));
            // A line feed at the end carries no content.
            let is_there = |stretch: &[u8]| ways.iter().any(|way| way.starts_with(stretch));
            stretch.is_some_and(|text| {
                is_there(text) || text.strip_suffix(b"\n").is_some_and(is_there)
            })
        })
}

/// Checks L3 for the parts shown: text by text, or all at once if texts were joined.
fn check_shorter(originals: &[PartContent], shown: &[Part]) -> Result<(), Violation> {
    let is_text = |part: &Part| matches!(part, Part::Text(_));
    let compare = |old: &[&PartContent], new: &[&Part]| {
        let bytes = |parts: &mut dyn Iterator<Item = usize>| parts.sum::<usize>();
        let old_bytes = bytes(&mut old.iter().map(|part| text_of(part.bytes()).len()));
        let new_bytes = bytes(
            &mut new
                .iter()
                .map(|part| PartContent::from(*part).bytes().len()),
        );
        require(new_bytes <= old_bytes - old_bytes / 4, "L3", || {
            format!("{old_bytes} bytes of a result became {new_bytes}")
        })
    };
    if originals.len() == shown.len() {
        for (old, new) in originals.iter().zip(shown) {
            // T14: invalid UTF-8 is stored, and the hint comes on top of the text shown.
            let is_replaced = old.bytes() != PartContent::from(new).bytes()
                && !matches!(old, PartContent::Raw(_));
            if is_replaced && is_text(new) {
                compare(&[old], &[new])?;
            }
        }
        return Ok(());
    }
    let is_counted = |part: &&PartContent| {
        matches!(
            part,
            PartContent::Text(_) | PartContent::Raw(_) | PartContent::Json(_)
        )
    };
    let texts = shown
        .iter()
        .filter(|part| matches!(part, Part::Text(_) | Part::Json(_)));
    compare(
        &originals.iter().filter(is_counted).collect::<Vec<_>>(),
        &texts.collect::<Vec<_>>(),
    )
}

/// Checks L12 for a truncation: the reported sizes are those of the texts.
fn check_report(
    report: &Report,
    originals: &[PartContent],
    now: &[PartContent],
) -> Result<(), Violation> {
    let [decision] = &report.decisions[..] else {
        return Ok(());
    };
    let size = |parts: &[PartContent]| -> u64 {
        let texts = parts.iter().filter(|part| {
            matches!(
                part,
                PartContent::Text(_) | PartContent::Raw(_) | PartContent::Json(_)
            )
        });
        texts.map(|part| part.bytes().len() as u64).sum()
    };
    // The error that ended a stream is shown after the result and is not a part of it.
    let is_broken =
        |parts: &[PartContent]| parts.last() == Some(&PartContent::Text("the pipe broke".into()));
    let trim = |parts: &[PartContent]| {
        size(parts)
            - if is_broken(parts) {
                "the pipe broke".len() as u64
            } else {
                0
            }
    };
    let said = decision.outcome == Outcome::Paged || decision.bytes.before == trim(originals);
    require(said && decision.bytes.after == trim(now), "L12", || {
        format!(
            "{:?}: said to be {:?}; {} became {}",
            decision.outcome,
            decision.bytes,
            trim(originals),
            trim(now)
        )
    })
}

/// Checks L4 for truncation: truncating the parts shown changes nothing.
async fn check_stable<F: Wire, S: Subject<F>>(
    subject: &S,
    call: &ToolCall,
    shown: &Shown,
) -> Result<(), Violation> {
    let writes = subject.writes();
    let output = ToolOutput {
        is_error: shown.is_error,
        ..ToolOutput::parts(shown.parts.clone())
    };
    let again = subject
        .truncate(call, output)
        .await
        .map_err(|why| Violation::new("L4", format!("truncating again: {why}")))?;
    require(again.parts == shown.parts, "L4", || {
        format!(
            "truncated again: {:.500?}\nbecame {:.500?}",
            shown.parts, again.parts
        )
    })?;
    require(subject.writes() == writes, "L4", || {
        "truncating again stored something".into()
    })
}
