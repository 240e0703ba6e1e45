//! Whether what looks like a hint of ours is one: what is stored is read and compared, before anything is stored.

use super::commit::{replacement, size};
use super::outages::{NoAnswer, Outages};
use super::{Line, Place, ToShorten};
use crate::backend::ErrorKind;
use crate::read_back::{Said, shows_only, texts_in};
use crate::report::{Change, Decision, Outcome, Reason, Sum};
use crate::session::Session;

/// Compares what is to be shortened with what is stored, and says what the lines change where their names are
/// not taken.
pub(super) async fn compare_lines(
    session: &Session,
    outages: &Outages,
    place: Place,
    lines: Vec<Line>,
    decision: &mut Decision,
) -> Result<(Vec<Line>, Sum), Reason> {
    let mut compared = Vec::with_capacity(lines.len());
    for line in lines {
        compared.push(match line {
            Line::Shorten(shorten) => compare(session, outages, *shorten, decision).await?,
            line => line,
        });
    }
    let sizes =
        [0, 1].map(|choice| size(session, &replacement(place, Line::render_all(&compared, session, choice)), decision));
    let [expected, other] = sizes;
    let ((_, after), _) = (expected?, other?);
    let before = decision.tokens.map_or(0, |change| change.before);
    Ok((compared, Change { before, after }.into()))
}

/// The short hint, if what is shown is what is stored; else what there is to do otherwise.
async fn compare(
    session: &Session,
    outages: &Outages,
    shorten: ToShorten,
    decision: &mut Decision,
) -> Result<Line, Reason> {
    let ToShorten { shown, stored, mut draft, preview: (preview, budget), was_previewed_in, otherwise } = shorten;
    let own = |text: &str| preview.own(text, was_previewed_in)?.ok();
    let said = Said { prose: session.prose(), tool: &draft.tool, reader: session.reader(), own: &own };
    let content = match outages.ask(&stored.backend, stored.whole()).await {
        Ok(content) => content,
        Err(NoAnswer::Failed(error)) if error.kind() == ErrorKind::NotFound => None,
        // Nobody knows. Nothing needs to be stored for it, so it is no failure to offload.
        Err(error) => {
            decision.error = Some(error.to_string());
            return Err(Reason::StoreFailed);
        }
    };
    let Some(content) = content.filter(|content| shows_only(&shown, content, said)) else {
        // No genuine page of what is stored is a text like any other.
        decision.outcome = Outcome::Cleared;
        return otherwise.map(|otherwise| *otherwise).ok_or(Reason::Unverified);
    };
    let (_, text) = texts_in(&shown, &content).unwrap_or((0, &content));
    draft.hint.preview = preview.show(&String::from_utf8_lossy(text), budget).0;
    Ok(Line::Ready(draft.render(session, Some(stored.location.clone())), Some(stored.location)))
}
