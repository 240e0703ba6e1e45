//! L5: a provider that accepted the conversation before a pass accepts it after, and all that a
//! pass does not replace stays the same.

use std::collections::BTreeSet;

use proptest::prelude::Strategy;
use serde_json::Value;

use super::generate::{Body, Id, Output, PartSpec, Speaker, Step, conversations};
use super::shadow::View;
use super::subject::OffcutSubject;
use super::text::{Kind, Text};
use super::wire::{Anthropic, Gemini, OpenAiChat, Responses, Wire};
use super::world::{Setup, World, setups};
use super::{STORE, Violation, hold, require};

/// Tells whether a chat-completions provider accepts the message, judging by what a pass could
/// change.
pub(crate) fn is_valid(message: &Value) -> bool {
    let part_is_valid = |part: &Value| match part["type"].as_str() {
        Some("text") => part["text"].is_string(),
        Some("image_url") => part["image_url"]["url"].is_string(),
        other => other.is_some(),
    };
    let content_is_valid = match &message["content"] {
        Value::String(_) => true,
        Value::Array(parts) => !parts.is_empty() && parts.iter().all(part_is_valid),
        Value::Null => message["role"] == "assistant",
        _ => false,
    };
    let call_is_valid = |call: &Value| {
        let function =
            call["function"]["arguments"].is_string() && call["function"]["name"].is_string();
        let custom = call["custom"]["input"].is_string() && call["custom"]["name"].is_string();
        call["id"].is_string() && (function || custom)
    };
    let calls_are_valid = message.get("tool_calls").is_none_or(|calls| {
        calls
            .as_array()
            .is_some_and(|calls| !calls.is_empty() && calls.iter().all(call_is_valid))
    });
    let answers = message["role"] != "tool" || message["tool_call_id"].is_string();
    content_is_valid && calls_are_valid && answers
}

/// Returns the indexes of the changed messages. A change to anything but results' content, arguments and
/// texts of users breaks L5.
pub(crate) fn changed<F: Wire>(
    wire: F,
    before: &[F::Message],
    after: &[F::Message],
) -> Result<BTreeSet<usize>, Violation> {
    require(before.len() == after.len(), "L5", || {
        format!("{} messages became {}", before.len(), after.len())
    })?;
    let mut changed = BTreeSet::new();
    for (at, (before, after)) in before.iter().zip(after).enumerate() {
        if before == after {
            continue;
        }
        changed.insert(at);
        let [before, after] = [wire.json(before), wire.json(after)];
        check_content(wire, &before, &after)
            .map_err(|why| Violation::new("L5", format!("message {at}: {why}")))?;
        require(
            !wire.is_valid(&before) || wire.is_valid(&after),
            "L5",
            || format!("message {at} is not valid any more: {after}"),
        )?;
        // Compared as text, because the order of keys counts.
        let [old, new] = [before, after].map(|mut message| {
            wire.blank(&mut message);
            blank_texts(&mut message);
            message.to_string()
        });
        require(old == new, "L5", || {
            format!("message {at}: {old}\nbecame {new}")
        })?;
    }
    Ok(changed)
}

/// Empties the texts of a user, which the shadow checks.
fn blank_texts(message: &mut Value) {
    let others = [
        "assistant",
        "model",
        "system",
        "developer",
        "tool",
        "function",
    ];
    if message["role"]
        .as_str()
        .is_some_and(|role| others.contains(&role))
    {
        return;
    }
    let blank = |text: &mut Value| {
        if text.is_string() {
            *text = "".into();
        }
    };
    for name in ["content", "parts"] {
        let Some(content) = message.get_mut(name) else {
            continue;
        };
        blank(content);
        for part in content.as_array_mut().into_iter().flatten() {
            for name in ["text", "value"] {
                part.get_mut(name).into_iter().for_each(blank);
            }
        }
    }
}

/// Checks that result content given as an array of parts is still an array, with the parts' cache
/// mark.
fn check_content<F: Wire>(wire: F, before: &Value, after: &Value) -> Result<(), String> {
    for (old, new) in wire
        .contents(before)
        .into_iter()
        .zip(wire.contents(after))
        .filter(|(old, new)| old != new)
    {
        let is_same_shape = !old.is_array() || new.is_array();
        let marks = |content: &Value| -> Vec<Value> {
            let is_part = |part: &Value| part["type"].as_str().is_some_and(|kind| !kind.is_empty());
            let parts = content
                .as_array()
                .into_iter()
                .flatten()
                .filter(|part| is_part(part));
            parts
                .filter_map(|part| part.get("cache_control").cloned())
                .collect()
        };
        let [old_marks, new_marks] = [marks(old), marks(new)];
        match () {
            () if !is_same_shape => return Err(format!("content that was an array became {new}")),
            () if old_marks.last() != new_marks.last() => {
                return Err(format!("cache marks {old_marks:?} became {new_marks:?}"));
            }
            () => {}
        }
    }
    Ok(())
}

