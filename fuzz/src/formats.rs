//! Messages of each wire format, as JSON, however malformed: reading and replacing keep the
//! format's contract, and a pass over them keeps L1 to L5 and L12.

use offcut::hint::Language;
use offcut::preview::Preview;
use offcut::{OnOffloadError, StoredNames};
use serde_json::Value;

use crate::laws::pass::pass_over;
use crate::laws::wire::{Anthropic, Gemini, OpenAiChat, Responses, Wire};
use crate::laws::world::{Counter, Handlers, Previews, Setup, Tools, memory};
use crate::laws::{assert_held, block_on};

pub(crate) fn openai_chat(data: &[u8]) {
    messages(OpenAiChat, data);
}

pub(crate) fn responses(data: &[u8]) {
    messages(Responses, data);
}

pub(crate) fn anthropic(data: &[u8]) {
    messages(Anthropic, data);
}

pub(crate) fn gemini(data: &[u8]) {
    messages(Gemini, data);
}

/// Takes a byte of settings, then a list of messages. `"~"` in it stands for a text that is worth
/// clearing.
fn messages<F: Wire<Message = Value>>(wire: F, data: &[u8]) {
    let Some((settings, json)) = data.split_first() else {
        return;
    };
    let Ok(mut document) = serde_json::from_slice::<Value>(json) else {
        return;
    };
    // By default, serde_json does not read numbers with many digits exactly.
    if serde_json::from_str(&document.to_string()).ok() != Some(document.clone()) {
        return;
    }
    lengthen(&mut document);
    let messages = match document {
        Value::Array(messages) => messages,
        message => vec![message],
    };
    offcut_testkit::format::malformed_conformance(&wire, &messages);
    assert_held(block_on(pass_over(wire, setup(*settings), messages)));
}

/// Inserts long texts, which fuzzers do not find.
fn lengthen(json: &mut Value) {
    match json {
        Value::String(text) if text == "~" => {
            *text = "the quick_brown fox, jumps over it\n".repeat(40);
        }
        Value::Array(items) => items.iter_mut().for_each(lengthen),
        Value::Object(fields) => fields.values_mut().for_each(lengthen),
        _ => {}
    }
}

fn setup(settings: u8) -> Setup {
    let is = |bit: u32| settings >> bit & 1 == 1;
    let preview = if is(0) {
        Preview::Mixed
    } else {
        Preview::HeadTail
    };
    Setup {
        store: memory,
        counter: if is(1) {
            Counter::Words
        } else {
            Counter::Estimate
        },
        more_limit: 500,
        preview_percent: 50,
        stub_length: if is(2) { 200 } else { 0 },
        previews: Previews {
            preview,
            grow: false,
            above: None,
        },
        threshold: 1,
        keep: usize::from(is(3)),
        at_least: 0,
        names: StoredNames::CallId,
        keep_errors: is(5),
        clear_inputs: !is(6),
        inputs_above: if is(3) { 300 } else { 0 },
        texts_above: (!is(5)).then_some(300),
        language: if is(7) {
            Language::Chinese
        } else {
            Language::English
        },
        has_reader: true,
        mode: OnOffloadError::KeepOriginal,
        root: false,
        session: false,
        tools: Tools {
            fetch_elsewhere: false,
            shell_whole: false,
            cat_stays: false,
            grep_lengths: None,
        },
        handlers: Handlers::None,
    }
}
