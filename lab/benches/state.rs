//! The cost of reducers over a million items, relative to two baselines: a plain `Vec` extend, and
//! one `HashMap` index over the list. Also the growth with the list: four times the items should
//! take about four times the time.
//!
//! ```text
//! cargo bench -p offcut-lab --bench state               # a million items, a few seconds
//! cargo bench -p offcut-lab --bench state -- --quick    # ten thousand
//! ```
//!
//! The last line is JSON.

#![allow(clippy::print_stdout, reason = "a program that talks to a person")]
#![allow(clippy::unwrap_used, reason = "a benchmark that fails is no benchmark")]

use std::collections::HashMap;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::time::Instant;

use offcut_state::{AddMessages, Append, BoundedAppend, Field, KeyedList, MessageUpdate, Reducer};
use serde_json::{Map, Value, json};

/// A list item: an id, and the list that the item came from.
type Item = (u64, u64);
/// An item with a message's kind of id.
type Note = (String, u64);

fn main() {
    // Without `--bench`, `cargo test --benches` runs it to see that it works.
    let is_quick = std::env::args().any(|arg| arg == "--quick")
        || !std::env::args().any(|arg| arg == "--bench");
    let items = if is_quick { 10_000 } else { 1_000_000 };
    let mut table = Table {
        runs: if is_quick { 3 } else { 7 },
        ratios: Map::new(),
    };
    println!(
        "{items} items; a ratio is ours / the baseline, the best of {} runs each\n",
        table.runs
    );

    // Updates with as many items as the list, half of them known, and with a thousandth of that,
    // for the cost of a small update.
    for (kind, update) in [("large", items), ("small", (items / 1_000).max(1))] {
        lists(&mut table, kind, items, update);
    }
    messages(&mut table, items / 10);
    growth(&mut table, items);

    println!(
        "\n{}",
        json!({"bench": "state", "items": items, "runs": table.runs, "ratios": table.ratios})
    );
}

/// Makes `n` items with ids starting at `from`, in scrambled order.
fn list(n: u64, from: u64, source: u64) -> Vec<Item> {
    // The factor is odd, so each id below the power of two comes once.
    let mask = n.next_power_of_two() - 1;
    (0..=mask)
        .map(|i| i.wrapping_mul(0x9E37_79B9) & mask)
        .filter(|id| *id < n)
        .map(|id| (from + id, source))
        .collect()
}

fn lists(table: &mut Table, kind: &str, items: u64, updates: u64) {
    let existing = list(items, 0, 0);
    let update = list(updates, items - updates / 2, 1);
    let input = || (existing.clone(), update.clone());
    let max = NonZeroUsize::new(existing.len()).unwrap();

    table.row(
        &format!("append {kind}"),
        "Vec::extend",
        input,
        |(list, update)| Append.reduce(list, update).unwrap(),
        |(mut list, update)| {
            list.extend(update);
            list
        },
    );
    table.row(
        &format!("bounded_append {kind}"),
        "Vec::extend and drain",
        input,
        |(list, update)| BoundedAppend::new(max).reduce(list, update).unwrap(),
        |(mut list, update)| {
            list.extend(update);
            list.drain(..list.len() - max.get());
            list
        },
    );
    table.row(
        &format!("dedupe_append {kind}"),
        "a HashMap index",
        input,
        |(list, update)| {
            KeyedList::dedupe_append(|(id, _): &Item| *id)
                .reduce(list, update)
                .unwrap()
        },
        |(mut list, update)| {
            let mut index: HashMap<u64, usize> = list
                .iter()
                .enumerate()
                .map(|(at, (id, _))| (*id, at))
                .collect();
            for item in update {
                index.entry(item.0).or_insert_with(|| {
                    list.push(item);
                    list.len() - 1
                });
            }
            list
        },
    );
    table.row(
        &format!("merge_by_key {kind}"),
        "a HashMap index",
        input,
        |(list, update)| {
            KeyedList::merge_by_key(|(id, _): &Item| *id)
                .reduce(list, update)
                .unwrap()
        },
        merge_with_index,
    );
}

fn merge_with_index((mut list, update): (Vec<Item>, Vec<Item>)) -> Vec<Item> {
    let mut index: HashMap<u64, usize> = list
        .iter()
        .enumerate()
        .map(|(at, (id, _))| (*id, at))
        .collect();
    for item in update {
        match index.get(&item.0) {
            Some(at) => list[*at] = item,
            None => {
                index.insert(item.0, list.len());
                list.push(item);
            }
        }
    }
    list
}

