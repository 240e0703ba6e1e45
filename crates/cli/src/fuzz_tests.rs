//! Properties of a replay of any transcript.

use crate::replay::{self, Card, NONE, Policy, RequestSource};
use crate::transcript::Source;
use crate::{report, settings};

/// Replays the transcripts in a file under two policies, as `offcut replay --html` does, and checks
/// the figures.
///
/// # Panics
///
/// Panics if the figures are wrong.
#[expect(clippy::expect_used, reason = "to panic is how it says what it found")]
pub fn replay(transcript: &std::path::Path) {
    let policies = ["aggressive", "eino"].map(|name| Policy {
        name: name.to_owned(),
        by: RequestSource::Settings(Box::new(settings::load(name).expect("a built-in policy"))),
    });
    let sources = [Source::File(transcript.to_owned())];
    // Unreadable transcripts are skipped, not failures.
    let replay::All { replayed, skipped } =
        replay::all(&sources, &policies, |_| ()).expect("a replay");
    assert_eq!(replayed.is_empty(), !skipped.is_empty());
    for one in &replayed {
        let nothing = &one.replays[0];
        for replay in &one.replays {
            let figures = replay.figures;
            assert_eq!(figures.model_calls, replay.contexts.len() as u64);
            assert_eq!(figures.tokens, replay.contexts.iter().sum::<u64>());
            assert_eq!(
                figures.peak,
                replay.contexts.iter().copied().max().unwrap_or_default()
            );
            assert!(figures.fresh <= figures.tokens && figures.breaks <= figures.model_calls);
            assert!(figures.shown <= figures.named && figures.named <= figures.reachable);
            assert!(figures.reachable <= figures.uses && figures.quoted <= figures.quotes);
            assert_eq!(
                (figures.uses, figures.quotes),
                (nothing.figures.uses, nothing.figures.quotes)
            );
            // No call gets longer.
            assert_eq!(replay.contexts.len(), nothing.contexts.len());
            assert!(
                replay
                    .contexts
                    .iter()
                    .zip(&nothing.contexts)
                    .all(|(is, was)| is <= was)
            );
            assert!(
                replay
                    .changes
                    .iter()
                    .all(|change| change.after <= change.before)
            );
        }
        assert_eq!(
            (nothing.figures.breaks, nothing.figures.stored_objects),
            (0, 0)
        );
        assert_eq!(
            (nothing.figures.shown, nothing.figures.quoted),
            (nothing.figures.uses, nothing.figures.quotes)
        );
    }
    let names = [NONE, "aggressive", "eino"];
    let of = |replayed| {
        report::html(
            &names,
            &replay::totals(replayed, policies.len()),
            replayed,
            &Card::DEFAULT.into(),
        )
    };
    let ends = |page: String| page.matches("</script").count();
    let [page, empty] = [of(&replayed), of(&[])].map(ends);
    assert_eq!(
        page, empty,
        "what a transcript says has ended a script in the report"
    );
}
