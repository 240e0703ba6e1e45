//! What of a message has more than one meaning, or none: a key that counts and stands twice, a
//! string that is not valid Unicode.

use std::cell::Cell;
use std::collections::HashSet;

use super::scan::SpanKind;
use super::text::{JsonText, Node};
use crate::format::{Piece, WireJson};

/// Is told what a format looks at.
#[derive(Default)]
pub(super) struct Watch {
    /// A key that was looked for stands twice.
    pub(super) has_twice: Cell<bool>,
    /// A string that was read or shown is not valid Unicode.
    pub(super) is_garbled: Cell<bool>,
}

/// Which results and calls of a message must stay as they are.
#[derive(Debug, Default)]
pub(crate) struct Fixed {
    is_all: bool,
    results: HashSet<usize>,
    calls: HashSet<usize>,
}

impl Fixed {
    /// What `format` has to leave alone in `message`. Costs nothing where no key stands twice and
    /// all is valid Unicode.
    pub(crate) fn of(format: &impl WireJson, message: &JsonText) -> Self {
        let mut fixed = Self::default();
        if message.is_plain() {
            return fixed;
        }
        let watch = Watch::default();
        let (mut results, mut calls, mut open) = (0, 0, None);
        let root = Node {
            watch: Some(&watch),
            ..message.root()
        };
        format.see(root, &mut |piece| {
            // What was read for this piece, and for the result that it ends.
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

impl JsonText {
    /// Whether no key of any object stands twice, and all strings are valid Unicode. Looks once.
    fn is_plain(&self) -> bool {
        *self.is_plain.get_or_init(|| {
            let is_object = |at: &usize| self.spans[*at].kind == SpanKind::Object;
            let mut objects = (0..self.spans.len()).filter(is_object);
            self.is_unicode(0) && objects.all(|at| !self.has_twice(Node { at, ..self.root() }))
        })
    }

    /// Whether the strings of a value, keys included, are valid Unicode.
    pub(super) fn is_unicode(&self, at: usize) -> bool {
        !self.has_surrogates
            || (at..self.next(at))
                .all(|at| self.spans[at].kind != SpanKind::Escaped || self.meaning(at).is_some())
    }

    pub(super) fn has_twice(&self, object: Node<'_>) -> bool {
        /// So many keys are compared with each other faster than they are put into a set.
        const FEW: usize = 12;
        let mut few = [""; FEW];
        let mut many = HashSet::new();
        for (nth, key) in object.keys().enumerate() {
            let key = self.meaning(key).unwrap_or("\u{fffd}");
            if nth < FEW {
                if few[..nth].contains(&key) {
                    return true;
                }
                few[nth] = key;
            } else if few.contains(&key) || !many.insert(key) {
                return true;
            }
        }
        false
    }
}
