//! Line numbers that previews quote, checked against the text that their hint leads to.
//!
//! A model that reads back goes where a preview tells it to: a wrong number is a loss like a hint to the
//! wrong place.

/// Number of places that previews quote, and of those at which the text has something else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) quoted: u64,
    pub(crate) wrong: u64,
}

impl Places {
    pub(crate) fn add(&mut self, other: Self) {
        self.quoted += other.quoted;
        self.wrong += other.wrong;
    }

    fn note(&mut self, is_right: bool) {
        self.quoted += 1;
        self.wrong += u64::from(!is_right);
    }
}

/// The places in a preview of `text`: `12|` and `12+400|` before lines, numbers before names, and the lines
/// that a mark between head and tail stands for.
pub(super) fn places(preview: &str, text: &str) -> Places {
    let lines: Vec<&str> = text.split('\n').collect();
    let shown: Vec<&str> = preview.split('\n').collect();
    let mut places = Places::default();
    // The rows of a table have numbers of lines, or of the items of a list.
    let is_header =
        |row: &&str| row.starts_with("line|") || row.starts_with('.') && row.contains("]|");
    let header = shown.iter().position(is_header).unwrap_or(shown.len());
    let rows = shown.iter().skip(header);
    if shown
        .get(header)
        .is_some_and(|header| header.starts_with("line|"))
    {
        for is_right in rows.filter_map(|row| cells(row, &lines)) {
            places.note(is_right);
        }
    }
    for (at, row) in shown.iter().enumerate().take(header) {
        if let Some(is_right) = numbered(row, &lines) {
            // A line of the text may begin like one of ours.
            if is_right || !text.contains(row.trim_end_matches('…')) {
                places.note(is_right);
            }
        } else if let Some(list) = row.strip_prefix("names: ") {
            if !lines.contains(row) {
                listed(list, &lines, &mut places);
            }
        } else if let Some((first, last)) = left_out(row)
            && !lines.contains(row)
        {
            // The rows around it are all of the first and the last lines. The cut may be inside a line.
            let after = shown.len() - at - 1;
            let next = (lines.len() + 1).saturating_sub(after);
            let is_right = [at, at + 1].contains(&first) && [last, last + 1].contains(&next);
            places.note(is_right);
        }
    }
    places
}

/// Tells whether a row that begins with a place shows what is there. `None` if it does not begin with one.
fn numbered(row: &str, lines: &[&str]) -> Option<bool> {
    let (place, body) = row.split_once('|')?;
    let (number, byte) = place.split_once('+').unwrap_or((place, "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_digits(number) || !is_digits(byte) {
        return None;
    }
    let body = if byte == "0" {
        body
    } else {
        body.strip_prefix('…')?
    };
    let body = body.strip_suffix('…').unwrap_or(body);
    let there = || {
        let line = lines.get(number.parse::<usize>().ok()?.checked_sub(1)?)?;
        line.get(byte.parse().ok()?..)
    };
    Some(there().is_some_and(|there| shows(there, body)))
}

/// Tells whether the cells of a table's row stand in its line, but for those that are cut or have escapes. `None` if it is
/// no row.
fn cells(row: &str, lines: &[&str]) -> Option<bool> {
    let (number, cells) = row.split_once('|')?;
    let number = number.parse::<usize>().ok()?;
    let line = number.checked_sub(1).and_then(|at| lines.get(at));
    let is_there =
        |cell: &str| cell.contains(['"', '…']) || line.is_some_and(|line| line.contains(cell));
    Some(cells.split('|').all(is_there))
}

/// Tells whether the text at a place begins with `body`, as it is or as a person sees it.
pub(super) fn shows(there: &str, body: &str) -> bool {
    // Encoded data is named by its length.
    let seen = ["[base64, ", "[hex, "]
        .into_iter()
        .filter_map(|data| body.find(data))
        .min();
    let seen = &body[..seen.unwrap_or(body.len())];
    there.starts_with(body) || plain(there).starts_with(seen)
}

/// A line without escape sequences and NUL, as it was last drawn.
fn plain(line: &str) -> String {
    let plain = anstream::adapter::strip_str(line)
        .to_string()
        .replace('\0', "");
    let end = plain.trim_end_matches('\r').len();
    let start = plain[..end].rfind('\r').map_or(0, |at| at + 1);
    plain[start..].to_owned()
}

/// Checks names, each after the number of its line.
fn listed(list: &str, lines: &[&str], places: &mut Places) {
    let mut line = None;
    for word in list.split(' ') {
        match word.parse::<usize>() {
            Ok(number) => line = number.checked_sub(1).and_then(|at| lines.get(at)),
            Err(_) => places
                .note(line.is_some_and(|line| line.contains(word) || plain(line).contains(word))),
        }
    }
}

/// The first and the last line that a mark such as `[… 8368 B, L7-223 …]` stands for.
fn left_out(row: &str) -> Option<(usize, usize)> {
    let (_, lines) = row
        .strip_prefix("[… ")?
        .strip_suffix(" …]")?
        .split_once(", L")?;
    let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
    Some((first.parse().ok()?, last.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_place_is_checked() {
        let text = "alpha_one\nbeta_two of 12\n7|own\nnames: 3 own_list\nlong: a_b c_d e_f\nend";
        let of = |preview: &str| {
            let Places { quoted, wrong } = places(preview, text);
            (quoted, wrong)
        };
        assert_eq!(of("2|beta_two of 12\n7|own\n[… 9 B …]"), (1, 0));
        assert_eq!(of("3|beta_two of 12"), (1, 1));
        assert_eq!(of("0|beta_two of 12\n99|end"), (2, 2));
        assert_eq!(of("5+6|…a_b…\n5+8|…a_b…"), (2, 1));
        assert_eq!(of("names: 1 alpha_one 5 a_b c_d"), (3, 0));
        assert_eq!(of("names: 1 alpha_one 2 a_b 77 e_f"), (3, 2));
        assert_eq!(of("names: 3 own_list\nplain"), (0, 0));
        assert_eq!(of("alpha_one\n[… 30 B, L2-5 …]\nend"), (1, 0));
        assert_eq!(of("alpha_one\n[… 30 B, L4-5 …]\nend"), (1, 1));
        assert_eq!(of("alpha_one\n[… 30 B, L2-3 …]\nend"), (1, 1));
        assert_eq!(of("alpha_one\n[… 30 B …]\nend"), (0, 0));
        assert_eq!(
            of("[6 records]\nline|a|b\n2|beta_two|12\n5|\"l|m\"|a_…\n1|beta_two|\n[… more …]"),
            (3, 1)
        );
        assert_eq!(of("[6 records]\n.rows[]|a\n9|beta_two\n[… more …]"), (0, 0));
    }
}
