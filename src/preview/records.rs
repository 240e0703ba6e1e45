//! A list of records as a table: whole if it fits, otherwise what its fields hold and the records that stand out.
//!
//! ```text
//! {"total":70,"flights":[70 records]}
//! id: F001, F002, F003, … 70 different
//! price: 89…912
//! state: on_time 67, delayed 3
//! .flights[]|id|price|state
//! 0|F001|89|on_time
//! 63|F064|912|delayed
//! [… more …]
//! ```
//!
//! A cell is compact JSON; a text that could be read as nothing else is not quoted, and a record that lacks a
//! field has an empty cell. A line is shown if there is room for it after those before it: a preview made again in
//! as many bytes as it has is the same, which is how it is known again.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use crate::json::{Kind, Node, View};
use crate::preview::signs::is_failure;
use crate::preview::units::CUT;

/// The end of the path of records in an object, and the header of their names.
pub(super) const KEYED: &str = "[key]";
/// Fewer records are a document rather than a list.
const MIN_RECORDS: usize = 3;
/// With more names of fields, or longer records on average, a table helps nobody.
const MAX_FIELDS: usize = 40;
const MAX_RECORD: usize = 400;
/// More than one in so many of the cells have a value.
const FILLED: usize = 4;
/// One part in so many of a text may stand outside of its records.
const OUTSIDE: usize = 3;
/// Fields with up to so many different values are shown with their counts.
const MAX_COUNTED: usize = 8;
/// Maximum length in bytes of a cell where not all records are shown.
const MAX_CELL: usize = 60;
/// Maximum lengths of cells where all records are shown, the longest first. Whole ones need no places.
const CELLS: [Option<usize>; 4] = [None, Some(480), Some(240), Some(120)];
/// Records that report failures come first if they are at most one in so many.
const FAILING: usize = 20;
/// Maximum length in bytes of the first values of a field.
const MAX_EXAMPLES: usize = 30;
/// Maximum length in bytes of what stands before the records, and after them, where not all is shown.
const MAX_AROUND: usize = 240;
/// The end of a preview that does not show all.
pub(super) const MORE: &str = "[… more …]";

/// A list of objects.
pub(super) struct Records<'j> {
    names: Vec<&'j str>,
    rows: Vec<Row<'j>>,
    around: AroundRecords,
}

/// The text around some records, and what the numbers of the rows mean.
pub(super) struct AroundRecords {
    pub(super) before: String,
    pub(super) after: String,
    pub(super) numbers: String,
    /// The value of a field that a record lacks, as a query sees it.
    pub(super) absent: &'static str,
}

/// A field is missing.
pub(super) const NONE: &str = "none";

struct Row<'j> {
    place: String,
    /// Its values, each with the place of its name in `Records::names`. Most names may be those of other records,
    /// so there is no room for all.
    cells: Box<[(usize, Node<'j>)]>,
}

/// The way in which the rows of a table are written.
#[derive(Clone, Copy)]
struct RowForm<'c> {
    /// Maximum length of a cell in bytes.
    most: usize,
    /// True if each row begins with its place.
    has_places: bool,
    columns: &'c [usize],
}

impl RowForm<'_> {
    fn row<'c>(self, place: &'c str, cells: impl Iterator<Item = Cow<'c, str>>) -> String {
        let place = self.has_places.then_some(Cow::Borrowed(place));
        let cells: Vec<Cow<'_, str>> = place.into_iter().chain(cells).collect();
        cells.join("|") + "\n"
    }
}

/// The values of one field.
#[derive(Default)]
struct Field<'j> {
    /// Different values, the first row that has each, and how many have it.
    counts: Vec<(Node<'j>, usize, usize)>,
    /// Number of records that lack it, and of those in which it is `null`.
    missing: usize,
    nulls: usize,
}

