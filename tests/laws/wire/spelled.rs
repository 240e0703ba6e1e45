//! Any wire format over the text of its messages.

use offcut::format::{Format, JsonText, NewPiece, Piece, Spelled, WireFormat};
use offcut::{Part, ToolCall};
use serde_json::Value;

use super::super::generate::Speaker;
use super::Wire;

#[expect(
    clippy::needless_pass_by_value,
    reason = "values come from other formats' messages"
)]
fn spell(message: Value) -> JsonText {
    JsonText::parse(message.to_string()).unwrap()
}

fn read(message: &JsonText) -> Value {
    serde_json::from_str(message.as_str()).unwrap()
}

/// [`Spelled`], as a type for each format.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OverText<F>(pub(crate) F);

impl<F: Wire + Into<WireFormat>> OverText<F> {
    fn spelled(self) -> Spelled {
        Spelled(self.0.into())
    }
}

impl<F: Wire + Into<WireFormat>> Format for OverText<F> {
    type Message = JsonText;

    fn visit<'m>(&self, message: &'m JsonText, see: &mut dyn FnMut(Piece<'m>)) {
        self.spelled().visit(message, see);
    }

    fn replace(&self, message: &mut JsonText, index: usize, new: NewPiece) {
        self.spelled().replace(message, index, new);
    }

    fn has_text(&self, message: &JsonText, text: usize) -> bool {
        self.spelled().has_text(message, text)
    }
}

impl<F: Wire<Message = Value> + Into<WireFormat>> Wire for OverText<F> {
    fn say(self, speaker: Speaker, text: String, style: u8) -> JsonText {
        spell(self.0.say(speaker, text, style))
    }

    fn ask(self, says: Option<String>, calls: &[ToolCall], style: u8) -> Vec<JsonText> {
        self.0
            .ask(says, calls, style)
            .into_iter()
            .map(spell)
            .collect()
    }

    fn answer(self, call: &ToolCall, parts: Vec<Part>, is_error: bool, style: u8) -> JsonText {
        spell(self.0.answer(call, parts, is_error, style))
    }

    fn odd(self, which: u8) -> JsonText {
        spell(self.0.odd(which))
    }

    fn json(self, message: &JsonText) -> Value {
        read(message)
    }

    fn parse(self, json: Value) -> JsonText {
        spell(json)
    }

    fn blank(self, json: &mut Value) {
        self.0.blank(json);
    }

    fn is_valid(self, json: &Value) -> bool {
        self.0.is_valid(json)
    }

    fn accepts(self, messages: &[JsonText]) -> Result<(), String> {
        self.0
            .accepts(&messages.iter().map(read).collect::<Vec<_>>())
    }

    fn contents(self, json: &Value) -> Vec<&Value> {
        self.0.contents(json)
    }

    fn can_hold(self, parts: Vec<Part>) -> Vec<Part> {
        self.0.can_hold(parts)
    }

    fn join(self, last: &mut JsonText, next: &JsonText) -> bool {
        let mut joined = read(last);
        let is_joined = self.0.join(&mut joined, &read(next));
        *last = spell(joined);
        is_joined
    }
}
