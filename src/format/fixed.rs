//! Parts of a message that must stay as they are, since they are ambiguous or have no meaning: a
//! duplicate of a key that counts, or a string that is not valid Unicode.

use std::collections::HashSet;

use crate::json::{JsonText, Node, Oddities};

use super::piece::Piece;
use super::wire_json::WireJson;

/// The results and calls of a message that must stay as they are.
#[derive(Debug, Default)]
pub(crate) struct Fixed {
    is_all: bool,
    results: HashSet<usize>,
    calls: HashSet<usize>,
}

impl Fixed {
    /// Finds the parts of `message` that `format` must leave alone. Costs nothing if no key occurs
    /// twice and everything is valid Unicode.
    pub(crate) fn find(format: &impl WireJson, message: &JsonText) -> Self {
        let mut fixed = Self::default();
        if message.is_plain() {
            return fixed;
        }
        let watch = Oddities::default();
        let (mut results, mut calls, mut open) = (0, 0, None);
        format.see(Node::watched_by(message, &watch), &mut |piece| {
            // Covers the strings read since the last piece: those of this piece, and the rest of
            // the result that it ends.
            let is_garbled = watch.is_garbled.take();
            match piece {
                Piece::Role(_) | Piece::Result(_) | Piece::Content(_) if is_garbled => {
                    fixed.results.extend(open);
                }
                Piece::Call(_) if is_garbled => {
                    fixed.calls.insert(calls);
                }
                _ => {}
            }
            match piece {
                Piece::Role(_) => open = None,
                Piece::Result(_) => {
                    open = Some(results);
                    results += 1;
                    if is_garbled {
                        fixed.results.extend(open);
                    }
                }
                Piece::Call(_) => calls += 1,
                Piece::Content(_) => {}
            }
        });
        if watch.is_garbled.take() {
            fixed.results.extend(open);
        }
        fixed.is_all = watch.has_twice.take();
        fixed
    }

    pub(crate) fn has_result(&self, nth: usize) -> bool {
        self.is_all || self.results.contains(&nth)
    }

    pub(crate) fn has_call(&self, nth: usize) -> bool {
        self.is_all || self.calls.contains(&nth)
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.is_all && self.results.is_empty() && self.calls.is_empty()
    }
}