/// Pairs each result with its call, for results whose id belongs to exactly one call.
pub(crate) fn pairs<F: Wire>(wire: F, messages: &[F::Message]) -> Vec<[(usize, usize); 2]> {
    let views: Vec<_> = messages
        .iter()
        .map(|message| super::shadow::view(wire, message))
        .collect();
    let places = |ids: fn(&View) -> &Vec<String>| -> Vec<(&str, (usize, usize))> {
        let all = views.iter().enumerate();
        all.flat_map(|(at, view)| {
            ids(view)
                .iter()
                .enumerate()
                .map(move |(nth, id)| (id.as_str(), (at, nth)))
        })
        .collect()
    };
    let (calls, results) = (places(|view| &view.calls), places(|view| &view.answers));
    let paired = results.into_iter().filter_map(|(id, result)| {
        let found: Vec<_> = calls
            .iter()
            .filter(|(call, _)| *call == id)
            .map(|(_, call)| *call)
            .collect();
        Some([*<&[_; 1]>::try_from(&found[..]).ok()?.first()?, result])
    });
    paired.collect()
}

/// Generates conversations that providers accept, with results and calls long enough to be cleared.
fn valid_conversations() -> impl Strategy<Value = Vec<Step>> {
    conversations().prop_map(|steps| {
        let mut valid = vec![Step::Say {
            speaker: Speaker::User,
            text: Text::new(Kind::Lines, 30, 0),
            style: 0,
        }];
        let mut number = 0;
        for mut step in steps {
            match &mut step {
                Step::Odd(_) | Step::Orphan { .. } => continue,
                Step::Round { calls, style, says } => {
                    // Without calls that have no id, arguments that are not text, and tools that
                    // are not functions.
                    *style &= 0b0110_1101;
                    *says = says.filter(|text| !text.render().trim().is_empty());
                    for call in calls {
                        number += 1;
                        call.id = Id(format!("call_{number}"));
                        let words = || Output {
                            body: Body::Parts(vec![PartSpec::Text(Text::new(
                                Kind::Lines,
                                900,
                                number,
                            ))]),
                            is_error: false,
                        };
                        let output = call.output.get_or_insert_with(words);
                        let is_error = output.is_error;
                        if let Body::Parts(parts) = &mut output.body {
                            parts.retain(|part| match part {
                                PartSpec::Text(text) => !text.render().trim().is_empty(),
                                PartSpec::Opaque(_) => false,
                                _ => !is_error,
                            });
                        }
                        let is_blank = match &output.body {
                            Body::Parts(parts) => parts.is_empty(),
                            Body::Bytes(text) | Body::Broken(text) => {
                                text.render().trim().is_empty()
                            }
                            _ => false,
                        };
                        if is_blank {
                            *output = words();
                        }
                    }
                }
                Step::Say { text, .. } if text.render().trim().is_empty() => continue,
                _ => {}
            }
            valid.push(step);
        }
        valid
    })
}

fn stays_valid<F: Wire>(wire: F, setup: &Setup, steps: &[Step]) -> Result<(), Violation> {
    let drive = super::drive::drive(
        wire,
        OffcutSubject::new(World::new(setup.clone())),
        steps,
        None,
    );
    let (run, _) = super::block_on(drive)?;
    wire.accepts(&run.messages)
        .map_err(|why| Violation::new("L5", why))
}

#[test]
fn l5_messages_that_providers_accept_stay_accepted() {
    let cases = || (setups(STORE), valid_conversations());
    hold(10, cases, |(setup, steps)| {
        stays_valid(OpenAiChat, &setup, &steps)
    });
    hold(10, cases, |(setup, steps)| {
        stays_valid(Responses, &setup, &steps)
    });
    hold(10, cases, |(setup, steps)| {
        stays_valid(Anthropic, &setup, &steps)
    });
    hold(10, cases, |(setup, steps)| {
        stays_valid(Gemini, &setup, &steps)
    });
}
