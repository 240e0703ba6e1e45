//! Whether what looks like a hint of ours is one: what is stored is read and compared, before
//! anything is stored.

use super::gain::{replacement, size};
use super::lines::join;
use super::outages::{NoAnswer, Outages};
use super::{Line, Place, Shown, ToShorten};
use crate::backend::ErrorKind;
use crate::hint::Kind;
use crate::read_back::{Said, is_said, previews, shows_only, texts_in};
use crate::report::{Change, Decision, Outcome, Reason, Sum};
use crate::session::Session;

/// Compares what is to be shortened with what is stored, and says what the lines change where their
/// names are not taken.
pub(super) async fn compare_lines(
    session: &Session,
    outages: &Outages,
    place: Place,
    lines: Vec<Line>,
    decision: &mut Decision,
) -> Result<(Vec<Line>, Sum), Reason> {
    let mut compared = Vec::with_capacity(lines.len());
    let is_ours_alone = lines.iter().all(|line| !matches!(line, Line::Store(_)));
    let mut is_ours = true;
    for line in lines {
        compared.push(match line {
            Line::Shorten(shorten) => {
                let ToShorten { hints, otherwise } = *shorten;
                match compare(session, outages, hints, decision).await? {
                    Some(line) => line,
                    None => {
                        // It looked like hints of ours. It is a text like any other.
                        is_ours = false;
                        decision.outcome = Outcome::Cleared;
                        *otherwise
                    }
                }
            }
            line => line,
        });
    }
    let sizes = [0, 1].map(|choice| {
        size(
            session,
            &replacement(place, Line::render_all(&compared, session, choice)),
            decision,
        )
    });
    let [expected, other] = sizes;
    let before = decision.tokens.map_or(0, |change| change.before);
    match (expected, other) {
        (Ok((_, after)), Ok(_)) => Ok((compared, Change { before, after }.into())),
        (Err(Reason::NoGain), _) if is_ours && is_ours_alone => Err(Reason::AlreadyHint),
        (Err(reason), _) | (_, Err(reason)) => Err(reason),
    }
}

/// The short hints, if what is shown is what is stored; `None` if it is not.
async fn compare(
    session: &Session,
    outages: &Outages,
    hints: Vec<Shown>,
    decision: &mut Decision,
) -> Result<Option<Line>, Reason> {
    let (mut texts, mut locations) = (Vec::with_capacity(hints.len()), Vec::new());
    for shown in hints {
        let Shown {
            hint,
            stored,
            mut draft,
            preview: (preview, budget),
            was_previewed_in,
        } = shown;
        let Some(stored) = stored else {
            texts.push(hint.render());
            continue;
        };
        // What is no longer than a hint of ours may be left alone.
        let may_stay = matches!(hint.kind, Kind::Truncated | Kind::Cleared)
            && hint.preview.len() <= was_previewed_in;
        let content = match outages.ask(&stored.backend, stored.whole()).await {
            Ok(Some(content)) => content,
            // Too much to be compared.
            Ok(None) => {
                return if may_stay {
                    Err(Reason::Unverified)
                } else {
                    Ok(None)
                };
            }
            Err(NoAnswer::Failed(error)) if error.kind() == ErrorKind::NotFound => return Ok(None),
            // Nobody knows. Nothing needs to be stored for it, so it is no failure to offload.
            Err(error) => {
                decision.error = Some(error.to_string());
                return Err(Reason::StoreFailed);
            }
        };
        let own = |text: &str| preview.own(text, was_previewed_in)?.ok();
        let said = Said {
            prose: session.prose(),
            tool: &draft.tool,
            reader: session.reader(),
            own: &own,
        };
        let is_short = hint.kind == Kind::Cleared && hint.preview.len() <= budget;
        let is_ours = match hint.kind {
            Kind::Cleared => {
                previews(&hint, &content, own) && (is_short || is_said(&hint, &content, said))
            }
            _ => shows_only(&hint, &content, said),
        };
        if !is_ours {
            // In other words than ours it is not cut: what it says is stored nowhere.
            return if may_stay && previews(&hint, &content, own) {
                Err(Reason::Unverified)
            } else {
                Ok(None)
            };
        }
        let (parts, text) = texts_in(&hint, &content).unwrap_or((0, &content));
        draft.parts = parts;
        let is_short = hint.kind == Kind::Cleared && hint.preview.len() <= budget;
        draft.hint.preview = if is_short {
            hint.preview
        } else {
            preview.show(&String::from_utf8_lossy(text), budget).0
        };
        texts.push(draft.render(session, Some(stored.location.clone())));
        locations.push(stored.location);
    }
    Ok(Some(Line::Ready(join(texts.into_iter()), locations)))
}