impl<'j> Records<'j> {
    /// Reads the records of a text, of which these names of fields are known and `bytes` bytes are JSON; `None` if
    /// these are none.
    pub(super) fn read(
        mut names: Vec<&'j str>,
        rows: impl Iterator<Item = (Node<'j>, String)>,
        bytes: usize,
        around: AroundRecords,
    ) -> Option<Self> {
        let known = names.iter().enumerate().map(|(place, name)| (*name, place));
        let mut places: HashMap<&str, usize> = known.collect();
        let (mut all, mut inside, mut filled) = (Vec::new(), 0, 0);
        for (object, place) in rows {
            if !object.is_object() || !object.json.is_plain() {
                return None;
            }
            inside += object.range().len() + place.len();
            let cells = object.fields().map(|(name, value)| {
                let column = *places.entry(name).or_insert(names.len());
                if column == names.len() {
                    names.push(name);
                }
                (column, value)
            });
            let cells: Box<[_]> = cells.collect();
            filled += cells.len();
            if names.len() > MAX_FIELDS {
                return None;
            }
            all.push(Row { place, cells });
        }
        let is_table = all.len() >= MIN_RECORDS
            && inside / all.len().max(1) <= MAX_RECORD
            && inside >= bytes - bytes / OUTSIDE
            && FILLED * filled > all.len() * names.len();
        (is_table && !names.is_empty()).then_some(Self {
            names,
            rows: all,
            around,
        })
    }

    pub(super) fn show(&self, budget: usize) -> Option<String> {
        let all = CELLS.into_iter().find_map(|most| self.all(most, budget));
        all.or_else(|| self.summary(budget))
    }

    /// All records, with cells of at most `most` bytes or whole, if that has at most `budget` bytes.
    fn all(&self, most: Option<usize>, budget: usize) -> Option<String> {
        let (head, more) = match most {
            Some(_) => (self.head(MAX_AROUND, ""), MORE),
            None => (self.head(usize::MAX, " as a table, whole"), ""),
        };
        let form = RowForm {
            most: most.unwrap_or(usize::MAX),
            has_places: most.is_some() || self.around.numbers.ends_with(KEYED),
            columns: &(0..self.names.len()).collect::<Vec<_>>(),
        };
        let head = head + &self.header(form);
        let room = budget.checked_sub(head.len() + more.len())?;
        let lines = self.lines(0..self.rows.len(), form, room);
        let is_all = lines.len() == self.rows.len();
        is_all.then(|| head + &lines.into_values().collect::<String>() + more)
    }

    /// The values of the fields, and the most telling records.
    fn summary(&self, budget: usize) -> Option<String> {
        let room = budget.checked_sub(MORE.len())?;
        let mut shown = self.head(MAX_AROUND, "");
        if shown.len() > room {
            return None;
        }
        let fields: Vec<Field<'_>> = (0..self.names.len())
            .map(|column| self.field(column))
            .collect();
        for (name, field) in self.names.iter().zip(&fields) {
            let name = cut(cell_of_text(name), MAX_CELL);
            let line = format!(
                "{name}: {}\n",
                field.says(self.rows.len(), self.around.absent)
            );
            if shown.len() + line.len() <= room {
                shown.push_str(&line);
            }
        }
        // Values that all records share stand above.
        let varies = |column: &usize| !fields[*column].is_constant();
        let columns: Vec<usize> = (0..self.names.len()).filter(varies).collect();
        let form = RowForm {
            most: MAX_CELL,
            has_places: true,
            columns: &columns,
        };
        let header = self.header(form);
        let room = room.saturating_sub(shown.len() + header.len());
        let lines = self.lines(self.ranked(&fields), form, room);
        if !lines.is_empty() {
            shown.push_str(&header);
        }
        shown.extend(lines.into_values());
        Some(shown + MORE)
    }

    /// The lines of the first of these records that fit `room`.
    fn lines(
        &self,
        rows: impl IntoIterator<Item = usize>,
        form: RowForm<'_>,
        room: usize,
    ) -> BTreeMap<usize, String> {
        let mut bytes = 0;
        let lines = rows.into_iter().map(|at| (at, self.line(at, form)));
        lines
            .take_while(|(_, line)| {
                bytes += line.len();
                bytes <= room
            })
            .collect()
    }

    fn head(&self, most: usize, how: &str) -> String {
        let [before, after] =
            [&self.around.before, &self.around.after].map(|text| cut(text.as_str().into(), most));
        format!("{before}[{} records{how}]{after}\n", self.rows.len())
    }

    fn header(&self, form: RowForm<'_>) -> String {
        let names = form.columns.iter().map(|column| self.names[*column]);
        form.row(&self.around.numbers, names.map(cell_of_text))
    }

    fn line(&self, at: usize, form: RowForm<'_>) -> String {
        let row = &self.rows[at];
        let cells = form.columns.iter().map(|column| {
            let value = row.cell(*column);
            value.map_or_else(Cow::default, |value| cut(cell(value), form.most))
        });
        form.row(&row.place, cells)
    }

    fn field(&self, column: usize) -> Field<'j> {
        let mut field = Field::default();
        let mut places = HashMap::new();
        for (at, row) in self.rows.iter().enumerate() {
            match row.cell(column) {
                None => field.missing += 1,
                Some(value) if value.kind() == Kind::Null => field.nulls += 1,
                Some(value) => {
                    let next = field.counts.len();
                    let place = *places.entry(value.spelling()).or_insert(next);
                    if place == next {
                        field.counts.push((value, at, 0));
                    }
                    field.counts[place].2 += 1;
                }
            }
        }
        field
    }

