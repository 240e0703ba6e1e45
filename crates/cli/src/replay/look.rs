//! A model call of a replay: what its request costs, and what the coming turn needs and sees.

use std::collections::HashSet;

use super::call::{Gone, Request};
use super::figures::Figures;
use super::pages::Pages;
use super::replayed::{Miss, Replay};
use super::script::Script;
use super::view::ReplacedText;
use crate::evidence::Use;

impl<'r, 't> Request<'r, 't> {
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
        let misses = self.at_evidence(total, figures);
        let gone = self.at_all(&misses, pages, figures);
        let misses = misses.into_iter().map(|(miss, _)| miss);
        replay.misses.extend(misses);
        pages.read(self, gone, figures).await;
    }

    /// Counts names and lines that the coming turn takes from results, and returns those that are
    /// not shown. Nothing that was read back counts as shown.
    fn at_evidence(&self, total: u64, figures: &mut Figures) -> Vec<(Miss, &'r Use)> {
        let script: &'r Script<'t> = self.script;
        let evidence = &script.evidence;
        let turn = &evidence.turns[self.call];
        let calls_left = (evidence.turns.len() - self.call - 1) as u64;
        let mut misses = Vec::new();
        let miss = |used: &'r Use, is_quote, is_reachable| {
            let result = used.results.last().copied().unwrap_or_default();
            let miss = Miss {
                call: self.call,
                text: used.text.clone(),
                is_quote,
                result,
                is_reachable,
            };
            (miss, used)
        };
        for name in &turn.names {
            let named = self.any(name, |view, _| view.names.contains(&name.text));
            let is_in_window =
                |view: &ReplacedText, at| evidence.is_window_in(&view.text, at, &name.text);
            let is_reachable = named || self.is_stored(name);
            figures.uses += 1;
            figures.named += u64::from(named);
            figures.shown += u64::from(named && self.any(name, is_in_window));
            figures.reachable += u64::from(is_reachable);
            if !named {
                misses.push(miss(name, false, is_reachable));
            }
        }
        for quote in &turn.quotes {
            let quoted = self.any(quote, |view, _| view.lines.contains(&quote.text));
            figures.quotes += 1;
            figures.quoted += u64::from(quoted);
            if !quoted {
                misses.push(miss(quote, true, self.is_stored(quote)));
            }
        }
        let results: HashSet<usize> = misses.iter().map(|(miss, _)| miss.result).collect();
        let reads = results.len() as u64;
        figures.reads += reads;
        figures.read_context += reads * total;
        figures.read_calls_left += reads * calls_left;
        misses
    }

    /// Counts everything else that the coming turn needs, and returns what it would have to read
    /// back, with the names and lines that are missing. What was read before stays in view.
    fn at_all(&self, misses: &[(Miss, &Use)], pages: &Pages, figures: &mut Figures) -> Vec<Gone> {
        let unread = misses
            .iter()
            .filter(|(_, used)| !pages.show_words(&used.text));
        let mut gone: Vec<Gone> = unread.map(|(_, used)| self.gone(used)).collect();
        for need in &self.script.needs[self.call] {
            let is_seen = self.any(&need.what, |view, _| view.holds(need));
            let is_cut = !self.any(&need.what, |_, _| false);
            let is_stored = self.is_stored(&need.what);
            figures.seen.note(need.kind, is_cut, is_seen, is_stored);
            if need.kind.is_read_back() && !is_seen && !pages.show(need) {
                gone.push(self.gone(&need.what));
            }
        }
        gone
    }

    /// Returns true if one of the messages that hold `used` is whole, or its view or an added
    /// message `shows` it.
    fn any(&self, used: &Use, shows: impl Fn(&ReplacedText, usize) -> bool) -> bool {
        used.results.iter().any(|at| {
            self.views.get(at).is_none_or(|view| shows(view, *at))
                || self.added.iter().any(|added| shows(added, *at))
        })
    }

    fn is_stored(&self, used: &Use) -> bool {
        let mut views = used.results.iter().filter_map(|at| self.views.get(at));
        views.any(|view| view.source_of(&used.text).is_some())
    }

    fn gone(&self, used: &Use) -> Gone {
        let stored = used.results.iter().rev().find_map(|at| {
            let source = self.views.get(at)?.source_of(&used.text)?;
            Some((*at, source.clone()))
        });
        let newest = used.results.last().copied().unwrap_or_default();
        Gone {
            text: used.text.clone(),
            message: stored.as_ref().map_or(newest, |(at, _)| *at),
            stored: stored.map(|(_, source)| source),
        }
    }
}
