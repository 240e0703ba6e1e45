//! Truncates a result that is in memory: plans the cuts, stores them, and puts their hints in place.

use bytes::Bytes;

use super::job::{Job, text_bytes};
use super::plan::{Text, plan};
use crate::backend::key::digest;
use crate::content::{Part, text_part};
use crate::error::OffloadError;
use crate::report::{Decision, ErrorSource, Outcome, Reason};

/// Truncates a result without a handler. Beside a text are its bytes if they are not UTF-8. `is_broken` is true if
/// the last one broke off.
pub(super) async fn truncate(
    job: Job<'_>,
    mut arrived: Vec<(Part, Option<Bytes>)>,
    is_broken: bool,
) -> Result<(Vec<Part>, Decision), OffloadError> {
    let (id, mut decision) = job.begin();
    for (part, bytes) in &mut arrived {
        // A `String` of a tool may be UTF-16 whose NULs it took for characters.
        if let (Part::Text(text), None) = (&mut *part, &bytes) {
            (*part, *bytes) = text_part(std::mem::take(text).into_bytes());
        }
        let length = || text_bytes(part);
        decision.bytes.before += bytes
            .as_ref()
            .map_or_else(length, |bytes| bytes.len() as u64);
    }
    let mut texts = Vec::new();
    for (slot, (part, raw)) in arrived.iter().enumerate() {
        if let Some(text) = job.counted_text(part) {
            texts.push(Text {
                slot,
                text,
                raw: raw.as_deref(),
            });
        }
    }
    if let ([text], [_]) = (&texts[..], &arrived[..])
        && text.text.len() as u64 > job.limit
        && let Some(stored) = job.named(text.bytes().len() as u64).await
        && let Some(page) = job
            .page(stored, text.bytes(), text.text.len() as u64, &mut decision)
            .await
    {
        return Ok((page, decision));
    }
    let broken = is_broken.then(|| arrived.len() - 1);
    let cuts = plan(job, &id, &texts, arrived.len(), broken);
    let length: u64 = texts.iter().map(|text| text.text.len() as u64).sum();
    if cuts.is_empty() && length > job.limit {
        decision.outcome = Outcome::Kept(Reason::NoGain);
    }
    let mut hints = Vec::new();
    // Names follow the order of the parts: `<id>`, `<id>-2`, …
    for (mut cut, number) in cuts.into_iter().zip(1..) {
        decision.fail_first(ErrorSource::Callback, cut.problem.take());
        let content = cut.content();
        let target = job.target(&id, number, &digest(&content));
        let location = match target.save(job.backend, content).await {
            Ok(location) => Some(location),
            Err(error) => {
                let rule = job.session.settings.on_offload_error;
                if rule.decide(&mut decision, error)? {
                    if let Outcome::Kept(reason) = &mut decision.outcome {
                        *reason = Reason::StoreFailed;
                    }
                    continue;
                }
                None
            }
        };
        if location.is_none() {
            decision.outcome = Outcome::Lost;
        } else if !matches!(decision.outcome, Outcome::Lost) {
            decision.outcome = Outcome::Truncated;
        }
        decision.locations.extend(location.clone());
        let slots: Vec<usize> = cut.texts.iter().map(|text| text.slot).collect();
        hints.push((slots, job.session.hint(cut.draft, location)));
    }
    let mut parts: Vec<_> = arrived.into_iter().map(|(part, _)| Some(part)).collect();
    for (slots, hint) in hints {
        for slot in &slots {
            parts[*slot] = None;
        }
        parts[slots[0]] = Some(Part::Text(hint));
    }
    let parts: Vec<Part> = parts.into_iter().flatten().collect();
    decision.bytes.after = parts.iter().map(text_bytes).sum();
    Ok((parts, decision))
}