    /// The records, the most telling first: the first one, those with a value that no other has, those at which a
    /// number or a date is at its extreme, a few that report failures, and the last one; then the others from both ends on.
    fn ranked(&self, fields: &[Field<'_>]) -> Vec<usize> {
        let all = self.rows.len();
        let mut ranked = vec![0];
        for field in fields {
            if field.is_counted(all) {
                let odd = field.counts.iter().filter(|(.., count)| *count == 1);
                ranked.extend(odd.map(|(_, at, _)| *at));
            } else if let Some(ends) = field.ends() {
                ranked.extend(ends.map(|(_, at)| at));
            }
        }
        let fails = |at: &usize| {
            let mut texts = self.rows[*at].cells.iter();
            texts.any(|(_, value)| value.as_str().is_some_and(is_failure))
        };
        let failing: Vec<usize> = (0..all).filter(fails).take(all / FAILING + 1).collect();
        if failing.len() * FAILING <= all {
            ranked.extend(failing);
        }
        ranked.push(all - 1);
        // Either end may have the row that was asked for.
        ranked.extend((0..all).flat_map(|at| [at, all - 1 - at]));
        let mut is_ranked = vec![false; all];
        ranked.retain(|at| !std::mem::replace(&mut is_ranked[*at], true));
        ranked
    }
}

impl<'j> Row<'j> {
    fn cell(&self, at: usize) -> Option<Node<'j>> {
        let cell = self.cells.iter().find(|(column, _)| *column == at);
        cell.map(|(_, value)| *value)
    }
}

