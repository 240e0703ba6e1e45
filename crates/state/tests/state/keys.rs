//! S1 and S3: the types of keys, and the settings of the one keyed list.

use std::hash::{Hash, Hasher};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use offcut_state::{Field, KeyFailure, KeyOf, KeyedList, MissingKey, Reducer};
use serde_json::{Value, json};

use crate::{fails, reduce};

/// S3: null, booleans, integers and strings, each its own kind.
#[test]
fn s3_keys_are_null_booleans_integers_and_strings() {
    let merge = KeyedList::merge_by_key(Field::new("id"));
    let item = |id: Value, n: u8| json!({"id": id, "n": n});
    let ids = || {
        [
            json!(null),
            json!(false),
            json!(0),
            json!(1),
            json!("1"),
            json!(""),
            json!(u64::MAX),
            json!(i64::MIN),
        ]
    };
    let list = |n: u8| Value::from_iter(ids().map(|id| item(id, n)));
    assert_eq!(reduce(&merge, list(1), list(2)), list(2));
    assert_eq!(
        reduce(&merge, list(1), json!([item(json!("0"), 2)]))
            .as_array()
            .unwrap()
            .len(),
        9
    );
}

/// S3, OpenArmature: "Non-hashable items with no key callable. Raises reducer_error at merge time."
#[test]
fn s3_other_keys_are_errors() {
    let unique = KeyedList::dedupe_append(Field::new(""));
    let says = |place: &str, found: &str| {
        format!(
            "the key of item {place} is {found}: use a field that holds null, a boolean, an integer or a string"
        )
    };
    assert_eq!(
        fails(&unique, json!([1]), json!([2, {}])),
        says("1 of the update", "a map")
    );
    assert_eq!(
        fails(&unique, json!([1]), json!([[]])),
        says("0 of the update", "a list")
    );
    assert_eq!(
        fails(&unique, json!([1]), json!([1.0])),
        says("0 of the update", "a number with a fraction or exponent")
    );
    assert_eq!(
        fails(&unique, json!([1, []]), json!([2])),
        says("1 of the existing value", "a list")
    );
    let merge = KeyedList::merge_by_key(Field::new("id"));
    assert_eq!(
        fails(&merge, json!([]), json!([{"id": 0.5}])),
        says("0 of the update", "a number with a fraction or exponent")
    );
}

/// S3, OpenArmature: "key callable raises on any item. The exception propagates as reducer_error."
/// Existing items too.
#[test]
fn s3_a_key_function_that_fails_is_an_error() {
    struct Even;
    impl KeyOf<u8> for Even {
        type Key<'a> = u8;

        fn key_of<'a>(&'a self, n: &'a u8) -> Result<Option<u8>, KeyFailure> {
            if n.is_multiple_of(2) {
                Ok(Some(*n))
            } else {
                Err(KeyFailure::Failed("odd".into()))
            }
        }
    }
    for keyed in [
        KeyedList::dedupe_append(Even),
        KeyedList::merge_by_key(Even),
    ] {
        assert_eq!(
            fails(&keyed, vec![2], vec![4, 5]),
            "the key function failed on item 1 of the update: odd"
        );
        assert_eq!(
            fails(&keyed, vec![2, 3], vec![4]),
            "the key function failed on item 1 of the existing value: odd"
        );
        assert_eq!(
            keyed.reduce(vec![1], vec![]).unwrap(),
            [1],
            "an empty update changes nothing and asks for no key"
        );
    }
    let merge = KeyedList::merge_by_key(Field::new("id"));
    let said = fails(&merge, json!([]), json!(["text"]));
    assert_eq!(
        said,
        "the key function failed on item 0 of the update: the item is a string, so it has no fields"
    );
}

