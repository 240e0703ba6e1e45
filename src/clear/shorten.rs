//! Shortens apparent hints of ours after comparing them with the stored content.

use super::edit::{Content, SlotEdit};
use super::outages::NoAnswer;
use super::pass::Pass;
use super::stub::{Line, Shown, expected, join};
use crate::backend::ErrorKind;
use crate::hint::Kind;
use crate::preview::text::utf8::text_of;
use crate::read_back::{shows_only, texts_in};
use crate::report::{Decision, ErrorSource, Outcome, Reason};

/// Compares the apparent hints of an edit with the stored content. The edit then holds the lines
/// that replace them, and their sizes if no name is taken; or it stays as it is.
pub(super) async fn shorten(pass: &Pass<'_>, edit: &mut SlotEdit) {
    if !edit.has_to_be_compared() {
        return;
    }
    if let Content::Lines(lines) = std::mem::replace(&mut edit.content, Content::Kept)
        && let Err(reason) = compare_lines(pass, edit, lines).await
    {
        edit.keep(reason);
    }
}

async fn compare_lines(
    pass: &Pass<'_>,
    edit: &mut SlotEdit,
    lines: Vec<Line>,
) -> Result<(), Reason> {
    let mut is_ours_alone = lines.iter().all(|line| !matches!(line, Line::Store { .. }));
    let mut compared = Vec::with_capacity(lines.len());
    for line in lines {
        compared.push(match line {
            Line::Shorten(shown, otherwise) => {
                match compare(pass, shown, &mut edit.decision).await? {
                    Some(line) => line,
                    None => {
                        // It only looked like hints of ours, so it is an ordinary text.
                        is_ours_alone = false;
                        edit.decision.outcome = Outcome::Cleared;
                        *otherwise
                    }
                }
            }
            line => line,
        });
    }
    let put = edit.substitute(&expected(&compared));
    if edit.try_resize(&pass.session.meter, &put) {
        edit.content = Content::Lines(compared);
        Ok(())
    } else if is_ours_alone {
        Err(Reason::AlreadyHint)
    } else {
        Err(Reason::NoGain)
    }
}

/// Returns the short hints if the hints show what is stored; `None` if they do not.
async fn compare(
    pass: &Pass<'_>,
    hints: Vec<Shown>,
    decision: &mut Decision,
) -> Result<Option<Line>, Reason> {
    let (mut texts, mut locations) = (Vec::with_capacity(hints.len()), Vec::new());
    for shown in hints {
        let found = preview_of_content(pass, &shown, decision).await?;
        let Some(stored) = shown.own.stored else {
            texts.push(shown.expected);
            continue;
        };
        let Some(preview) = found else {
            return Ok(None);
        };
        let mut draft = shown.draft;
        draft.hint.preview = preview;
        texts.push(pass.session.hint(draft, Some(stored.location.clone())));
        locations.push(stored.location);
    }
    let text = join(texts.iter().map(String::as_str));
    Ok(Some(Line::Ready(text, locations)))
}

/// Returns the preview of the stored content that a hint shows; `None` if the hint shows something else, or leads nowhere.
async fn preview_of_content(
    pass: &Pass<'_>,
    shown: &Shown,
    decision: &mut Decision,
) -> Result<Option<String>, Reason> {
    let Shown {
        own,
        previewer,
        budget,
        was_previewed_in,
        ..
    } = shown;
    let hint = &own.hint;
    let Some(stored) = &own.stored else {
        return Ok(None);
    };
    // A hint no longer than one of ours may be left alone.
    let may_stay = matches!(hint.kind, Kind::Truncated | Kind::Cleared)
        && hint.preview.len() <= *was_previewed_in;
    let content = match pass.outages.ask(&stored.backend, stored.whole()).await {
        Ok(Some(content)) => content,
        // Too large to compare.
        Ok(None) if may_stay => return Err(Reason::Unverified),
        Ok(None) => return Ok(None),
        Err(NoAnswer::Failed(error)) if error.kind() == ErrorKind::NotFound => return Ok(None),
        // The store can't tell. Nothing has to be stored here, so this is not a failed offload.
        Err(error) => {
            decision.fail(ErrorSource::Store.said(&error));
            return Err(Reason::StoreFailed);
        }
    };
    let own = |text: &str| previewer.own(text, *was_previewed_in)?.ok();
    if !shows_only(hint, &content, own) {
        return Ok(None);
    }
    if hint.kind == Kind::Cleared && hint.preview.len() <= *budget {
        return Ok(Some(hint.preview.clone()));
    }
    let text = texts_in(hint, &content).unwrap_or(&content);
    let (preview, problem) = previewer.show(&text_of(text), *budget);
    decision.fail_first(problem.map(|problem| ErrorSource::Callback.said(&problem)));
    Ok(Some(preview))
}
