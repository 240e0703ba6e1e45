//! Tables in texts: separated values, Markdown, drawn borders, and aligned columns.
//!
//! A table begins with the names of its columns, after a few lines at most that say something about it, and each of
//! its rows has as many cells. A few other lines may follow.

use std::collections::HashSet;
use std::io::Read;
use std::ops::Range;

/// Lines between the cells of drawn tables.
const BORDERS: [char; 4] = ['|', '│', '┃', '║'];
/// Two lines with a comma are not a table yet, nor are a few words below each other.
const MIN_ROWS: usize = 2;
const MIN_ALIGNED: usize = 3;
/// Maximum number of bytes before the names of the columns, and after the last row.
const MAX_AROUND: usize = 300;
/// Maximum number of bytes in which the names and the first rows are looked for.
const MAX_BEGINNING: usize = 4 * 1024;
/// Number of rows that are compared with the names of the columns.
const HEADED: usize = 9;
/// Maximum length in bytes of the name of a column.
const MAX_NAME: usize = 64;

/// A table, and the text around it.
#[derive(Debug)]
pub(crate) struct TextTable<'t, R> {
    pub(crate) before: &'t str,
    pub(crate) names: Vec<String>,
    pub(crate) rows: Vec<R>,
    pub(crate) after: &'t str,
}

/// The number of a row's line, counted from 1, and its cells.
pub(crate) type TableRow = (u64, Vec<String>);
/// Rows of a table, each with the byte after it in the text.
type Rows<'t> = Box<dyn Iterator<Item = (usize, Option<TableRow>)> + 't>;

/// A way in which tables are written.
#[derive(Clone, Copy, Debug)]
enum TableForm {
    Drawn,
    Separated(u8),
    Aligned,
}

/// The likeliest first.
const FORMS: [TableForm; 6] = [
    TableForm::Drawn,
    TableForm::Separated(b'\t'),
    TableForm::Separated(b','),
    TableForm::Separated(b';'),
    TableForm::Separated(b'|'),
    TableForm::Aligned,
];

/// Reads `text` as a table of what `row` makes of the names and each row, if it makes something of all. Linear in the
/// text: of each form, only the first place at which it may begin is tried.
pub(crate) fn read<R>(
    text: &str,
    mut row: impl FnMut(&[String], TableRow) -> Option<R>,
) -> Option<TextTable<'_, R>> {
    FORMS.into_iter().find_map(|form| {
        let (from, names) = form.begins(text)?;
        let (before, text) = text.split_at(from);
        let lines = before.lines().count() as u64;
        let (mut rows, mut end, mut is_whole) = (Vec::new(), 0, true);
        for (to, found) in form.rows(text, names.len()) {
            end = to;
            let Some((line, cells)) = found else {
                continue;
            };
            // A name is not repeated below.
            let is_row =
                rows.len() >= HEADED || names.iter().zip(&cells).all(|(name, cell)| name != cell);
            let made = row(&names, (lines + line, cells)).filter(|_| is_row);
            is_whole = made.is_some();
            rows.extend(made);
            if !is_whole {
                break;
            }
        }
        let after = &text[end..];
        let is_table = is_whole
            && rows.len() >= form.min_rows()
            && after.trim().len() <= MAX_AROUND
            && !form.goes_on(after);
        is_table.then_some(TextTable {
            before,
            names,
            rows,
            after,
        })
    })
}

/// The beginnings of the lines within the first [`MAX_AROUND`] bytes.
pub(crate) fn first_lines(text: &str) -> impl Iterator<Item = usize> {
    let feeds = text.match_indices('\n').map(|(feed, _)| feed + 1);
    let places = std::iter::once(0).chain(feeds);
    places.take_while(|at| *at <= MAX_AROUND)
}

/// The separator of a table that `text` begins with.
#[cfg(feature = "query")]
pub(crate) fn separator(text: &str) -> Option<u8> {
    FORMS
        .into_iter()
        .find_map(|form| match (form, form.begins(text)) {
            (TableForm::Separated(by), Some((0, _))) => Some(by),
            _ => None,
        })
}

/// Reads the cells of separated values, names first.
pub(crate) fn separated<R: Read>(text: R, by: u8) -> csv::Reader<R> {
    csv::ReaderBuilder::new()
        .delimiter(by)
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(text)
}

