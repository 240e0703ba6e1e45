//! Notes on stderr about results that could not be treated as they should.

use offcut::Report;
use offcut::report::{Decision, Outcome};

use crate::output;

/// Reports what became of each result that could not be treated as it should.
pub(crate) fn note_failures(report: &Report) {
    for decision in &report.decisions {
        if let Some(error) = &decision.error {
            let tool = output::visible(&decision.tool);
            output::warn(&format!(
                "the result of {tool} {}: {error}",
                what_became_of(decision)
            ));
        }
    }
    if let Some(error) = &report.records_error {
        output::warn(error);
    }
}

fn what_became_of(decision: &Decision) -> String {
    match (decision.locations.first(), decision.outcome) {
        (None, _) => "was not stored".to_owned(),
        // No callback is set here: the store failed, and the content is in its spool.
        (Some(location), Outcome::Truncated) => {
            format!(
                "is stored only on this machine, at {}",
                output::visible(location.as_str())
            )
        }
        (Some(_), _) => "is stored, but something failed".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use offcut::backend::Memory;
    use offcut::{ToolCall, ToolReduction};

    use super::*;

    #[test]
    fn h3_content_in_the_spool_is_not_reported_as_lost() {
        let reduction = ToolReduction::recommended(Memory::new())
            .build()
            .expect("a reduction");
        let call = ToolCall::new("a", "a\nb\u{1b}", "{}");
        let runtime = crate::settings::runtime().expect("a runtime");
        let shown = runtime
            .block_on(reduction.truncate(&call, "line\n".repeat(30_000)))
            .expect("a result");
        let mut decision = shown.report.decisions[0].clone();
        assert!(
            what_became_of(&decision).starts_with("is stored only on this machine, at memory:")
        );
        decision.locations.clear();
        assert_eq!(what_became_of(&decision), "was not stored");
        assert_eq!(output::visible(&decision.tool), "a\\nb\\u{1b}");
    }
}
