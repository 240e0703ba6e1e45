//! C13 and L4: a loop that passes in the untouched history every turn gets the same bytes each
//! time, stores nothing twice, and gets the same messages as a loop that changes them in place.

use offcut::format::Plain;
use offcut::report::Outcome;
use offcut::{ToolCall, ToolOutput};

use super::generate::{CallSpec, Step, conversations};
use super::output::{Known, aim, make};
use super::shadow::view;
use super::subject::{OffcutSubject, Subject};
use super::wire::{Anthropic, Gemini, OpenAiChat, Responses, Wire};
use super::world::{Setup, World, setups};
use super::{STORE, Violation, block_on, hold, require};

struct Loop<F: Wire> {
    subject: OffcutSubject,
    messages: Vec<F::Message>,
}

impl<F: Wire> Loop<F> {
    fn new(setup: &Setup) -> Self {
        Self {
            subject: OffcutSubject::new(World::new(setup.clone())),
            messages: Vec::new(),
        }
    }

    fn writes(&self) -> u64 {
        Subject::<F>::writes(&self.subject)
    }

    async fn answer(
        &mut self,
        wire: F,
        call: &ToolCall,
        output: ToolOutput,
        style: u8,
        is_first: bool,
    ) {
        let shown = Subject::<F>::truncate(&self.subject, call, output)
            .await
            .unwrap();
        let message = wire.answer(call, shown.parts, shown.is_error, style);
        if is_first || !wire.join(self.messages.last_mut().unwrap(), &message) {
            self.messages.push(message);
        }
    }
}

async fn hand_in_originals<F: Wire>(
    wire: F,
    setup: &Setup,
    steps: &[Step],
) -> Result<(), Violation> {
    let (mut over_originals, mut in_place) = (Loop::<F>::new(setup), Loop::<F>::new(setup));
    let mut known = Known::default();
    let mut last_sent: Vec<F::Message> = Vec::new();
    for step in steps {
        match step {
            Step::Say {
                speaker,
                text,
                style,
            } => {
                let message = wire.say(*speaker, text.render(), *style);
                over_originals.messages.push(message.clone());
                in_place.messages.push(message);
            }
            Step::Round { says, calls, style } => {
                let made: Vec<ToolCall> = calls.iter().map(|call| resolve(&known, call)).collect();
                let asked = wire.ask(says.map(super::text::Text::render), &made, *style);
                over_originals.messages.extend(asked.clone());
                in_place.messages.extend(asked);
                let mut is_first = true;
                for (call, spec) in made.iter().zip(calls) {
                    let Some(output) = &spec.output else { continue };
                    for turn in [&mut over_originals, &mut in_place] {
                        let made = make::<F, _>(&turn.subject, &known, call, output).await;
                        turn.answer(wire, call, made.output, style.rotate_left(3), is_first)
                            .await;
                    }
                    is_first = false;
                }
            }
            Step::Clear => {
                let sent = compare(wire, &mut over_originals, &mut in_place, &last_sent).await?;
                sent.iter()
                    .for_each(|message| known.learn(&view(wire, message)));
                last_sent = sent;
            }
            Step::Orphan { .. } | Step::Odd(_) | Step::Restart | Step::RoundTrip => {}
        }
    }
    Ok(())
}

fn resolve(known: &Known, spec: &CallSpec) -> ToolCall {
    let mut call = ToolCall::new(
        &*spec.id.0,
        spec.tool.name(),
        known.arguments(&spec.arguments),
    );
    if let Some(output) = &spec.output {
        aim(known, &output.body, &mut call);
    }
    call
}

/// Runs a pass over the originals and one in place. Returns the messages to send.
async fn compare<F: Wire>(
    wire: F,
    over_originals: &mut Loop<F>,
    in_place: &mut Loop<F>,
    last_sent: &[F::Message],
) -> Result<Vec<F::Message>, Violation> {
    let writes = [over_originals.writes(), in_place.writes()];
    let mut sent = over_originals.messages.clone();
    let report = over_originals
        .subject
        .reduction
        .clear(&wire, &mut sent)
        .await
        .unwrap();
    over_originals_checks(wire, over_originals, &report, &sent, last_sent)?;
    in_place
        .subject
        .reduction
        .clear(&wire, &mut in_place.messages)
        .await
        .unwrap();
    for (at, (one, other)) in sent.iter().zip(&in_place.messages).enumerate() {
        require(one == other, "C13", || {
            format!("message {at} over originals: {one:.500?}\nin place: {other:.500?}")
        })?;
    }
    let written = [
        over_originals.writes() - writes[0],
        in_place.writes() - writes[1],
    ];
    require(written[0] == written[1], "C13", || {
        format!(
            "{} writes over originals, {} in place",
            written[0], written[1]
        )
    })?;

    let (writes, mut again) = (over_originals.writes(), over_originals.messages.clone());
    over_originals
        .subject
        .reduction
        .clear(&wire, &mut again)
        .await
        .unwrap();
    require(again == sent, "C13", || {
        "the same originals gave other bytes".into()
    })?;
    require(over_originals.writes() == writes, "C13", || {
        "the same originals were stored again".into()
    })?;
    Ok(sent)
}

