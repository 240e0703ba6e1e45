//! Wire formats over messages that are values.

use crate::json::put_into_value;
use serde_json::Value;

use super::{Format, Piece, WireFormat};
use crate::content::Part;
use crate::report::Subject;

impl Format for WireFormat {
    type Message = Value;

    fn visit<'m>(&self, message: &'m Value, see: &mut dyn FnMut(Piece<'m>)) {
        self.see(message, &mut |piece, _| see(piece));
    }

    fn replace_result(&self, message: &mut Value, slot: usize, parts: Vec<Part>) {
        put_into_value(message, |message| self.result(message, slot, parts));
    }

    fn replace_arguments(&self, message: &mut Value, call: usize, arguments: String) {
        put_into_value(message, |message| self.arguments(message, call, arguments));
    }

    fn has_text(&self, message: &Value, text: usize) -> bool {
        self.site(message, Subject::UserText, text).is_some()
    }

    fn replace_text(&self, message: &mut Value, text: usize, new: String) {
        put_into_value(message, |message| self.set_text(message, text, new));
    }
}