/// Returns true for a number as JSON writes it: `007` is none.
pub(crate) fn is_number(cell: &str) -> bool {
    cell.starts_with(|c: char| c == '-' || c.is_ascii_digit())
        && serde_json::from_str::<serde_json::Number>(cell).is_ok()
}

fn is_name(text: &str) -> bool {
    let begins = text.starts_with(|c: char| c.is_alphabetic() || "_#%@$(".contains(c));
    let is_code = text.contains(['=', ';', '{', '}']);
    text.len() <= MAX_NAME && !is_code && (begins || is_number(text))
}

impl TableForm {
    /// The first place at which names and the first rows below them stand, and the names.
    fn begins(self, text: &str) -> Option<(usize, Vec<String>)> {
        let first = &text[..text.floor_char_boundary(MAX_BEGINNING)];
        first_lines(first).find_map(|from| {
            let names = self.names(&first[from..])?;
            let rows = self.rows(&first[from..], names.len());
            let rows = rows.filter(|(_, row)| row.is_some());
            let is_table = rows.take(self.min_rows()).count() == self.min_rows();
            is_table.then_some((from, names))
        })
    }

    fn min_rows(self) -> usize {
        match self {
            Self::Aligned => MIN_ALIGNED,
            _ => MIN_ROWS,
        }
    }

    /// The names of the columns, if `text` begins with some, each with one of its own.
    fn names(self, text: &str) -> Option<Vec<String>> {
        let names = match self {
            Self::Separated(by) => {
                // Few lines are names, and building a reader costs more than a look.
                if !text.lines().next()?.as_bytes().contains(&by) {
                    return None;
                }
                let mut cells = csv::StringRecord::new();
                let mut reader = separated(text.as_bytes(), by);
                reader.read_record(&mut cells).ok()?;
                cells.iter().map(str::to_owned).collect()
            }
            Self::Drawn => drawn_names(text)?,
            Self::Aligned => aligned_names(text)?,
        };
        let distinct: HashSet<&String> = names.iter().collect();
        let is_header = names.len() > 1 && distinct.len() == names.len() && !is_number(&names[0]);
        let is_named = |name: &String| match self {
            // `1K-blocks` of `df`.
            Self::Aligned => is_name(name.trim_start_matches(|c: char| c.is_ascii_digit())),
            _ => is_name(name),
        };
        (is_header && names.iter().all(is_named)).then_some(names)
    }

    /// The rows below the names, for as long as each has a cell for each name, with the byte after it; `None` for a
    /// border.
    fn rows<'t>(self, text: &'t str, columns: usize) -> Rows<'t> {
        let gutters = match self {
            Self::Separated(by) => return separated_rows(text, by, columns),
            Self::Aligned => gutters(text),
            Self::Drawn => Vec::new(),
        };
        let mut end = 0;
        let lines = text.split_inclusive('\n').zip(1..);
        let lines = lines.map(move |(line, number)| {
            end += line.len();
            (end, line.trim_end_matches(['\n', '\r']), number)
        });
        // A border may be above the names.
        let mut lines = lines.skip_while(|(_, line, _)| is_border(line)).skip(1);
        let (mut is_first, mut has_rows) = (true, false);
        Box::new(std::iter::from_fn(move || {
            let (end, line, number) = lines.next()?;
            let is_first = std::mem::take(&mut is_first);
            if is_border(line) {
                // Totals stand below a second rule.
                if matches!(self, Self::Aligned)
                    && has_rows
                    && text[end..].trim().len() <= MAX_AROUND
                {
                    return None;
                }
                if is_first || !line.starts_with(BORDERS) {
                    return Some((end, None));
                }
            }
            let cells = match self {
                Self::Aligned => cells_between(line, &gutters).unwrap_or_default(),
                _ => drawn_cells(line, columns),
            };
            has_rows = cells.len() == columns && !line.trim().is_empty();
            has_rows.then_some((end, Some((number, cells))))
        }))
    }

    /// Returns true if the text after the last row looks like more of the table.
    fn goes_on(self, after: &str) -> bool {
        match self {
            Self::Separated(by) => after.as_bytes().contains(&by),
            Self::Drawn => after.contains(BORDERS),
            Self::Aligned => {
                let next = after.lines().next().unwrap_or_default();
                !next.trim().is_empty() && !is_border(next)
            }
        }
    }
}

