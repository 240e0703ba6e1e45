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
//! field has an empty cell. So a cell tells what it is.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

use crate::json::{Node, View};
use crate::preview::pattern::pattern;
use crate::preview::rows::{MORE, cell, cell_of_text, cut, fitting};
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
const CELLS: [usize; 4] = [usize::MAX, 480, 240, 120];
/// Records that report failures come first if they are at most one in so many.
const FAILING: usize = 20;
/// Maximum length in bytes of the first values of a field.
const MAX_EXAMPLES: usize = 30;
/// Maximum length in bytes of what stands before the records, and after them, where not all is shown.
const MAX_AROUND: usize = 240;

/// The beginning of a date as ISO 8601 writes it.
static DATE: LazyLock<Regex> = LazyLock::new(|| pattern("^[0-9]{4}-[0-9]{2}-[0-9]{2}"));

/// A list of objects, or the rows of a table.
pub(super) struct Records<'t> {
    names: Vec<String>,
    rows: Vec<Row<'t>>,
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

pub(super) struct Row<'t> {
    pub(super) place: String,
    /// The cells that are not empty, each with the place of its name. There is no room for all: most names may be those
    /// of other records.
    pub(super) cells: Box<[(usize, Cow<'t, str>)]>,
}

/// The values of one field.
#[derive(Default)]
struct Field<'r> {
    /// Different values, the first row that has each, and how many have it.
    counts: Vec<(&'r str, usize, usize)>,
    /// Number of records that lack it, and of those in which it is `null`.
    missing: usize,
    nulls: usize,
}

impl<'t> Records<'t> {
    /// Reads objects, each with its place, if they are a list of records and most of `bytes` bytes of JSON.
    pub(super) fn of_objects(
        objects: impl Iterator<Item = (Node<'t>, String)>,
        bytes: usize,
        around: AroundRecords,
    ) -> Option<Self> {
        let (mut names, mut columns) = (Vec::new(), HashMap::new());
        let (mut rows, mut inside) = (Vec::new(), 0);
        for (object, place) in objects {
            if !object.is_object() || !object.json.is_plain() || names.len() > MAX_FIELDS {
                return None;
            }
            inside += object.range().len() + place.len();
            let cells = object.fields().map(|(name, value)| {
                let column = *columns.entry(name).or_insert(names.len());
                if column == names.len() {
                    names.push(name.to_owned());
                }
                (column, cell(value))
            });
            let cells = cells.collect();
            rows.push(Row { place, cells });
        }
        let is_most = inside >= bytes - bytes / OUTSIDE;
        Self::of_rows(names, rows, around).filter(|_| is_most)
    }

    pub(super) fn of_rows(
        names: Vec<String>,
        rows: Vec<Row<'t>>,
        around: AroundRecords,
    ) -> Option<Self> {
        let cells = || rows.iter().flat_map(|row| &row.cells);
        // As much as `"name":"cell",` takes.
        let bytes = cells().map(|(column, cell)| names[*column].len() + cell.len() + 6);
        let is_table = rows.len() >= MIN_RECORDS
            && (1..=MAX_FIELDS).contains(&names.len())
            && bytes.sum::<usize>() / rows.len() <= MAX_RECORD
            && FILLED * cells().count() > rows.len() * names.len();
        is_table.then_some(Self {
            names,
            rows,
            around,
        })
    }

    pub(super) fn show(&self, budget: usize) -> Option<String> {
        let all = CELLS.into_iter().find_map(|most| self.all(most, budget));
        all.or_else(|| self.summary(budget))
    }

    /// All records, with cells of at most `most` bytes, if that has at most `budget` bytes.
    fn all(&self, most: usize, budget: usize) -> Option<String> {
        let (head, more) = match most {
            usize::MAX => (self.head(most, " as a table, whole"), ""),
            _ => (self.head(MAX_AROUND, ""), MORE),
        };
        let has_places = most < usize::MAX || self.around.numbers.ends_with(KEYED);
        let columns: Vec<usize> = (0..self.names.len()).collect();
        let room = budget.checked_sub(head.len() + more.len())?;
        let rows = self.table(0..self.rows.len(), &columns, most, has_places, room);
        (rows.len() == 1 + self.rows.len()).then(|| head + &rows.concat() + more)
    }

    /// The values of the fields, and the most telling records.
    fn summary(&self, budget: usize) -> Option<String> {
        let room = budget.checked_sub(MORE.len())?;
        let mut shown = self.head(MAX_AROUND, "");
        let mut left = room.checked_sub(shown.len())?;
        let fields: Vec<Field<'_>> = (0..self.names.len())
            .map(|column| self.field(column))
            .collect();
        for (name, field) in self.names.iter().zip(&fields) {
            let name = cut(cell_of_text(name), MAX_CELL);
            let says = field.says(self.rows.len(), self.around.absent);
            let line = format!("{name}: {says}\n");
            if line.len() <= left {
                left -= line.len();
                shown.push_str(&line);
            }
        }
        // Values that all records share stand above.
        let varies = |column: &usize| !fields[*column].is_constant();
        let columns: Vec<usize> = (0..self.names.len()).filter(varies).collect();
        let rows = self.table(self.ranked(&fields), &columns, MAX_CELL, true, left);
        if rows.len() > 1 {
            shown += &rows.concat();
        }
        Some(shown + MORE)
    }

    fn head(&self, most: usize, how: &str) -> String {
        let [before, after] =
            [&self.around.before, &self.around.after].map(|text| cut(text.as_str().into(), most));
        format!("{before}[{} records{how}]{after}\n", self.rows.len())
    }

    /// The names of these columns, and the first of these records that fit `room` with them.
    fn table(
        &self,
        records: impl IntoIterator<Item = usize>,
        columns: &[usize],
        most: usize,
        has_places: bool,
        room: usize,
    ) -> Vec<String> {
        let joined = |place: &str, cells: Vec<Cow<'_, str>>| {
            let place = if has_places {
                format!("{place}|")
            } else {
                String::new()
            };
            place + &cells.join("|") + "\n"
        };
        let names = columns
            .iter()
            .map(|column| cell_of_text(&self.names[*column]));
        let header = joined(&self.around.numbers, names.collect());
        let record = |at: usize, ()| {
            let row = &self.rows[at];
            let cells = columns
                .iter()
                .map(|column| row.cell(*column).unwrap_or_default());
            let cells = cells.map(|cell| cut(cell.into(), most));
            joined(&row.place, cells.collect())
        };
        let room = room.saturating_sub(header.len());
        let rows = fitting(records.into_iter().map(|at| (at, ())), room, record);
        std::iter::once(header).chain(rows.into_values()).collect()
    }

    fn field(&self, column: usize) -> Field<'_> {
        let mut field = Field::default();
        let mut places = HashMap::new();
        for (at, row) in self.rows.iter().enumerate() {
            match row.cell(column) {
                None => field.missing += 1,
                Some("null") => field.nulls += 1,
                Some(value) => {
                    let next = field.counts.len();
                    let place = *places.entry(value).or_insert(next);
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
            let mut cells = self.rows[*at].cells.iter();
            cells.any(|(_, cell)| is_failure(cell.trim_start_matches('"')))
        };
        let failing: Vec<usize> = (0..all).filter(fails).take(all / FAILING + 1).collect();
        if failing.len() * FAILING <= all {
            ranked.extend(failing);
        }
        ranked.push(all - 1);
        // Either end may have the row that was asked for.
        ranked.extend((0..all).flat_map(|at| [at, all - 1 - at]));
        ranked
    }
}

impl Row<'_> {
    fn cell(&self, at: usize) -> Option<&str> {
        let cell = self.cells.iter().find(|(column, _)| *column == at);
        cell.map(|(_, value)| &**value)
    }
}

impl<'r> Field<'r> {
    /// Returns true if all records have the same value, which is short.
    fn is_constant(&self) -> bool {
        match self.counts[..] {
            [] => self.missing == 0,
            [(value, ..)] => self.missing + self.nulls == 0 && value.len() <= MAX_CELL,
            _ => false,
        }
    }

    /// Returns true if it has few different values.
    fn is_counted(&self, all: usize) -> bool {
        self.counts.len() <= MAX_COUNTED && 2 * self.counts.len() <= all
    }

    /// The least and the greatest of values that are all numbers or all dates, and the first rows that have them.
    fn ends(&self) -> Option<[(&'r str, usize); 2]> {
        let are_dates = self.are(|value| DATE.is_match(value));
        let ordered = self.counts.iter().map(|(value, at, _)| {
            let number = if are_dates { 0.0 } else { value.parse().ok()? };
            Some((number, *value, *at))
        });
        let mut ordered: Vec<(f64, &str, usize)> = ordered.collect::<Option<_>>()?;
        ordered.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(other.1)));
        let ((_, least, first), (_, greatest, last)) = (ordered.first()?, ordered.last()?);
        Some([(least, *first), (greatest, *last)])
    }

    fn are(&self, is: impl Fn(&str) -> bool) -> bool {
        self.counts.iter().all(|(value, ..)| is(value))
    }

    /// Its values, in `all` records, those that lack it as `absent`.
    fn says(&self, all: usize, absent: &str) -> String {
        let short = |value: &'r str| cut(value.into(), MAX_CELL);
        let mut says = if self.is_counted(all) {
            let mut counts: Vec<_> = self.counts.iter().collect();
            counts.sort_by_key(|(.., count)| Reverse(*count));
            let counts = counts.into_iter();
            let says = counts.map(|(value, _, count)| format!("{} {count}", short(value)));
            says.collect()
        } else if let Some([(least, _), (greatest, _)]) = self.ends() {
            vec![format!("{least}{CUT}{greatest}")]
        } else if self.are(|value| value.starts_with('[')) {
            vec!["lists".to_owned()]
        } else if self.are(|value| value.starts_with('{')) {
            vec!["objects".to_owned()]
        } else {
            let mut room = MAX_EXAMPLES;
            let values = self.counts.iter().map(|(value, ..)| short(value) + ", ");
            let examples = values.take_while(|value| {
                let fits = value.len() <= room + ", ".len();
                room = room.saturating_sub(value.len());
                fits
            });
            let examples: String = examples.collect();
            vec![format!("{examples}{CUT} {} different", self.counts.len())]
        };
        for (count, what) in [(self.nulls, "null"), (self.missing, absent)] {
            if count > 0 {
                says.push(format!("{what} {count}"));
            }
        }
        says.join(", ")
    }
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
            let mut sketch = Sketch::new(Preview::Mixed);
            sketch.push(first);
            sketch.push(rest);
            prop_assert_eq!(sketch.show(budget, sketch.bytes()), shown);
            if let Some(shown) = show(&text, budget) {
                prop_assert_eq!(show(&text, shown.len()), Some(shown));
            }
        }
    }
}
