//! A model call of a replay: what its request costs, and what the coming turn needs and sees.

use std::collections::HashSet;
use std::sync::Arc;

use offcut::backend::Location;

use super::call::{Gone, Request};
use super::pages::Pages;
use super::replayed::{Miss, Replay};
use super::view::ReplacedText;
use crate::evidence::{Kind, Need};

impl Request<'_, '_> {
    /// Sends the request: charges for it, looks at what the coming turn needs, and reads back what
    /// is gone.
    pub(super) async fn send(&self, replay: &mut Replay, pages: &mut Pages) {
        let total = self.total();
        let cached: u64 = self.tokens[..self.untouched].iter().sum();
        let figures = &mut replay.figures;
        figures.model_calls += 1;
        figures.tokens += total;
        figures.fresh += total - cached;
        figures.peak = figures.peak.max(total);
        figures.breaks += u64::from(self.untouched < self.previous);
        replay.contexts.push(total);
        pages.pay_again(self.untouched, figures);
        let gone = self.look(replay, pages);
        pages.read(self, gone, &mut replay.figures).await;
    }

    /// Counts what the coming turn needs, and returns what it would have to read back: what was read
    /// before stays in view. For names and lines, the flat price is counted too, as if nothing stayed.
    fn look(&self, replay: &mut Replay, pages: &Pages) -> Gone {
        let figures = &mut replay.figures;
        let script = self.script;
        let (mut gone, mut missed) = (Gone::new(), HashSet::new());
        for need in &script.needs[self.call] {
            let is_seen = self.any(need, |view, _| view.holds(need));
            let is_cut = !self.any(need, |_, _| false);
            let source = (!is_seen).then(|| self.source(need)).flatten();
            let is_readable = is_seen || source.is_some();
            figures.seen.note(need.kind, is_cut, is_seen, is_readable);
            let is_in_window =
                |view: &ReplacedText, at| script.results.is_window_in(&view.text, at, &need.text);
            let is_shown = is_seen && need.kind == Kind::Name && self.any(need, is_in_window);
            figures.shown += u64::from(is_shown);
            if is_seen {
                continue;
            }
            let newest = need.holders.last().copied().unwrap_or_default();
            if matches!(need.kind, Kind::Name | Kind::Quote) {
                missed.insert(newest);
                replay.misses.push(Miss {
                    call: self.call,
                    text: need.text.clone(),
                    is_quote: need.kind == Kind::Quote,
                    result: newest,
                    is_reachable: is_readable,
                });
            }
            if need.kind.is_read_back() && !pages.show(need) {
                let message = source.map_or(newest, |(at, _)| at);
                let (location, original) = source.map(|(_, stored)| stored.clone()).unzip();
                let location = location.map_or_else(String::new, |at| at.as_str().to_owned());
                let place = gone.entry((message, location));
                let (_, texts) = place.or_insert_with(|| (original, Vec::new()));
                texts.push(need.text.clone());
            }
        }
        let reads = missed.len() as u64;
        figures.reads += reads;
        figures.read_context += reads * self.total();
        figures.read_calls_left += reads * (script.needs.len() - self.call - 1) as u64;
        gone
    }

    /// Returns true if one of the messages that hold `need` is whole, or its view or an added
    /// message `shows` it.
    fn any(&self, need: &Need, shows: impl Fn(&ReplacedText, usize) -> bool) -> bool {
        need.holders.iter().any(|at| {
            self.views.get(at).is_none_or(|view| shows(view, *at))
                || self.added.iter().any(|added| shows(added, *at))
        })
    }

    /// The newest message whose hint leads to `need`, and what is stored there.
    fn source(&self, need: &Need) -> Option<(usize, &(Location, Arc<str>))> {
        let mut holders = need.holders.iter().rev();
        holders.find_map(|at| Some((*at, self.views.get(at)?.source_of(&need.text)?)))
    }
}