/// The same of separated values.
fn separated_rows(text: &str, by: u8, columns: usize) -> Rows<'_> {
    let mut reader = separated(text.as_bytes(), by);
    let mut cells = csv::StringRecord::new();
    let mut are_names = true;
    Box::new(std::iter::from_fn(move || {
        // Blank lines before a row are passed over.
        let blank = text[reader.position().byte() as usize..].bytes();
        let blank = blank.take_while(|byte| b"\r\n".contains(byte));
        let feeds = blank.filter(|byte| *byte == b'\n').count();
        let line = reader.position().line() + feeds as u64;
        // Text below a table may have a cell for each byte.
        if !reader.read_record(&mut cells).ok()? || cells.len() != columns {
            return None;
        }
        let row = || (line, cells.iter().map(str::to_owned).collect());
        let row = (!std::mem::take(&mut are_names)).then(row);
        let rest = text[reader.position().byte() as usize..].trim_start_matches(['\r', '\n']);
        Some((text.len() - rest.len(), row))
    }))
}

/// The names of a drawn table, above a border and maybe below another.
fn drawn_names(text: &str) -> Option<Vec<String>> {
    let mut lines = text.lines();
    let first = lines.next()?;
    let names = if is_border(first) {
        lines.next()?
    } else {
        first
    };
    let cells = drawn_cells(names, names.len());
    is_border(lines.next()?).then_some(cells)
}

fn is_border(line: &str) -> bool {
    let is_drawn = |c: char| ('\u{2500}'..='\u{257f}').contains(&c);
    let is_dash = |c: &char| matches!(c, '-' | '=') || is_drawn(*c);
    let mut dashes = line.chars().filter(is_dash);
    dashes.nth(1).is_some() && line.chars().all(|c| " -=+|:".contains(c) || is_drawn(c))
}

/// The cells between borders, but no more than one after `most`; `\|` in a cell is not a border.
fn drawn_cells(line: &str, most: usize) -> Vec<String> {
    let line = line.trim();
    let inside = line.strip_prefix(BORDERS);
    let inside = inside.and_then(|line| line.strip_suffix(BORDERS));
    let mut cells = Vec::<String>::new();
    for part in inside.unwrap_or(line).split(BORDERS) {
        if let Some(cell) = cells.last_mut()
            && cell.ends_with('\\')
        {
            cell.replace_range(cell.len() - 1.., &format!("|{part}"));
        } else if cells.len() > most {
            break;
        } else {
            cells.push(part.to_owned());
        }
    }
    let trimmed = cells.iter().map(|cell| cell.trim().to_owned());
    trimmed.collect()
}

/// The names of aligned columns: in capitals or above a border, so that they are not a row like the others.
fn aligned_names(text: &str) -> Option<Vec<String>> {
    let mut lines = text.lines();
    let line = lines.next()?;
    let names = cells_between(line, &gutters(text))?;
    let is_capital = |name: &String| {
        let name = name.trim_start_matches(|c: char| c.is_ascii_digit());
        name.starts_with(|c: char| c.is_uppercase() || "%#".contains(c))
    };
    let are_names = names.iter().all(is_capital) && !line.contains([':', '"']);
    (are_names || lines.next().is_some_and(is_border)).then_some(names)
}

/// The blanks between aligned columns, as ranges of characters: between two words of the first line, where no row below
/// has anything. They are there whether a column is aligned to the left, as in `docker ps`, or to the right, as in `ps`.
/// Words one space apart are one name, as `CONTAINER ID` is, unless both have something below them.
fn gutters(text: &str) -> Vec<Range<usize>> {
    let mut lines = text.lines();
    let words = words(lines.next().unwrap_or_default());
    let rows = lines.take_while(|line| !line.trim().is_empty());
    let rows: Vec<Vec<char>> = rows.take(HEADED).map(|row| row.chars().collect()).collect();
    let is_blank = |at: usize| rows.iter().all(|row| row.get(at).is_none_or(|c| *c == ' '));
    let end = rows.iter().map(Vec::len).max().unwrap_or_default();
    let mut gutters: Vec<Range<usize>> = Vec::new();
    for (word, next) in words.iter().zip(words.iter().skip(1)).rev() {
        let Some(last) = (word.end..next.start).rev().find(|at| is_blank(*at)) else {
            continue;
        };
        let first = (word.end..last).rev().take_while(|at| is_blank(*at)).last();
        let stop = gutters.last().map_or(end, |gutter| gutter.start);
        if next.start - word.end > 1 || (next.start..stop).any(|at| !is_blank(at)) {
            gutters.push(first.unwrap_or(last)..last + 1);
        }
    }
    gutters.reverse();
    gutters
}