/// Measures messages with string ids, typed and as JSON, against the same index over strings.
fn messages(table: &mut Table, items: u64) {
    let text = |(id, n): &Item| (format!("message-{id}"), *n);
    let existing: Vec<_> = list(items, 0, 0).iter().map(text).collect();
    let update: Vec<_> = list(items, items / 2, 1).iter().map(text).collect();
    let with_index = |(mut list, update): (Vec<Note>, Vec<Note>)| {
        let mut index: HashMap<String, usize> = list
            .iter()
            .enumerate()
            .map(|(at, (id, _))| (id.clone(), at))
            .collect();
        for item in update {
            match index.get(&item.0) {
                Some(at) => list[*at] = item,
                None => {
                    index.insert(item.0.clone(), list.len());
                    list.push(item);
                }
            }
        }
        list
    };
    let add = AddMessages::langgraph(|(id, _): &Note| Some(id));
    table.row(
        "add_messages, a tenth",
        "a HashMap index",
        || (existing.clone(), update.clone()),
        |(list, update)| {
            add.reduce(list, update.into_iter().map(MessageUpdate::Put).collect())
                .unwrap()
        },
        with_index,
    );

    let record = |(id, n): &Note| json!({"id": id, "n": n});
    let existing: Value = existing.iter().map(record).collect();
    let update: Value = update.iter().map(record).collect();
    let merge = KeyedList::merge_by_key(Field::new("id"));
    let id = |record: &Value| record["id"].as_str().unwrap().to_owned();
    table.row(
        "merge_by_key of JSON, a tenth",
        "a HashMap index",
        || (existing.clone(), update.clone()),
        |(list, update)| merge.reduce(list, update).unwrap(),
        |(mut list, update)| {
            let (Value::Array(items), Value::Array(update)) = (&mut list, update) else {
                return list;
            };
            let mut index: HashMap<String, usize> = items
                .iter()
                .enumerate()
                .map(|(at, item)| (id(item), at))
                .collect();
            for item in update {
                match index.get(&id(&item)) {
                    Some(at) => items[*at] = item,
                    None => {
                        index.insert(id(&item), items.len());
                        items.push(item);
                    }
                }
            }
            list
        },
    );
}

/// Repeats the measurement with a quarter of the items. Linear work takes a quarter of the time, or
/// less if caches hold only the quarter; the row of the index shows how much caches matter.
fn growth(table: &mut Table, items: u64) {
    println!();
    let of = |n: u64| move || (list(n, 0, 0), list(n, n / 2, 1));
    let merge = |(list, update)| {
        KeyedList::merge_by_key(|(id, _): &Item| *id)
            .reduce(list, update)
            .unwrap()
    };
    let dedupe = |(list, update)| {
        KeyedList::dedupe_append(|(id, _): &Item| *id)
            .reduce(list, update)
            .unwrap()
    };
    let append = |(list, update)| Append.reduce(list, update).unwrap();
    let max = NonZeroUsize::new(usize::try_from(items).unwrap()).unwrap();
    let bounded = |(list, update)| BoundedAppend::new(max).reduce(list, update).unwrap();
    table.growth("append", of(items), of(items / 4), append);
    table.growth("bounded_append", of(items), of(items / 4), bounded);
    table.growth("dedupe_append", of(items), of(items / 4), dedupe);
    table.growth("merge_by_key", of(items), of(items / 4), merge);
    table.growth(
        "a HashMap index",
        of(items),
        of(items / 4),
        merge_with_index,
    );
}

struct Table {
    runs: usize,
    ratios: Map<String, Value>,
}

impl Table {
    /// Measures ours against a baseline with the same result, alternating, so that other work on
    /// the machine affects both.
    fn row<I, O: PartialEq>(
        &mut self,
        name: &str,
        against: &str,
        input: impl Fn() -> I,
        ours: impl Fn(I) -> O,
        baseline: impl Fn(I) -> O,
    ) {
        assert!(
            ours(input()) == baseline(input()),
            "{name}: not the same result"
        );
        let (mut best_ours, mut best_baseline) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..self.runs {
            best_ours = best_ours.min(time(&input, &ours));
            best_baseline = best_baseline.min(time(&input, &baseline));
        }
        let (ours, baseline) = (best_ours, best_baseline);
        println!(
            "{name:<30} {:>9.3} ms   {:>6.2} × {against}",
            ours * 1e3,
            ours / baseline
        );
        self.add(name, ours / baseline);
    }

    fn growth<I, O>(
        &mut self,
        name: &str,
        all: impl Fn() -> I,
        quarter: impl Fn() -> I,
        ours: impl Fn(I) -> O,
    ) {
        let best = |input: &dyn Fn() -> I| {
            (0..self.runs)
                .map(|_| time(input, &ours))
                .fold(f64::INFINITY, f64::min)
        };
        let (all, quarter) = (best(&all), best(&quarter));
        println!(
            "{name:<30} {:>6.2} × the time of a quarter of the items",
            all / quarter
        );
        self.add(&format!("{name} growth"), all / quarter);
    }

    fn add(&mut self, name: &str, ratio: f64) {
        self.ratios
            .insert(name.to_owned(), json!((ratio * 100.0).round() / 100.0));
    }
}

/// Returns the time in seconds, without making the input and dropping the output.
fn time<I, O>(input: impl Fn() -> I, work: impl Fn(I) -> O) -> f64 {
    let input = input();
    let begin = Instant::now();
    let output = black_box(work(black_box(input)));
    let took = begin.elapsed().as_secs_f64();
    drop(output);
    took.max(f64::EPSILON)
}
