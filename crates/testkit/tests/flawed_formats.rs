//! Formats that are broken on purpose, and the clauses of the suite that notice.
// Helpers may unwrap, as tests may.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../../../tests/rules/formats/samples.rs"]
mod samples;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use offcut::Part;
use offcut::format::{Format, NewPiece, Piece, ResultHead, WireFormat};
use serde_json::{Value, json};

use self::samples::samples;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    None,
    BeginsLate,
    IsRestless,
    CountsFromOne,
    ReplacesTheFirst,
    Appends,
    ForgetsTheId,
    ForgetsTheErrorMark,
    MakesAMessageAnew,
    ReplacesSecondArguments,
    WritesArgumentsAsTheyAre,
    ReplacesWhatIsNotThere,
    LosesTheSecondText,
    TrustsTheShape,
    NestsWhatItPuts,
    HidesIdsOfResults,
    WritesJsonAsDebugText,
    MarksWhatItReplaces,
    MarksWhatItChanges,
    CountsItsChanges,
    ReplacesTheNextText,
    DeniesTexts,
}

struct Flawed {
    of: WireFormat,
    flaw: Flaw,
    visits: AtomicUsize,
}

impl Flawed {
    fn has(&self, message: &Value, slot: usize) -> bool {
        let mut slots = 0;
        self.of.visit(message, &mut |piece| {
            slots += usize::from(matches!(piece, Piece::Result(_)));
        });
        slot < slots
    }
}

impl Format for Flawed {
    type Message = Value;

    fn visit<'m>(&self, message: &'m Value, see: &mut dyn FnMut(Piece<'m>)) {
        let nth = self.visits.fetch_add(1, Ordering::Relaxed);
        if self.flaw == Flaw::TrustsTheShape {
            assert!(
                message["role"].is_string() || message["type"].is_string(),
                "no message at all"
            );
        }
        self.of
            .visit(message, &mut |piece| match (self.flaw, piece) {
                (Flaw::BeginsLate, Piece::Role(_)) => {}
                (Flaw::IsRestless, Piece::Role(_)) if nth.is_multiple_of(2) => {
                    see(piece);
                    see(piece);
                }
                (Flaw::ForgetsTheErrorMark, Piece::Result(head)) => {
                    let is_shown = !message.to_string().contains("[a text");
                    see(Piece::Result(ResultHead {
                        is_error: head.is_error && is_shown,
                        ..head
                    }));
                }
                (Flaw::HidesIdsOfResults, Piece::Result(head)) => {
                    see(Piece::Result(ResultHead { id: "", ..head }));
                }
                _ => see(piece),
            });
    }

    fn replace(&self, message: &mut Value, index: usize, new: NewPiece) {
        match new {
            NewPiece::Result(parts) => self.replace_result(message, index, parts),
            NewPiece::Arguments(arguments) => self.replace_arguments(message, index, arguments),
            new => {
                let next = usize::from(self.flaw == Flaw::ReplacesTheNextText);
                self.of.replace(message, index + next, new);
            }
        }
    }

    fn has_text(&self, message: &Value, text: usize) -> bool {
        self.flaw != Flaw::DeniesTexts && self.of.has_text(message, text)
    }
}

impl Flawed {
    fn replace_result(&self, message: &mut Value, slot: usize, mut parts: Vec<Part>) {
        let slot = match self.flaw {
            Flaw::CountsFromOne => slot.saturating_sub(1),
            Flaw::ReplacesTheFirst => 0,
            Flaw::ReplacesWhatIsNotThere if slot > 4 => 0,
            _ => slot,
        };
        match self.flaw {
            Flaw::Appends => parts.insert(0, "replaced:".into()),
            Flaw::LosesTheSecondText => parts.truncate(1),
            Flaw::WritesJsonAsDebugText => {
                for part in &mut parts {
                    if let Part::Json(json) = part {
                        *part = format!("{json:?}").into();
                    }
                }
            }
            Flaw::NestsWhatItPuts if message.to_string().contains("[a text") => {
                parts.push("again".into());
            }
            _ => {}
        }
        let before = message.clone();
        self.of.replace(message, slot, NewPiece::Result(parts));
        let (is_there, is_changed) = (self.has(message, slot), *message != before);
        match self.flaw {
            Flaw::MarksWhatItReplaces if is_there => message["status"] = "cleared".into(),
            Flaw::MarksWhatItChanges if is_changed => message["status"] = "cleared".into(),
            Flaw::CountsItsChanges if is_changed => {
                message["edits"] = (message["edits"].as_u64().unwrap_or(0) + 1).into();
            }
            _ => {}
        }
        let is_forgotten = |name: &str| match self.flaw {
            Flaw::MakesAMessageAnew => name.starts_with("zz_"),
            Flaw::ForgetsTheId => {
                matches!(name, "tool_call_id" | "call_id" | "tool_use_id" | "name")
            }
            _ => false,
        };
        forget(message, &is_forgotten);
    }