/// S1: a missing key is an error by default, or new. Null is a key.
#[test]
fn s1_missing_and_null_keys() {
    let merge = KeyedList::merge_by_key(Field::new("id"));
    assert_eq!(
        fails(&merge, json!([]), json!([{"x": 1}])),
        "item 0 of the update has no key: give it one"
    );
    assert_eq!(
        fails(&merge, json!([{"x": 1}]), json!([{"id": 1}])),
        "item 0 of the existing value has no key: give it one"
    );
    assert_eq!(
        reduce(&merge, json!([{"id": null}]), json!([{"id": null, "n": 2}])),
        json!([{"id": null, "n": 2}])
    );

    for new in [
        merge.clone().missing_key(MissingKey::New),
        KeyedList::dedupe_append(Field::new("id")).missing_key(MissingKey::New),
    ] {
        let existing = json!([{"x": 1}, {"id": 1}]);
        let expected = json!([{"x": 1}, {"id": 1}, {"x": 1}, {"x": 1}]);
        assert_eq!(
            reduce(&new, existing, json!([{"x": 1}, {"x": 1}])),
            expected
        );
    }
}

/// S1: on a match keep or replace; duplicates within the update collapse.
#[test]
fn s1_both_rules_for_a_match() {
    let existing = || vec![(1, 'a'), (1, 'b')];
    let update = || vec![(1, 'c'), (2, 'd'), (1, 'e'), (2, 'f')];
    let key = |(id, _): &(u8, char)| *id;
    let kept = KeyedList::dedupe_append(key).reduce(existing(), update());
    assert_eq!(kept.unwrap(), [(1, 'a'), (1, 'b'), (2, 'd')]);
    let replaced = KeyedList::merge_by_key(key).reduce(existing(), update());
    assert_eq!(replaced.unwrap(), [(1, 'a'), (1, 'e'), (2, 'f')]);
}

/// Keys may be nested deep in a record.
#[test]
fn a_json_pointer_finds_a_key() {
    let merge = KeyedList::merge_by_key(Field::new("/meta/id"));
    let item = |n: u8| json!({"meta": {"id": 7}, "n": n});
    assert_eq!(
        reduce(&merge, json!([item(1)]), json!([item(2)])),
        json!([item(2)])
    );
    assert_eq!(
        fails(&merge, json!([]), json!([{"meta": {}}])),
        "item 0 of the update has no key: give it one"
    );
}

/// No quadratic step: each key is computed once, hashed once in the list and twice in the update, and compared with
/// about one other each time.
#[test]
fn cost_follows_the_list_and_the_update() {
    static COMPARED: AtomicUsize = AtomicUsize::new(0);
    static HASHED: AtomicUsize = AtomicUsize::new(0);

    struct Counted(u32);
    impl PartialEq for Counted {
        fn eq(&self, other: &Self) -> bool {
            COMPARED.fetch_add(1, Relaxed);
            self.0 == other.0
        }
    }
    impl Eq for Counted {}
    impl Hash for Counted {
        fn hash<H: Hasher>(&self, to: &mut H) {
            HASHED.fetch_add(1, Relaxed);
            self.0.hash(to);
        }
    }

    let asked = AtomicUsize::new(0);
    let key = |n: &u32| {
        asked.fetch_add(1, Relaxed);
        Counted(n % 3_000)
    };
    for keyed in [KeyedList::dedupe_append(key), KeyedList::merge_by_key(key)] {
        for count in [&asked, &COMPARED, &HASHED] {
            count.store(0, Relaxed);
        }
        let list: Vec<u32> = keyed
            .reduce((0..10_000).collect(), (2_000..7_000).collect())
            .unwrap();
        assert_eq!(list.len(), 10_000);
        assert_eq!(asked.load(Relaxed), 15_000);
        assert_eq!(HASHED.load(Relaxed), 20_000);
        // A match is one comparison; two keys whose hashes have a common prefix are one more.
        assert!(
            COMPARED.load(Relaxed) < 21_000,
            "{}",
            COMPARED.load(Relaxed)
        );
    }
}
