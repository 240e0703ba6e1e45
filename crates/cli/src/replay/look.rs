//! Looks at what a turn needs, and at what of it is in view.

use std::collections::HashSet;

use super::call::{Gone, Request};
use super::figures::Figures;
use super::pages::Pages;
use super::script::Script;
use super::view::ReplacedText;
use crate::evidence::Use;

/// Something that a turn used and that was no longer shown.
#[derive(Clone, Debug)]
pub(crate) struct Miss {
    pub(crate) call: usize,
    pub(crate) text: String,
    pub(crate) is_quote: bool,
    /// The newest result that held it.
    pub(crate) result: usize,
    /// True if a hint leads to it.
    pub(crate) is_reachable: bool,
}

impl<'r, 't> Request<'r, 't> {
    /// Counts names and lines that the coming turn takes from results, and returns those that are
    /// not shown. Nothing that was read back counts as shown.
    pub(super) fn at_evidence(&self, total: u64, figures: &mut Figures) -> Vec<(Miss, &'r Use)> {
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
    pub(super) fn at_all(
        &self,
        misses: &[(Miss, &Use)],
        pages: &Pages,
        figures: &mut Figures,
    ) -> Vec<Gone> {
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
    pub(super) fn any(&self, used: &Use, shows: impl Fn(&ReplacedText, usize) -> bool) -> bool {
        used.results.iter().any(|at| {
            self.views.get(at).is_none_or(|view| shows(view, *at))
                || self.added.iter().any(|added| shows(added, *at))
        })
    }

    pub(super) fn is_stored(&self, used: &Use) -> bool {
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
