//! The rows of the reducer table that need no messages.

use std::num::NonZeroUsize;

use offcut_state::{
    Append, BoundedAppend, ConcatFlatten, Field, KeyedList, LastWriteWins, Merge, MergeAll,
    Reducer, custom,
};
use serde_json::{Value, json};

use crate::{fails, reduce};

fn bounded(max_len: usize) -> BoundedAppend {
    BoundedAppend::new(NonZeroUsize::new(max_len).unwrap())
}

/// OpenArmature §2 "replace the existing value with the new value", Agentflow's
/// `replace_value(1, 2)` and `replace_messages`.
#[test]
fn last_write_wins_returns_the_update() {
    assert_eq!(LastWriteWins.reduce(1, 2).unwrap(), 2);
    assert_eq!(
        reduce(&LastWriteWins, json!(["msg1"]), json!(["msg2"])),
        json!(["msg2"])
    );
    assert_eq!(
        reduce(&LastWriteWins, json!({"a": 1}), json!(null)),
        json!(null)
    );
    assert!(!Reducer::<Value>::folds(&LastWriteWins) && Reducer::<Value>::folds(&Append));
}

/// OpenArmature §2: "Both existing and update values MUST be lists".
#[test]
fn append_takes_two_lists() {
    assert_eq!(Append.reduce(vec![1, 1], vec![1, 2]).unwrap(), [1, 1, 1, 2]);
    assert_eq!(
        reduce(&Append, json!([1]), json!([[1], null])),
        json!([1, [1], null])
    );
    assert_eq!(reduce(&Append, json!([1]), json!([])), json!([1]));
    assert_eq!(
        fails(&Append, json!([1]), json!("x")),
        "the update is a string, but must be a list"
    );
    assert_eq!(
        fails(&Append, json!({"a": 1}), json!([])),
        "the existing value is a map, but must be a list"
    );
    assert_eq!(
        fails(&Append, json!(null), json!([])),
        "the existing value is null, but must be a list"
    );
}

/// OpenArmature §2: "Keys in the update override keys in the existing value; keys present only in
/// existing are preserved."
#[test]
fn merge_is_shallow_and_the_updates_keys_win() {
    let merged = reduce(
        &Merge,
        json!({"a": {"x": 1}, "b": 1, "c": 1}),
        json!({"a": {"y": 2}, "b": null, "d": 2}),
    );
    assert_eq!(merged, json!({"a": {"y": 2}, "b": null, "c": 1, "d": 2}));
    assert_eq!(reduce(&Merge, json!({"a": 1}), json!({})), json!({"a": 1}));
    assert_eq!(
        fails(&Merge, json!({}), json!([])),
        "the update is a list, but must be a map"
    );
    assert_eq!(
        fails(&Merge, json!([]), json!({})),
        "the existing value is a list, but must be a map"
    );
}

#[test]
fn concat_flatten_flattens_one_level() {
    assert_eq!(
        ConcatFlatten
            .reduce(vec![1], vec![vec![2, 3], vec![], vec![4]])
            .unwrap(),
        [1, 2, 3, 4]
    );
    assert_eq!(
        reduce(&ConcatFlatten, json!([1]), json!([[2, [3]], [], [4]])),
        json!([1, 2, [3], 4])
    );
    assert_eq!(reduce(&ConcatFlatten, json!([1]), json!([])), json!([1]));
    let cause = fails(&ConcatFlatten, json!([1]), json!([[2], 3]));
    assert_eq!(
        cause,
        "item 1 of the update is an integer, but the items must be lists"
    );
}

#[test]
fn merge_all_folds_maps_and_the_last_wins() {
    let maps = json!([{"a": 2, "b": 2}, {}, {"b": null}]);
    assert_eq!(
        reduce(&MergeAll, json!({"a": 1, "c": 1}), maps),
        json!({"a": 2, "b": null, "c": 1})
    );
    assert_eq!(
        reduce(&MergeAll, json!({"a": 1}), json!([])),
        json!({"a": 1})
    );
    assert_eq!(
        fails(&MergeAll, json!({}), json!([{}, []])),
        "item 1 of the update is a list, but the items must be maps"
    );
    assert_eq!(
        fails(&MergeAll, json!({}), json!({})),
        "the update is a map, but must be a list of maps"
    );
}

/// OpenArmature's fixture 022: five items into `bounded_append(max_len=3)`.
#[test]
fn bounded_append_keeps_the_last_ones() {
    assert_eq!(
        bounded(3).reduce(vec![], vec![1, 2, 3, 4, 5]).unwrap(),
        [3, 4, 5]
    );
    assert_eq!(
        reduce(&bounded(3), json!([0]), json!([1, 2, 3, 4, 5])),
        json!([3, 4, 5])
    );
}

/// OpenArmature's fixture 023: two items at a time into `bounded_append(max_len=4)`. The bound is
/// inclusive.
#[test]
fn bounded_append_holds_over_several_updates() {
    let mut list = vec![];
    let mut lengths = vec![];
    for n in 0..4 {
        list = bounded(4).reduce(list, vec![2 * n, 2 * n + 1]).unwrap();
        lengths.push(list.len());
    }
    assert_eq!((list, lengths), (vec![4, 5, 6, 7], vec![2, 4, 4, 4]));
}

