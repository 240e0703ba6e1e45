//! A minimal reducer that keeps the laws and can be broken on purpose.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use offcut::backend::Location;
use offcut::format::{NewPiece, Piece, Role};
use offcut::hint::{Hint, Kind};
use offcut::{Body, Part, Report, ToolCall, ToolOutput};

use super::shadow::{PartContent, view};
use super::subject::{Shown, Subject};
use super::wire::Wire;

/// The way in which the reducer is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    None,
    /// Takes a hint for an original and stores it.
    StoresHints,
    /// Changes the message before storing.
    ChangesFirst,
    /// Uses the id as a path.
    IdIsPath,
    /// Overwrites content that another call with the same id stored.
    Overwrites,
    /// Replaces short results too.
    Grows,
    /// Makes a new message without the fields that it does not know.
    DropsFields,
    /// Removes the result and keeps the call.
    BreaksPairs,
    /// Claims to have stored content that it did not store.
    Forgets,
    /// Puts a number that changes from pass to pass into each hint.
    Restless,
    /// Stores only the first bytes.
    CutsShort,
}

#[derive(Clone, Debug)]
pub(crate) struct Naive {
    flaw: Flaw,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    stored: BTreeMap<String, Bytes>,
    writes: u64,
    fails_at: Option<(u64, bool)>,
    passes: u64,
}

const LIMIT: usize = 2_000;

impl Naive {
    pub(crate) fn new(flaw: Flaw) -> Self {
        Self {
            flaw,
            state: Arc::default(),
        }
    }

    fn save(&self, folder: &str, id: &str, content: &[u8]) -> Result<String, String> {
        let mut state = self.state.lock().unwrap();
        state.writes += 1;
        let fault = state.fails_at.filter(|(at, _)| *at == state.writes);
        if let Some((_, false)) = fault {
            return Err("the store failed".into());
        }
        let is_safe = !id.is_empty()
            && id.len() <= 64
            && id
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
        let digest = format!(
            "{:016x}",
            content
                .iter()
                .fold(7_u64, |hash, byte| (hash ^ u64::from(*byte))
                    .wrapping_mul(0x100_0000_01b3))
        );
        let name = if is_safe || self.flaw == Flaw::IdIsPath {
            id
        } else {
            &digest
        };
        let free = |name: &String| {
            state
                .stored
                .get(name)
                .is_none_or(|stored| stored == content)
                || self.flaw == Flaw::Overwrites
        };
        let names = [
            format!("one/{folder}/{name}"),
            format!("one/{folder}/{name}-{digest}"),
        ];
        let name = names.into_iter().find(free).ok_or("both names are taken")?;
        let content = if self.flaw == Flaw::CutsShort {
            &content[..content.len().min(500)]
        } else {
            content
        };
        if self.flaw != Flaw::Forgets {
            state
                .stored
                .insert(name.clone(), Bytes::copy_from_slice(content));
        }
        if fault.is_some() {
            Err("the answer was lost".into())
        } else {
            Ok(name)
        }
    }

    fn hint(&self, kind: Kind, content: &[u8], location: String, preview: &str) -> String {
        let mut hint = Hint::new(kind, content.len() as u64);
        hint.location = Some(Location::new(location));
        hint.preview = preview.to_owned();
        if self.flaw == Flaw::Restless {
            hint.prose = format!("Pass {}.", self.state.lock().unwrap().passes);
        }
        hint.render()
    }

    /// The replacement for `text`, or `None` if it stays.
    fn cleared(&self, id: &str, text: &str) -> Option<Result<String, String>> {
        let known = Hint::parse(text).filter(|_| self.flaw != Flaw::StoresHints);
        let is_gain = |hint: &String| hint.len() < text.len() || self.flaw == Flaw::Grows;
        match known {
            Some(hint) if hint.kind == Kind::Truncated => {
                let mut short = Hint::new(Kind::Cleared, hint.bytes);
                short.location = hint.location;
                Some(Ok(short.render())).filter(|_| text.len() > 200)
            }
            Some(_) if self.flaw != Flaw::Restless => None,
            _ if text.len() < 200 && !matches!(self.flaw, Flaw::Grows | Flaw::Restless) => None,
            Some(hint) => Some(Ok(self.hint(
                Kind::Cleared,
                &vec![b' '; usize::try_from(hint.bytes).ok()?],
                hint.location?.to_string(),
                "",
            ))),
            None => {
                let saved = self.save("clear", id, text.as_bytes());
                Some(saved.map(|location| self.hint(Kind::Cleared, text.as_bytes(), location, "")))
                    .filter(|hint| hint.as_ref().map_or(true, is_gain))
            }
        }
    }
}

