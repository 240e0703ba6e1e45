//! Notes on stderr about results that could not be treated as they should.

use offcut::Report;

use crate::output;

/// Reports what became of each result that could not be treated as it should.
pub(crate) fn note_failures(report: &Report) {
    for decision in &report.decisions {
        if let Some(error) = &decision.error {
            let tool = output::visible(&decision.tool);
            let became = match decision.locations.first() {
                None => "was not stored",
                Some(_) => "is stored, but something failed",
            };
            output::warn(&format!("the result of {tool} {became}: {error}"));
        }
    }
    for problem in [&report.records_error, &report.notice]
        .into_iter()
        .flatten()
    {
        output::warn(problem);
    }
}
