//! Properties of a replay of any transcript.

use crate::evidence::Kind;
use crate::replay::{self, NONE, Policy, Prices, RequestSource};
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
    let policies = ["aggressive", "eino"].map(|name| {
        let mut settings = settings::load(name).expect("a built-in policy");
        settings::forget_stores(&mut settings);
        Policy {
            name: name.to_owned(),
            by: RequestSource::Settings(Box::new(settings), name.to_owned()),
        }
    });
    let sources = [Source(transcript.to_owned())];
    // Unreadable transcripts are skipped, not failures.
    let (replayed, skipped) = replay::all(&sources, &policies).expect("a replay");
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
            let [names, lines] = [Kind::Name, Kind::Quote].map(|kind| figures.seen.count(kind));
            assert!(figures.shown <= names.seen && names.seen <= names.readable);
            assert!(names.readable <= names.needed && lines.seen <= lines.needed);
            let of_nothing =
                [Kind::Name, Kind::Quote].map(|kind| nothing.figures.seen.count(kind).needed);
            assert_eq!([names.needed, lines.needed], of_nothing);
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
        let [names, lines] = [Kind::Name, Kind::Quote].map(|kind| nothing.figures.seen.count(kind));
        assert_eq!(
            (nothing.figures.shown, lines.seen),
            (names.needed, lines.needed)
        );
    }
    let names = [NONE, "aggressive", "eino"];
    let of = |replayed| {
        report::html(
            &names,
            &replay::totals(replayed, policies.len()),
            replayed,
            &Prices::weights(0.1, 1.0),
        )
    };
    let ends = |page: String| page.matches("</script").count();
    let [page, empty] = [of(&replayed), of(&[])].map(ends);
    assert_eq!(
        page, empty,
        "what a transcript says has ended a script in the report"
    );
}
