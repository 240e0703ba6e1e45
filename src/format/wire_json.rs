//! What a wire format is: written once, for messages that are values and for messages that are
//! text.

use serde_json::Value;

use super::json::{Edit, View, put_into_value};
use super::{Anthropic, Format, Gemini, OpenAiChat, Piece, Responses, WireFormat};
use crate::content::Part;

/// A format of messages that are JSON.
pub(crate) trait WireJson: Copy + Send + Sync {
    /// Shows `see` what `message` holds.
    fn see<'m, V: View<'m>>(self, message: V, see: &mut dyn FnMut(Piece<'m>));

    /// The edits that replace the content of a result slot; `None` if it is not there.
    fn result<'m, V: View<'m>>(
        self,
        message: V,
        slot: usize,
        parts: Vec<Part>,
    ) -> Option<Vec<Edit<'m>>>;

    /// The edits that replace the arguments of a call; `None` if it is not there.
    fn arguments<'m, V: View<'m>>(
        self,
        message: V,
        call: usize,
        arguments: String,
    ) -> Option<Vec<Edit<'m>>>;
}

macro_rules! over_values {
    ($($format:ty)*) => {$(
        impl Format for $format {
            type Message = Value;

            fn visit<'m>(&self, message: &'m Value, see: &mut dyn FnMut(Piece<'m>)) {
                self.see(message, see);
            }

            fn replace_result(&self, message: &mut Value, slot: usize, parts: Vec<Part>) {
                put_into_value(message, |message| self.result(message, slot, parts));
            }

            fn replace_arguments(&self, message: &mut Value, call: usize, arguments: String) {
                put_into_value(message, |message| self.arguments(message, call, arguments));
            }
        }
    )*};
}

over_values! { OpenAiChat Responses Anthropic Gemini WireFormat }

impl WireJson for WireFormat {
    fn see<'m, V: View<'m>>(self, message: V, see: &mut dyn FnMut(Piece<'m>)) {
        match self {
            Self::OpenAiChat => OpenAiChat.see(message, see),
            Self::Responses => Responses.see(message, see),
            Self::Anthropic => Anthropic.see(message, see),
            Self::Gemini => Gemini.see(message, see),
        }
    }

    fn result<'m, V: View<'m>>(
        self,
        message: V,
        slot: usize,
        parts: Vec<Part>,
    ) -> Option<Vec<Edit<'m>>> {
        match self {
            Self::OpenAiChat => OpenAiChat.result(message, slot, parts),
            Self::Responses => Responses.result(message, slot, parts),
            Self::Anthropic => Anthropic.result(message, slot, parts),
            Self::Gemini => Gemini.result(message, slot, parts),
        }
    }

    fn arguments<'m, V: View<'m>>(
        self,
        message: V,
        call: usize,
        arguments: String,
    ) -> Option<Vec<Edit<'m>>> {
        match self {
            Self::OpenAiChat => OpenAiChat.arguments(message, call, arguments),
            Self::Responses => Responses.arguments(message, call, arguments),
            Self::Anthropic => Anthropic.arguments(message, call, arguments),
            Self::Gemini => Gemini.arguments(message, call, arguments),
        }
    }
}
