//! A model call of a replay: what its request costs, and what the coming turn needs and sees.

use std::collections::HashMap;
use std::rc::Rc;

use super::look::RequestLook;
use super::pages::{Pages, Reader, Reading};
use super::replayed::Replay;
use super::script::Script;
use super::view::ReplacedText;

/// The request of a model call.
pub(super) struct Request<'r, 't> {
    pub(super) script: &'r Script<'t>,
    /// Tokens of each message.
    pub(super) tokens: &'r [u64],
    /// Number of messages in the request before, and of its leading messages that are unchanged.
    pub(super) previous: usize,
    pub(super) untouched: usize,
    /// By message of the transcript: those that are not shown whole.
    pub(super) views: &'r HashMap<usize, ReplacedText>,
    /// Messages that a policy has added.
    pub(super) added: &'r [Rc<ReplacedText>],
    pub(super) reader: Reader<'r>,
}

impl Request<'_, '_> {
    /// Sends the request: charges for it, looks at what the coming turn needs, and reads back what
    /// is gone.
    pub(super) async fn send(&self, replay: &mut Replay, pages: &mut Pages) {
        let total: u64 = self.tokens.iter().sum();
        let cached: u64 = self.tokens[..self.untouched].iter().sum();
        let call = replay.contexts.len();
        let figures = &mut replay.figures;
        figures.model_calls += 1;
        figures.tokens += total;
        figures.fresh += total - cached;
        figures.peak = figures.peak.max(total);
        figures.breaks += u64::from(self.untouched < self.previous);
        replay.contexts.push(total);
        pages.pay_again(self.untouched, figures);
        let look = RequestLook {
            script: self.script,
            views: self.views,
            added: self.added,
            pages,
            call,
        };
        let misses = look.at_evidence(total, figures);
        let gone = look.at_all(&misses, figures);
        replay.ungrounded.extend(look.ungrounded());
        replay.misses.extend(misses);
        let reading = Reading {
            script: self.script,
            reader: self.reader,
            at: self.tokens.len(),
            context: total,
        };
        pages.read(&reading, gone, figures).await;
    }
}