impl Field<'_> {
    /// Returns true if all records have the same value, which is short.
    fn is_constant(&self) -> bool {
        match self.counts[..] {
            [] => self.missing == 0,
            [(value, ..)] => self.missing + self.nulls == 0 && cell(value).len() <= MAX_CELL,
            _ => false,
        }
    }

    /// Returns true if it has few different values.
    fn is_counted(&self, all: usize) -> bool {
        self.counts.len() <= MAX_COUNTED && 2 * self.counts.len() <= all
    }

    /// The least and the greatest of values that are all numbers or all dates, and the first rows that have them.
    fn ends(&self) -> Option<[(&str, usize); 2]> {
        let ordered = self.counts.iter().map(|(value, at, _)| {
            let spelling = value.spelling();
            match value.as_str() {
                Some(date) if is_date(date) => Some((0.0, date, *at)),
                _ => Some((spelling.parse::<f64>().ok()?, spelling, *at)),
            }
        });
        let mut ordered: Vec<_> = ordered.collect::<Option<_>>()?;
        ordered.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(other.1)));
        let ((_, least, first), (_, greatest, last)) = (ordered.first()?, ordered.last()?);
        let are_alike = self.are(Kind::String) || self.are(Kind::Number);
        are_alike.then_some([(*least, *first), (*greatest, *last)])
    }

    /// Returns true if all of its values are of this kind.
    fn are(&self, kind: Kind) -> bool {
        self.counts.iter().all(|(value, ..)| value.kind() == kind)
    }

    /// The first few of its values, and the number of different ones.
    fn examples(&self) -> String {
        let mut says = String::new();
        for (value, ..) in &self.counts {
            let value = cut(cell(*value), MAX_CELL);
            if says.len() + value.len() > MAX_EXAMPLES {
                break;
            }
            says = says + &value + ", ";
        }
        format!("{says}{CUT} {} different", self.counts.len())
    }

    /// Its values, in `all` records, those that lack it as `absent`.
    fn says(&self, all: usize, absent: &str) -> String {
        let mut says = if self.is_counted(all) {
            let mut counts: Vec<_> = self.counts.iter().collect();
            counts.sort_by_key(|(.., count)| Reverse(*count));
            let counts = counts.into_iter();
            let says =
                counts.map(|(value, _, count)| format!("{} {count}", cut(cell(*value), MAX_CELL)));
            says.collect()
        } else if let Some([(least, _), (greatest, _)]) = self.ends() {
            vec![format!("{least}{CUT}{greatest}")]
        } else if self.are(Kind::Array) {
            vec!["lists".to_owned()]
        } else if self.are(Kind::Object) {
            vec!["objects".to_owned()]
        } else {
            vec![self.examples()]
        };
        for (count, what) in [(self.nulls, "null"), (self.missing, absent)] {
            if count > 0 {
                says.push(format!("{what} {count}"));
            }
        }
        says.join(", ")
    }
}

/// Returns true for a text that begins with a date as ISO 8601 writes it.
fn is_date(text: &str) -> bool {
    let begins = text.as_bytes().first_chunk::<10>();
    begins.is_some_and(|begins| {
        begins.iter().enumerate().all(|(at, byte)| match at {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        })
    })
}

/// A value as it is written in a cell.
pub(super) fn cell(value: Node<'_>) -> Cow<'_, str> {
    match value.as_str() {
        // One with escapes keeps them.
        Some(text) if text.len() + 2 == value.spelling().len() => cell_of_text(text),
        Some(_) => value.spelling().into(),
        None => compact(value.spelling()),
    }
}

/// A text as it is written in a cell: quoted if it could be read as something else.
pub(super) fn cell_of_text(text: &str) -> Cow<'_, str> {
    let is_other = text.is_empty()
        || text.trim() != text
        || text.starts_with(['"', '{', '['])
        || text.contains(['|', '\n', '\r'])
        || ["null", "true", "false"].contains(&text)
        || text.parse::<f64>().is_ok();
    if is_other {
        serde_json::Value::from(text).to_string().into()
    } else {
        text.into()
    }
}

/// JSON, or a part of it that begins outside of strings, without blanks between its values.
pub(super) fn compact(json: &str) -> Cow<'_, str> {
    let is_blank = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r');
    if !json.contains(is_blank) {
        return json.into();
    }
    let (mut is_inside, mut is_escaped) = (false, false);
    let mut keep = |c: &char| {
        let keeps = is_inside || !is_blank(*c);
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = is_inside,
            '"' => is_inside = !is_inside,
            _ => {}
        }
        keeps
    };
    json.chars().filter(|c| keep(c)).collect::<String>().into()
}