/// OpenArmature's fixture 024 and its edge cases: an update over the bound evicts everything else;
/// an empty one changes nothing.
#[test]
fn bounded_append_of_a_long_and_of_an_empty_update() {
    assert_eq!(
        bounded(2).reduce(vec!["old"], vec!["a", "b", "c"]).unwrap(),
        ["b", "c"]
    );
    assert_eq!(bounded(2).reduce(vec![1, 2, 3], vec![]).unwrap(), [1, 2, 3]);
    assert_eq!(
        reduce(&bounded(2), json!([1, 2, 3]), json!([])),
        json!([1, 2, 3])
    );
    assert_eq!(
        bounded(usize::MAX).reduce(vec![1], vec![2]).unwrap(),
        [1, 2]
    );
}

/// OpenArmature's fixture 031: a non-list update is a `reducer_error`.
#[test]
fn bounded_append_takes_lists() {
    assert_eq!(
        fails(&bounded(2), json!([1]), json!(2)),
        "the update is an integer, but must be a list"
    );
    assert_eq!(
        fails(&bounded(2), json!(true), json!([2])),
        "the existing value is a boolean, but must be a list"
    );
}

/// OpenArmature's fixture 025: strings with duplicates within the update, in order.
#[test]
fn dedupe_append_without_a_key() {
    let unique = KeyedList::dedupe_append(|item: &&'static str| *item);
    assert_eq!(
        unique
            .reduce(vec!["a", "b"], vec!["c", "a", "d", "c"])
            .unwrap(),
        ["a", "b", "c", "d"]
    );
    let unique = KeyedList::dedupe_append(Field::new(""));
    assert_eq!(
        reduce(&unique, json!(["a"]), json!(["b", "a", "b", 1, "1", null])),
        json!(["a", "b", 1, "1", null])
    );
    assert_eq!(
        reduce(&unique, json!(["a", "a"]), json!([])),
        json!(["a", "a"]),
        "an empty update"
    );
}

/// OpenArmature's fixture 026, and Agentflow's `append_items([item1], [item2, item1])`: by id, the
/// first wins.
#[test]
fn dedupe_append_with_a_key() {
    let unique = KeyedList::dedupe_append(Field::new("id"));
    let existing = json!([{"id": 1, "n": "old"}, {"id": 1, "n": "its own duplicate"}]);
    let update = json!([{"id": 2, "n": "first"}, {"id": 1, "n": "new"}, {"id": 2, "n": "second"}]);
    let expected = json!([{"id": 1, "n": "old"}, {"id": 1, "n": "its own duplicate"}, {"id": 2, "n": "first"}]);
    assert_eq!(reduce(&unique, existing, update), expected);

    let typed = KeyedList::dedupe_append(|(id, _): &(u8, char)| *id);
    assert_eq!(
        typed
            .reduce(vec![(1, 'a')], vec![(2, 'b'), (1, 'c'), (2, 'd')])
            .unwrap(),
        [(1, 'a'), (2, 'b')]
    );
}

/// OpenArmature's fixtures 027, 028 and 029: replaced in place, new ones at the end, in order.
#[test]
fn merge_by_key_replaces_in_place_and_appends_what_is_new() {
    let merge = KeyedList::merge_by_key(|(id, _): &(u8, char)| *id);
    let existing = || vec![(1, 'a'), (2, 'b'), (3, 'c')];
    assert_eq!(
        merge.reduce(existing(), vec![(3, 'z'), (1, 'x')]).unwrap(),
        [(1, 'x'), (2, 'b'), (3, 'z')]
    );
    let new = merge.reduce(existing(), vec![(9, 'i'), (8, 'h')]).unwrap();
    assert_eq!(new, [(1, 'a'), (2, 'b'), (3, 'c'), (9, 'i'), (8, 'h')]);
    let mixed = merge
        .reduce(existing(), vec![(9, 'i'), (2, 'y'), (8, 'h')])
        .unwrap();
    assert_eq!(mixed, [(1, 'a'), (2, 'y'), (3, 'c'), (9, 'i'), (8, 'h')]);
    assert_eq!(merge.reduce(existing(), vec![]).unwrap(), existing());
}

/// OpenArmature's edge cases: the last of duplicates in the list is the target and none is
/// collapsed; within the update the last wins, in the slot of the first.
#[test]
fn merge_by_key_with_duplicates() {
    let merge = KeyedList::merge_by_key(Field::new("id"));
    let item = |id: &str, n: u8| json!({"id": id, "n": n});
    let existing = json!([item("a", 1), item("a", 2), item("b", 3)]);
    let update = json!([
        item("a", 4),
        item("c", 5),
        item("d", 6),
        item("c", 7),
        item("a", 8)
    ]);
    let expected = json!([
        item("a", 1),
        item("a", 8),
        item("b", 3),
        item("c", 7),
        item("d", 6)
    ]);
    assert_eq!(reduce(&merge, existing, update), expected);
}

/// OpenArmature §2: "Users MAY register custom reducers per field." A failing one is a
/// `reducer_error`.
#[test]
fn a_closure_is_a_reducer() {
    let count = custom("count", |existing: &Value, update: Value| {
        match (existing.as_u64(), update.as_u64()) {
            (Some(so_far), Some(more)) => Ok(json!(so_far + more)),
            _ => Err("counts are integers"),
        }
    });
    assert_eq!(reduce(&count, json!(2), json!(3)), json!(5));
    assert_eq!(
        fails(&count, json!(2), json!("3")),
        "the reducer failed: counts are integers"
    );
}
