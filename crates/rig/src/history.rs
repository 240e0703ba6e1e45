//! The messages of a request as a conversation that copies only the changed ones.

use std::collections::BTreeMap;

use offcut::Part;
use offcut::format::{Conversation, Format, Piece};
use rig::message::Message;

use crate::format::RigMessages;

/// A history and the newest message, as rig passes them. The newest one can't be replaced, but it
/// holds only content that is not answered yet, which always stays.
pub(crate) struct History<'a> {
    history: &'a [Message],
    prompt: &'a Message,
    changed: BTreeMap<usize, Message>,
}

impl<'a> History<'a> {
    pub(crate) fn new(history: &'a [Message], prompt: &'a Message) -> Self {
        Self {
            history,
            prompt,
            changed: BTreeMap::new(),
        }
    }

    /// Returns the history to send if it has changed.
    pub(crate) fn into_changed(mut self) -> Option<Vec<Message>> {
        if self.changed.is_empty() {
            return None;
        }
        let messages = self.history.iter().enumerate();
        Some(
            messages
                .map(|(at, message)| self.changed.remove(&at).unwrap_or_else(|| message.clone()))
                .collect(),
        )
    }

    fn get_mut(&mut self, message: usize) -> Option<&mut Message> {
        let original = self.history.get(message)?;
        Some(
            self.changed
                .entry(message)
                .or_insert_with(|| original.clone()),
        )
    }
}

impl Conversation for History<'_> {
    fn len(&self) -> usize {
        self.history.len() + 1
    }

    fn visit<'m>(&'m self, message: usize, see: &mut dyn FnMut(Piece<'m>)) {
        let newest = (message == self.history.len()).then_some(self.prompt);
        if let Some(message) = self
            .changed
            .get(&message)
            .or_else(|| self.history.get(message))
            .or(newest)
        {
            RigMessages.visit(message, see);
        }
    }

    fn replace_result(&mut self, message: usize, slot: usize, parts: Vec<Part>) {
        if let Some(message) = self.get_mut(message) {
            RigMessages.replace_result(message, slot, parts);
        }
    }

    fn replace_arguments(&mut self, message: usize, call: usize, arguments: String) {
        if let Some(message) = self.get_mut(message) {
            RigMessages.replace_arguments(message, call, arguments);
        }
    }
}

#[cfg(test)]
mod tests {
    use rig::message::{CallId, ToolName};

    use super::*;

    fn seen(history: &History<'_>) -> String {
        let mut seen = String::new();
        for message in 0..history.len() {
            history.visit(message, &mut |piece| seen.push_str(&format!("{piece:?} ")));
        }
        seen
    }

    #[test]
    fn replacements_are_visible_and_the_newest_message_stays() {
        let result = |text: &str| {
            Message::tool_result(
                CallId::from_wire("call_1"),
                ToolName::new("grep").unwrap(),
                text,
            )
        };
        let (said, newest) = ([Message::user("go"), result("old")], result("new"));
        let mut history = History::new(&said, &newest);
        for message in [1, 2, 3] {
            history.replace_result(message, 0, vec!["hint".into()]);
        }
        let shown = seen(&history);
        assert!(
            shown.contains("hint") && shown.contains("new") && !shown.contains("old"),
            "{shown}"
        );
        assert_eq!(
            history.into_changed().unwrap(),
            [said[0].clone(), result("hint")]
        );
    }
}
