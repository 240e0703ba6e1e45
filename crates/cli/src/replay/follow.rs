//! Replays of requests that another policy has made, under the measure of our own.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use offcut::backend::Location;
use offcut::report::Outcome;

use super::call::{Reader, Request};
use super::pages::{Pages, text_of_message};
use super::replayed::{Change, Replay};
use super::requests::{Entry, RecordedRequest};
use super::script::Script;
use super::view::ReplacedText;

/// Replays `requests`, of which the transcript has one for each of its model calls.
pub(super) async fn follow(script: &Script<'_>, requests: &[RecordedRequest]) -> Replay {
    let mut follower = Follower {
        script,
        standing: Vec::new(),
        views: HashMap::new(),
        added: HashMap::new(),
        stored: HashMap::new(),
        pages: Pages::default(),
        replay: Replay::default(),
    };
    let mut previous: &[Rc<Entry>] = &[];
    for (turn, request) in script.turns.iter().zip(requests) {
        follower.call(*turn, request, previous).await;
        previous = &request.entries;
    }
    follower.replay.figures.stored_objects = follower.stored.len() as u64;
    follower.replay
}

struct Follower<'s, 't> {
    script: &'s Script<'t>,
    /// By message of the request before: what stands in its place, or nothing if it was removed.
    standing: Vec<Option<Rc<Entry>>>,
    views: HashMap<usize, ReplacedText>,
    /// By address: messages that the policy has added.
    added: HashMap<*const Entry, Rc<ReplacedText>>,
    stored: HashMap<usize, usize>,
    pages: Pages,
    replay: Replay,
}

impl Follower<'_, '_> {
    async fn call(&mut self, turn: usize, request: &RecordedRequest, previous: &[Rc<Entry>]) {
        self.stored.extend(&request.stored);
        let figures = &mut self.replay.figures;
        figures.tokens += request.own_tokens;
        figures.fresh += request.own_tokens;
        let mut places: Vec<Option<Rc<Entry>>> = vec![None; turn];
        let mut added = Vec::new();
        for entry in &request.entries {
            match (entry.at, &entry.message) {
                (Some(at), _) => places[at] = Some(Rc::clone(entry)),
                (None, Some(message)) => added.push(Rc::clone(
                    self.added
                        .entry(Rc::as_ptr(entry))
                        .or_insert_with(|| Rc::new(ReplacedText::of_message(message))),
                )),
                (None, None) => {}
            }
        }
        for (at, place) in places.iter().enumerate() {
            self.place(at, place.as_ref());
        }
        self.standing = places;
        let tokens: Vec<u64> = request.entries.iter().map(|entry| entry.tokens).collect();
        let untouched = request
            .entries
            .iter()
            .zip(previous)
            .take_while(|(one, other)| Rc::ptr_eq(one, other))
            .count();
        let request = Request {
            script: self.script,
            call: self.replay.contexts.len(),
            tokens: &tokens,
            previous: previous.len(),
            untouched,
            views: &self.views,
            added: &added,
            reader: Reader::Lines(&self.stored),
        };
        request.send(&mut self.replay, &mut self.pages).await;
    }

    /// Notes what a request has in place of a message: itself, another one, or nothing.
    fn place(&mut self, at: usize, place: Option<&Rc<Entry>>) {
        let message = place.map(|entry| &entry.message);
        if let Some(None) = message {
            self.views.remove(&at);
            return;
        }
        let known = self.standing.get(at).map(Option::as_ref);
        if known.is_some_and(|known| known.map(Rc::as_ptr) == place.map(Rc::as_ptr)) {
            return;
        }
        let tokens = |place: Option<&Rc<Entry>>| place.map_or(0, |entry| entry.tokens);
        let before = known.map_or(self.script.tokens[at], tokens);
        let mut view = match message.and_then(Option::as_ref) {
            Some(message) => ReplacedText::of_message(message),
            None => ReplacedText::of_text(String::new()),
        };
        let is_stored = self.stored.contains_key(&at);
        if is_stored {
            let original = text_of_message(&self.script.messages[at]);
            view.originals = vec![(Location::new(at.to_string()), Arc::from(original))];
        }
        self.replay.changes.push(Change {
            call: self.replay.contexts.len(),
            message: at,
            outcome: if is_stored {
                Outcome::Cleared
            } else {
                Outcome::Lost
            },
            before,
            after: tokens(place),
        });
        self.views.insert(at, view);
    }
}