/// Returns true if a new decision explains why a message with replacements is sent in another way, and all of
/// those replacements are still sent: of parallel calls, one may be answered later than the others.
fn adds_to<F: Wire>(
    wire: F,
    report: &offcut::Report,
    at: usize,
    turn: &Loop<F>,
    messages: [&F::Message; 2],
) -> bool {
    let is_decided = report.decisions.iter().any(|decision| {
        let is_new = decision.outcome != Outcome::Repeated && decision.outcome.is_change();
        decision.message == Some(at) && is_new
    });
    let [last, now] = messages.map(|message| view(wire, message));
    let original = view(wire, &turn.messages[at]);
    is_decided
        && stay(&original.slots, &last.slots, &now.slots)
        && stay(&original.arguments, &last.arguments, &now.arguments)
        && stay(&original.texts, &last.texts, &now.texts)
}

/// Returns true if whatever `last` has in place of an `original` is there `now`.
fn stay<T: PartialEq>(original: &[T], last: &[T], now: &[T]) -> bool {
    let stays = |((original, last), now): ((&T, &T), &T)| last == original || now == last;
    last.len() == now.len() && original.iter().zip(last).zip(now).all(stays)
}

fn over_originals_checks<F: Wire>(
    wire: F,
    turn: &Loop<F>,
    report: &offcut::Report,
    sent: &[F::Message],
    last_sent: &[F::Message],
) -> Result<(), Violation> {
    for (at, last) in last_sent.iter().enumerate() {
        let was_replaced = *last != turn.messages[at];
        let is_same = || sent[at] == *last || adds_to(wire, report, at, turn, [last, &sent[at]]);
        require(!was_replaced || is_same(), "C13", || {
            format!(
                "message {at} was sent as {last:.500?}\nand is now {:.500?}",
                sent[at]
            )
        })?;
    }
    let total = |messages: &[F::Message]| {
        messages
            .iter()
            .map(|m| Subject::<F>::count(&turn.subject, m))
            .sum::<u64>()
    };
    let difference = total(&turn.messages) - total(sent);
    require(report.cleared_input_tokens() == difference, "L12", || {
        format!(
            "{difference} tokens were freed, {} are said to be",
            report.cleared_input_tokens()
        )
    })?;
    let repeats = report
        .decisions
        .iter()
        .filter(|decision| decision.outcome == Outcome::Repeated)
        .count();
    let replaced = last_sent
        .iter()
        .zip(&turn.messages)
        .filter(|(last, original)| last != original)
        .count();
    require(repeats >= replaced, "C13", || {
        format!("{replaced} messages were replaced before, {repeats} decisions repeated")
    })
}

#[test]
fn c13_originals_give_the_same_bytes_every_turn_with_our_own_messages() {
    let cases = || (setups(STORE), conversations());
    hold(15, cases, |(setup, steps)| {
        block_on(hand_in_originals(Plain, &setup, &steps))
    });
}

#[test]
fn c13_originals_give_the_same_bytes_every_turn_with_chat_json() {
    let cases = || (setups(STORE), conversations());
    hold(15, cases, |(setup, steps)| {
        block_on(hand_in_originals(OpenAiChat, &setup, &steps))
    });
}

#[test]
fn c13_originals_give_the_same_bytes_every_turn_with_other_wire_formats() {
    let cases = || (setups(STORE), conversations());
    hold(5, cases, |(setup, steps)| {
        block_on(hand_in_originals(Responses, &setup, &steps))
    });
    hold(5, cases, |(setup, steps)| {
        block_on(hand_in_originals(Anthropic, &setup, &steps))
    });
    hold(5, cases, |(setup, steps)| {
        block_on(hand_in_originals(Gemini, &setup, &steps))
    });
}
