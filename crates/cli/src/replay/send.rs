//! A model call of a replay: what its request costs, and what the coming turn needs and sees.

use super::call::Request;
use super::pages::Pages;
use super::replayed::Replay;

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
        let misses = self.at_evidence(total, figures);
        let gone = self.at_all(&misses, pages, figures);
        replay
            .misses
            .extend(misses.into_iter().map(|(miss, _)| miss));
        pages.read(self, gone, figures).await;
    }
}
