//! Replays of requests that another policy has made, under the measure of our own.

use std::rc::Rc;
use std::sync::Arc;

use offcut::backend::Location;
use offcut::report::Outcome;

use super::player::Player;
use super::replayed::{Change, Replay};
use super::requests::{Entry, RecordedRequest};
use super::script::Script;
use super::view::ReplacedText;

/// Replays `requests`, of which the transcript has one for each of its model calls.
pub(super) async fn follow(script: &Script<'_>, requests: &[RecordedRequest]) -> Replay {
    let mut player = Player::new(script, None);
    // By message of the request before: what stands in its place, or nothing if it was removed.
    let mut standing: Vec<Option<&Rc<Entry>>> = Vec::new();
    let mut previous: &[Rc<Entry>] = &[];
    for (turn, request) in script.turns.iter().zip(requests) {
        player.stored.extend(&request.stored);
        player.replay.figures.tokens += request.own_tokens;
        player.replay.figures.fresh += request.own_tokens;
        let mut places = vec![None; *turn];
        player.added.clear();
        for entry in &request.entries {
            match (entry.at, &entry.view) {
                (Some(at), _) => places[at] = Some(entry),
                (None, Some(view)) => player.added.push(Rc::clone(view)),
                (None, None) => {}
            }
        }
        for (at, place) in places.iter().enumerate() {
            let known = standing.get(at).copied();
            put(&mut player, at, *place, known);
        }
        standing = places;
        let entries = request.entries.iter();
        player.tokens = entries.clone().map(|entry| entry.tokens).collect();
        let same = entries.zip(previous);
        player.untouched = same
            .take_while(|(one, other)| Rc::ptr_eq(one, other))
            .count();
        player.send().await;
        previous = &request.entries;
    }
    player.replay.figures.stored_objects = player.stored.len() as u64;
    player.replay
}

/// Notes what a request has in place of a message: itself, another one, or nothing. `known` is what the request before
/// had, if the message is not new.
fn put(
    player: &mut Player<'_, '_>,
    at: usize,
    place: Option<&Rc<Entry>>,
    known: Option<Option<&Rc<Entry>>>,
) {
    let view = place.map(|entry| entry.view.as_deref());
    if let Some(None) = view {
        player.views.remove(&at);
        return;
    }
    if known.is_some_and(|known| known.map(Rc::as_ptr) == place.map(Rc::as_ptr)) {
        return;
    }
    let tokens = |place: Option<&Rc<Entry>>| place.map_or(0, |entry| entry.tokens);
    let before = known.map_or(player.script.tokens[at], tokens);
    let mut view = view
        .flatten()
        .map_or_else(|| ReplacedText::of_text(String::new()), ReplacedText::clone);
    let is_stored = player.stored.contains_key(&at);
    if is_stored {
        let original = player.script.text(at);
        view.originals = vec![(Location::new(at.to_string()), Arc::from(original))];
    }
    player.replay.changes.push(Change {
        call: player.replay.contexts.len(),
        message: at,
        outcome: match is_stored {
            true => Outcome::Cleared,
            false => Outcome::Lost,
        },
        before,
        after: tokens(place),
    });
    player.views.insert(at, view);
}
