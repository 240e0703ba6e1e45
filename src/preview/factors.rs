//! Factors for what is in lines that say little: comments around a few settings.

use crate::preview::units::{Unit, is_heading, own_text};

/// Worth of comments as a factor, where they are most of the text.
const LITTLE: f32 = 0.2;

/// Worth of each unit's names and values, as a factor.
pub(crate) fn factors(units: &[Unit<'_>]) -> Vec<f32> {
    let comments: Vec<bool> = units.iter().map(is_comment).collect();
    let are_most = 3 * comments.iter().filter(|is| **is).count() > 2 * units.len();
    let factor = |is_comment| if are_most && is_comment { LITTLE } else { 1.0 };
    comments.into_iter().map(factor).collect()
}

/// Returns true for a comment of a settings file or a script.
fn is_comment(unit: &Unit<'_>) -> bool {
    own_text(unit).trim_start().starts_with(['#', ';']) && !is_heading(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(text: &str) -> Vec<Unit<'_>> {
        let lines = text
            .split('\n')
            .zip(1..)
            .filter(|(text, _)| !text.is_empty());
        lines.map(|(text, line)| Unit::line(text, line)).collect()
    }

    #[test]
    fn comments_around_a_few_settings_are_worth_less() {
        let settings = "# a\n#port = 1\n#b = 2\n ; c\nport = 3\n# d";
        let expected = [LITTLE, LITTLE, LITTLE, LITTLE, 1.0, LITTLE];
        assert_eq!(factors(&units(settings)), expected);
        assert_eq!(factors(&units("# a\nb = 1\nc = 2")), [1.0; 3]);
    }
}