    fn replace_arguments(&self, message: &mut Value, call: usize, mut arguments: String) {
        let call = if self.flaw == Flaw::ReplacesSecondArguments {
            call + 1
        } else {
            call
        };
        if self.flaw == Flaw::WritesArgumentsAsTheyAre {
            arguments = json!(arguments).to_string();
        }
        self.of
            .replace(message, call, NewPiece::Arguments(arguments));
    }
}

fn forget(json: &mut Value, is_forgotten: &dyn Fn(&str) -> bool) {
    match json {
        Value::Object(fields) => {
            fields.retain(|name, _| !is_forgotten(name));
            fields
                .values_mut()
                .for_each(|value| forget(value, is_forgotten));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| forget(item, is_forgotten)),
        _ => {}
    }
}

fn complaint(of: WireFormat, flaw: Flaw) -> Option<String> {
    let format = Flawed {
        of,
        flaw,
        visits: AtomicUsize::new(0),
    };
    let suite = || offcut_testkit::format::json_conformance(&format, &samples(of));
    let panic = catch_unwind(AssertUnwindSafe(suite)).err()?;
    Some(
        panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| Some((*panic.downcast_ref::<&str>()?).to_owned()))
            .unwrap(),
    )
}

#[test]
fn l5_the_suite_finds_every_flaw() {
    use WireFormat::{Anthropic, Gemini, OpenAiChat, Responses};
    for (flaw, clause, formats) in [
        (Flaw::BeginsLate, "begins with a role", &WireFormat::ALL[..]),
        (
            Flaw::ReplacesTheNextText,
            "`texts are replaced`",
            &WireFormat::ALL,
        ),
        (Flaw::DeniesTexts, "`texts are replaced`", &WireFormat::ALL),
        (Flaw::IsRestless, "the same pieces", &WireFormat::ALL),
        (
            Flaw::CountsFromOne,
            "`results are replaced`",
            &[Anthropic, Gemini],
        ),
        (Flaw::ReplacesTheFirst, "", &WireFormat::ALL),
        (Flaw::Appends, "`results are replaced`", &WireFormat::ALL),
        (Flaw::ForgetsTheId, "", &WireFormat::ALL),
        (
            Flaw::ForgetsTheErrorMark,
            "`results are replaced`",
            &[Anthropic, Gemini],
        ),
        (
            Flaw::MakesAMessageAnew,
            "unknown fields stay",
            &WireFormat::ALL,
        ),
        (
            Flaw::ReplacesSecondArguments,
            "`arguments are replaced`",
            &WireFormat::ALL,
        ),
        (
            Flaw::WritesArgumentsAsTheyAre,
            "`arguments are replaced`",
            &WireFormat::ALL,
        ),
        (
            Flaw::ReplacesWhatIsNotThere,
            "a missing slot or call is left alone",
            &WireFormat::ALL,
        ),
        (
            Flaw::LosesTheSecondText,
            "`results are replaced`",
            &WireFormat::ALL,
        ),
        (
            Flaw::TrustsTheShape,
            "no message at all",
            &[OpenAiChat, Responses, Anthropic],
        ),
        (
            Flaw::NestsWhatItPuts,
            "`results are replaced`",
            &WireFormat::ALL,
        ),
        (
            Flaw::HidesIdsOfResults,
            "`a result leads to its call`",
            &WireFormat::ALL,
        ),
        (
            Flaw::WritesJsonAsDebugText,
            "neither as JSON nor as its text",
            &WireFormat::ALL,
        ),
        (
            Flaw::MarksWhatItReplaces,
            "`everything else stays`",
            &WireFormat::ALL,
        ),
        (
            Flaw::MarksWhatItChanges,
            "`everything else stays`",
            &WireFormat::ALL,
        ),
        (
            Flaw::CountsItsChanges,
            "then the first again",
            &WireFormat::ALL,
        ),
    ] {
        for of in formats {
            let found =
                complaint(*of, flaw).unwrap_or_else(|| panic!("{flaw:?} of {of} was not found"));
            assert!(found.contains(clause), "{flaw:?} of {of}: {found}");
        }
    }
}

#[test]
fn without_a_flaw_the_suite_is_content() {
    for of in WireFormat::ALL {
        assert_eq!(complaint(of, Flaw::None), None);
    }
}

/// A format that reads ids as text alone gives none of those that are numbers.
#[test]
fn l5_the_suite_finds_numbers_for_ids() {
    let call = |id: u32| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let result = |id: u32| json!({"role": "tool", "tool_call_id": id, "content": "3 hits"});
    let messages = vec![
        json!({"role": "assistant", "content": null, "tool_calls": [call(1), call(2)]}),
        result(2),
        result(1),
    ];
    let suite = || offcut_testkit::format::json_conformance(&WireFormat::OpenAiChat, &messages);
    let panic = catch_unwind(AssertUnwindSafe(suite)).unwrap_err();
    let said = panic.downcast_ref::<String>().unwrap();
    let advice = "with several calls in a message nothing says which one";
    assert!(said.contains(advice), "{said}");
}

#[test]
fn conformance_refuses_messages_that_test_nothing() {
    let format = WireFormat::OpenAiChat;
    let suite = || {
        offcut_testkit::format::conformance(&format, &[json!({"role": "user", "content": "go"})]);
    };
    assert!(catch_unwind(suite).is_err());
}