/// A cell, or its first `most` bytes.
pub(super) fn cut(cell: Cow<'_, str>, most: usize) -> Cow<'_, str> {
    if cell.len() <= most.saturating_add(CUT.len()) {
        return cell;
    }
    format!("{}{CUT}", &cell[..cell.floor_char_boundary(most)]).into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{
        Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest,
    };
    use serde_json::{Map, Value, json};

    use crate::preview::shapes::show;
    use crate::preview::{Preview, Sketch, holds_only};

    fn flights() -> Vec<Value> {
        let flight = |n: usize| {
            json!({
                "id": format!("FL{}", 100 + n), "price": 89 + n * 7 % 50, "to": (["JFK", "LHR"][n % 2]), "late": n == 17,
                "seats": if n == 5 { Value::Null } else { n.into() }, "at": format!("2026-12-{:02}", 1 + n % 28),
            })
        };
        (0..40).map(flight).collect()
    }

    #[test]
    fn records_are_shown_as_a_table() {
        let text = json!({"total": 40, "page": {"flights": flights()}}).to_string();
        insta::assert_snapshot!(Preview::Mixed.show(&text, 700), @r#"
        {"total":40,"page":{"flights":[40 records]}}
        id: FL100, FL101, FL102, FL103, … 40 different
        price: 89…138
        to: JFK 20, LHR 20
        late: false 39, true 1
        seats: 0…39, null 1
        at: 2026-12-01…2026-12-28
        .page.flights[]|id|price|to|late|seats|at
        0|FL100|89|JFK|false|0|2026-12-01
        1|FL101|96|LHR|false|1|2026-12-02
        2|FL102|103|JFK|false|2|2026-12-03
        3|FL103|110|LHR|false|3|2026-12-04
        4|FL104|117|JFK|false|4|2026-12-05
        7|FL107|138|LHR|false|7|2026-12-08
        17|FL117|108|LHR|true|17|2026-12-18
        27|FL127|128|LHR|false|27|2026-12-28
        36|FL136|91|JFK|false|36|2026-12-09
        37|FL137|98|LHR|false|37|2026-12-10
        38|FL138|105|JFK|false|38|2026-12-11
        39|FL139|112|LHR|false|39|2026-12-12
        [… more …]
        "#);
        insta::assert_snapshot!(Preview::Mixed.show(&text, 150), @r#"
        {"total":40,"page":{"flights":[40 records]}}
        id: FL100, FL101, FL102, FL103, … 40 different
        price: 89…138
        to: JFK 20, LHR 20
        [… more …]
        "#);
        let few = format!("Found:\n{:#}", json!(flights()[..3]));
        insta::assert_snapshot!(Preview::Mixed.show(&few, 200), @"
        Found:
        [3 records as a table, whole]
        id|price|to|late|seats|at
        FL100|89|JFK|false|0|2026-12-01
        FL101|96|LHR|false|1|2026-12-02
        FL102|103|JFK|false|2|2026-12-03
        ");
        let lines: String = flights()
            .iter()
            .map(|flight| format!("{flight}\n"))
            .collect();
        insta::assert_snapshot!(Preview::Mixed.show(&lines, 450), @"
        [40 records]
        id: FL100, FL101, FL102, FL103, … 40 different
        price: 89…138
        to: JFK 20, LHR 20
        late: false 39, true 1
        seats: 0…39, null 1
        at: 2026-12-01…2026-12-28
        line|id|price|to|late|seats|at
        1|FL100|89|JFK|false|0|2026-12-01
        2|FL101|96|LHR|false|1|2026-12-02
        8|FL107|138|LHR|false|7|2026-12-08
        18|FL117|108|LHR|true|17|2026-12-18
        28|FL127|128|LHR|false|27|2026-12-28
        40|FL139|112|LHR|false|39|2026-12-12
        [… more …]
        ");
    }

    #[test]
    fn records_of_an_object_are_shown_with_their_keys() {
        let lock = |count: usize| {
            let of = |n: usize| {
                let package =
                    json!({"version": format!("1.{n}.0"), "dev": n < 2, "license": "MIT"});
                (format!("node_modules/part-{n}"), package)
            };
            let packages: Map<String, Value> = (0..count).map(of).collect();
            json!({"name": "shop", "packages": packages, "version": 3}).to_string()
        };
        insta::assert_snapshot!(Preview::Mixed.show(&lock(4), 270), @r#"
        {"name":"shop","packages":[4 records as a table, whole],"version":3}
        .packages[key]|version|dev|license
        node_modules/part-0|1.0.0|true|MIT
        node_modules/part-1|1.1.0|true|MIT
        node_modules/part-2|1.2.0|false|MIT
        node_modules/part-3|1.3.0|false|MIT
        "#);
        insta::assert_snapshot!(Preview::Mixed.show(&lock(60), 330), @r#"
        {"name":"shop","packages":[60 records],"version":3}
        version: 1.0.0, 1.1.0, 1.2.0, 1.3.0, … 60 different
        dev: false 58, true 2
        license: MIT 60
        .packages[key]|version|dev
        node_modules/part-0|1.0.0|true
        node_modules/part-1|1.1.0|true
        node_modules/part-58|1.58.0|false
        node_modules/part-59|1.59.0|false
        [… more …]
        "#);
    }

    #[test]
    fn long_cells_are_shown_as_far_as_there_is_room() {
        let pages: Vec<Value> = (0..4)
            .map(|n| json!({"url": format!("/{n}"), "text": "some words ".repeat(30)}))
            .collect();
        let text = json!(pages).to_string();
        insta::assert_snapshot!(Preview::Mixed.show(&text, 700), @r#"
        [4 records]
        .[]|url|text
        0|/0|"some words some words some words some words some words some words some words some words some words some words some word…
        1|/1|"some words some words some words some words some words some words some words some words some words some words some word…
        2|/2|"some words some words some words some words some words some words some words some words some words some words some word…
        3|/3|"some words some words some words some words some words some words some words some words some words some words some word…
        [… more …]
        "#);
        insta::assert_snapshot!(Preview::Mixed.show(&text, 400), @r#"
        [4 records]
        url: /0, /1, /2, /3, … 4 different
        text: "some words some words some words some words some words some… 4
        .[]|url|text
        0|/0|"some words some words some words some words some words some…
        1|/1|"some words some words some words some words some words some…
        3|/3|"some words some words some words some words some words some…
        [… more …]
        "#);
    }

    #[test]
    fn a_record_that_reports_a_failure_is_shown() {
        let says = |n: usize| match n {
            700 => "error: no refund".to_owned(),
            n => format!("paid {n}"),
        };
        let lines: String = (0..3_000)
            .map(|n| json!({"msg": says(n)}).to_string() + "\n")
            .collect();
        for mark in ["", "\u{feff}"] {
            let shown = show(&format!("{mark}{lines}"), 900).unwrap();
            assert!(shown.contains("\n701|error: no refund\n"), "{shown}");
        }
    }

    #[test]
    fn other_texts_are_no_records() {
        for text in [
            json!([1, 2, 3, 4]).to_string(),
            json!([{"a": 1}, {"a": 2}]).to_string(),
            json!([{"a": 1}, {"b": 2}, {"c": 3}, {"d": 4}]).to_string(),
            json!({"records": [{"a": 1}, {"a": 2}, {"a": 3}], "text": "long ".repeat(30)})
                .to_string(),
            json!(vec![json!({"text": "long ".repeat(200)}); 4]).to_string(),
            "{\"a\": 1}\n{\"a\": 2}\n{\"a\": 3}\nand more\n".to_owned(),
            "[{\"a\": 1, \"a\": 2}, {\"a\": 1}, {\"a\": 3}]".to_owned(),
            "[2026-01-01] started\n".repeat(9),
        ] {
            let shown = show(&text, text.len() / 2);
            assert!(!format!("{shown:?}").contains(" records"), "{text}");
        }
    }

    /// Reads a table back.
    fn read(table: &str) -> Option<Vec<Value>> {
        let mut lines = table.lines().skip(1);
        let names = cells(lines.next()?)?;
        let names: Vec<String> = names
            .into_iter()
            .map(|name| name?.as_str().map(str::to_owned))
            .collect::<Option<_>>()?;
        let rows = lines.map(|line| {
            let fields = names.iter().cloned().zip(cells(line)?);
            Some(
                fields
                    .filter_map(|(name, value)| Some((name, value?)))
                    .collect::<Map<_, _>>()
                    .into(),
            )
        });
        rows.collect()
    }

    fn cells(mut line: &str) -> Option<Vec<Option<Value>>> {
        let mut cells = Vec::new();
        loop {
            let rest = if line.starts_with(['"', '{', '[']) {
                let mut values = serde_json::Deserializer::from_str(line).into_iter::<Value>();
                cells.push(Some(values.next()?.ok()?));
                &line[values.byte_offset()..]
            } else {
                let (cell, rest) = line.split_at(line.find('|').unwrap_or(line.len()));
                let value = || serde_json::from_str(cell).unwrap_or_else(|_| cell.into());
                cells.push((!cell.is_empty()).then(value));
                rest
            };
            if rest.is_empty() {
                return Some(cells);
            }
            line = rest.strip_prefix('|')?;
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let text = prop_oneof![
            "[a-z|\"\\\\\n ,0-9.€-]{0,12}",
            Just("null".to_owned()),
            Just("1e5".to_owned()),
            Just("2026-11-27T10:00".to_owned()),
            Just("[… more …]".to_owned()),
        ];
        prop_oneof![
            4 => text.prop_map(Value::from),
            2 => any::<i32>().prop_map(Value::from),
            1 => any::<bool>().prop_map(Value::from),
            1 => Just(Value::Null),
            1 => Just(json!([])),
            1 => Just(json!({"a | b": ["\" |", 1]})),
        ]
    }

    fn records() -> impl Strategy<Value = Vec<Value>> {
        let fields = proptest::collection::vec(proptest::option::weighted(0.8, values()), 4);
        let record = fields.prop_map(|fields| {
            let named = ["id", "a|b", "1", "some name"].into_iter().zip(fields);
            let fields = named.filter_map(|(name, value)| Some((name.to_owned(), value?)));
            fields.collect::<Map<String, Value>>().into()
        });
        proptest::collection::vec(record, 3..30)
    }

    proptest! {
        #[test]
        fn a_whole_table_reads_back_into_the_same_records(records in records(), is_pretty in any::<bool>()) {
            let text = if is_pretty { format!("{:#}", json!(records)) } else { json!(records).to_string() };
            if let Some(table) = show(&text, 100_000) && table.contains(" records as a table") {
                prop_assert!(table.starts_with(&format!("[{} records as a table, whole]\n", records.len())), "{table}");
                prop_assert_eq!(read(&table), Some(records), "{}", table);
            }
        }

        #[test]
        fn budgets_are_kept_and_previews_known_again(
            records in records(), budget in 0usize..900, is_lines in any::<bool>(), cut in 0usize..1_000,
        ) {
            let lines = || records.iter().map(|record| format!("{record}\n")).collect();
            let text = if is_lines { lines() } else { json!({"found": records}).to_string() };
            let shown = Preview::Mixed.show(&text, budget);
            prop_assert!(shown.len() <= budget || shown == text);
            prop_assert!(holds_only(&shown, &text), "{shown}");
            let (first, rest) = text.split_at(text.floor_char_boundary(cut));
            let mut sketch = Sketch::new(Preview::Mixed, budget);
            sketch.push(first);
            sketch.push(rest);
            sketch.end();
            prop_assert_eq!(sketch.show(budget), shown);
            if let Some(shown) = show(&text, budget) {
                prop_assert_eq!(show(&text, shown.len()), Some(shown));
            }
        }
    }
}