impl<F: Wire> Subject<F> for Naive {
    async fn truncate(&self, call: &ToolCall, output: ToolOutput) -> Result<Shown, String> {
        let ToolOutput {
            body: Body::Parts(mut parts),
            is_error,
        } = output
        else {
            return Err("no streams".into());
        };
        if let [Part::Text(text)] = &parts[..]
            && text.len() > LIMIT
        {
            let location = self.save("trunc", &call.id, text.as_bytes())?;
            let preview = &text[..text.floor_char_boundary(200)];
            parts = vec![Part::Text(self.hint(
                Kind::Truncated,
                text.as_bytes(),
                location,
                preview,
            ))];
        }
        Ok(Shown {
            parts,
            is_error,
            report: None,
        })
    }

    async fn clear(&self, messages: &mut Vec<F::Message>) -> Result<Option<Report>, String> {
        self.state.lock().unwrap().passes += 1;
        let wire = F::default();
        let mut answered = 0;
        for (at, message) in messages.iter().enumerate() {
            wire.visit(message, &mut |piece| {
                if matches!(piece, Piece::Role(Role::Assistant)) {
                    answered = at;
                }
            });
        }
        let mut replacements = Vec::new();
        for (at, message) in messages[..answered].iter_mut().enumerate() {
            let seen = view(wire, message);
            let (Some([PartContent::Text(text)]), Some(id)) =
                (seen.slots.first().map(Vec::as_slice), seen.answers.first())
            else {
                continue;
            };
            if self.flaw == Flaw::ChangesFirst && text.len() >= 200 && Hint::parse(text).is_none() {
                wire.replace(message, 0, NewPiece::Result(vec!["[stored]".into()]));
            }
            if let Some(hint) = self.cleared(id, text) {
                replacements.push((at, id.clone(), hint?));
            }
        }
        for (at, id, hint) in replacements {
            let parts = vec![Part::Text(hint)];
            match self.flaw {
                Flaw::DropsFields => {
                    messages[at] = wire.answer(&ToolCall::new(id, "", ""), parts, false, 0);
                }
                _ => wire.replace(&mut messages[at], 0, NewPiece::Result(parts)),
            }
        }
        if self.flaw == Flaw::BreaksPairs {
            messages.retain(|message| {
                let slots = view(wire, message).slots;
                slots.is_empty()
                    || slots
                        .iter()
                        .flatten()
                        .any(|part| !part.bytes().starts_with(b"[offcut/1 cleared"))
            });
        }
        Ok(None)
    }

    async fn read(&self, location: &str) -> Option<Bytes> {
        self.state.lock().unwrap().stored.get(location).cloned()
    }

    async fn stored(&self) -> BTreeMap<String, Bytes> {
        self.state.lock().unwrap().stored.clone()
    }

    fn writes(&self) -> u64 {
        self.state.lock().unwrap().writes
    }

    fn count(&self, message: &F::Message) -> u64 {
        let seen = view(F::default(), message);
        seen.slots
            .iter()
            .flatten()
            .map(|part| part.bytes().len() as u64 / 4)
            .sum()
    }

    fn restarted(&self) -> Self {
        self.clone()
    }

    fn fault(&self, nth: u64, is_done: bool) {
        let mut state = self.state.lock().unwrap();
        state.fails_at = Some((state.writes + nth, is_done));
    }

    fn heal(&self) {
        self.state.lock().unwrap().fails_at = None;
    }
}