/// The words of a line, as ranges of characters.
fn words(line: &str) -> Vec<Range<usize>> {
    let mut words: Vec<Range<usize>> = Vec::new();
    for (at, _) in line.chars().enumerate().filter(|(_, c)| *c != ' ') {
        match words.last_mut() {
            Some(word) if word.end == at => word.end += 1,
            _ => words.push(at..at + 1),
        }
    }
    words
}

/// The cells of a line, if it has a blank in each gutter.
fn cells_between(line: &str, gutters: &[Range<usize>]) -> Option<Vec<String>> {
    let line: Vec<char> = line.chars().collect();
    let is_blank = |at: &usize| line.get(*at).is_none_or(|c| *c == ' ');
    let cuts = gutters
        .iter()
        .map(|gutter| gutter.clone().rev().find(is_blank));
    let mut cuts: Vec<usize> = cuts.collect::<Option<_>>()?;
    cuts.insert(0, 0);
    let ends = cuts.iter().skip(1).copied().chain([line.len()]);
    let cells = cuts.iter().zip(ends).map(|(start, end)| {
        let cell = line.get(*start..end.min(line.len())).unwrap_or_default();
        cell.iter().collect::<String>().trim().to_owned()
    });
    Some(cells.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Option<(Vec<String>, Vec<TableRow>, String)> {
        let table = read(text, |_, row| Some(row))?;
        Some((
            table.names,
            table.rows,
            format!("{}…{}", table.before, table.after),
        ))
    }

    #[test]
    fn each_form_of_a_table_is_read() {
        let expected = |around: &str, lines: [u64; 3]| {
            let cells = [["Ada", "12"], ["Ben C", "7"], ["", "a|b"]];
            let rows = lines
                .into_iter()
                .zip(cells.map(|cells| cells.map(str::to_owned).to_vec()));
            Some((
                vec!["NAME".to_owned(), "AGE".to_owned()],
                rows.collect(),
                around.to_owned(),
            ))
        };
        for (text, lines, around) in [
            ("NAME,AGE\r\nAda,12\r\nBen C,7\r\n,a|b\r\n", [2, 3, 4], "…"),
            ("NAME\tAGE\nAda\t12\n\nBen C\t7\n\ta|b", [2, 4, 5], "…"),
            (
                "found:\nNAME;AGE\n\"Ada\" ; 12\nBen C;7\n;a|b\n3 rows\n",
                [3, 4, 5],
                "found:\n…3 rows\n",
            ),
            (
                "# T\n\n| NAME | AGE |\n|:--|--:|\n| Ada | 12 |\n| Ben C | 7 |\n| | a\\|b |\n\nend",
                [5, 6, 7],
                "# T\n\n…\nend",
            ),
            (
                " NAME  | AGE \n-------+-----\n Ada   | 12\n Ben C | 7\n       | a\\|b\n(3 rows)\n",
                [3, 4, 5],
                "…(3 rows)\n",
            ),
            (
                "+--+--+\n| NAME | AGE |\n+--+--+\n| Ada | 12 |\n| Ben C | 7 |\n| | a\\|b |\n+--+--+\n",
                [4, 5, 6],
                "…",
            ),
            (
                "┌──┬──┐\n│ NAME │ AGE │\n├──┼──┤\n│ Ada │ 12 │\n│ Ben C │ 7 │\n│ │ a\\|b │\n└──┴──┘\n",
                [4, 5, 6],
                "…",
            ),
            (
                "NAME    AGE\nAda     12\nBen C   7\n        a|b\n",
                [2, 3, 4],
                "…",
            ),
            (
                " NAME AGE\n  Ada  12\nBen C   7\n      a|b\n",
                [2, 3, 4],
                "…",
            ),
            (
                "NAME    AGE\n------- ---\nAda     12\nBen C   7\n        a|b\n\nas of today",
                [3, 4, 5],
                "…\nas of today",
            ),
        ] {
            assert_eq!(table(text), expected(around, lines), "{text}");
        }
    }

    #[test]
    fn columns_may_be_aligned_to_the_right() {
        for (text, names, second) in [
            (
                "    PID  CPU        RSS COMMAND\n   1000   19   42391688 /usr/bin/worker --queue q1\n   1001   87    4694008 ssh\n  11002    0         12 top -b\n",
                "PID|CPU|RSS|COMMAND",
                "1001|87|4694008|ssh",
            ),
            (
                "USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND\nroot           1  0.0  0.1 168940 13124 ?        Ss   Nov20   0:09 /sbin/init splash\nroot           2  0.0  0.0      0     0 ?        S    Nov20   0:00 [kthreadd]\nada      1234567 12.5 10.1 916894 13124 pts/0    Rl+  10:02  12:09 python3 train.py\n",
                "USER|PID|%CPU|%MEM|VSZ|RSS|TTY|STAT|START|TIME|COMMAND",
                "root|2|0.0|0.0|0|0|?|S|Nov20|0:00|[kthreadd]",
            ),
            (
                "Filesystem     1K-blocks     Used Available Use% Mounted on\n/dev/vda1       61255492 41270212  16841280  72% /\ntmpfs            4014056        0   4014056   0% /dev/shm\n/dev/vdb1      515928320 10276492 479421180   3% /mnt/data\n",
                "Filesystem|1K-blocks|Used|Available|Use%|Mounted on",
                "tmpfs|4014056|0|4014056|0%|/dev/shm",
            ),
            (
                "LAST SEEN   TYPE      REASON\n5m          Normal    Pulled\n12m         Warning   BackOff\n3h2m        Normal    Started\n",
                "LAST SEEN|TYPE|REASON",
                "12m|Warning|BackOff",
            ),
        ] {
            let (read, rows, _) = table(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(read.join("|"), names);
            assert_eq!(rows[1].1.join("|"), second);
            assert_eq!(rows.len(), 3);
        }
    }

    #[test]
    fn what_is_below_a_second_rule_is_no_row() {
        let text = " Length   Name\n--------  ----\n     120  a.rs\n    4000  b.rs\n      70  c.rs\n--------  ----\n    4190  3 files\n";
        let (_, rows, around) = table(text).unwrap();
        assert_eq!(rows.len(), 3);
        assert!(around.ends_with("4190  3 files\n"), "{around}");
    }

    #[test]
    fn rows_may_have_several_lines() {
        let (_, rows, _) = table("id,text\n1,\"a\nb, \"\"c\"\"\"\n2,d\n").unwrap();
        assert_eq!(
            rows,
            [
                (2, vec!["1".to_owned(), "a\nb, \"c\"".to_owned()]),
                (4, vec!["2".to_owned(), "d".to_owned()])
            ]
        );
    }

    #[test]
    fn other_texts_are_no_tables() {
        for text in [
            "",
            "one, two\n",
            "one, two\nthree, four\n",
            "a,b\n1,2\n3,4\n5,6,7\n",
            "a,a\n1,2\n3,4\n",
            "1,2\n3,4\n5,6\n",
            "a,\n1,\n2,\n",
            "let a, b = 1;\nlet c, d = 2;\nlet e, f = 3;\n",
            "Tests\tRun\t10:00 begins\nTests\tRun\t10:01 goes on\nTests\tRun\t10:02 ends\n",
            " .ci/run | 20 +-\n src/a.rs | 7 +\n src/b.rs | 9 -\n 3 files changed\n",
            "| a | b |\n| 1 | 2 |\n| 3 | 4 |\n",
            "src/a.rs:7:    let a\nsrc/a.rs:9:    let b\nsrc/a.rs:9:    let c\n",
            "-rw-r--r--  1 ada\n-rw-r--r--  1 ben\n-rw-r--r--  1 eve\n-rw-r--r--  1 joe\n",
            "fn a() {\n    b();\n    c();\n}\n",
        ] {
            assert_eq!(table(text), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read(text in "([a-c ,|\"\\\\+\r\t:;=│-]{0,12}\n?){0,12}") {
            if let Some((names, rows, _)) = table(&text) {
                for (line, cells) in rows {
                    proptest::prop_assert_eq!(cells.len(), names.len());
                    proptest::prop_assert!(line as usize <= text.lines().count());
                }
            }
        }
    }
}
