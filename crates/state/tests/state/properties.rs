//! Properties of every reducer, over generated lists: typed, dynamic and naive versions agree, and
//! the promises about order, splits and errors hold.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use offcut::format::OpenAiChat;
use offcut_state::{
    AddMessages, Append, BoundedAppend, BoundedMessages, ConcatFlatten, Field, KeyFailure, KeyOf,
    KeyedList, Merge, MergeAll, MessageUpdate, Reducer, RemoveToolMessages, remove_tool_messages,
};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::{prop_assert, prop_assert_eq, proptest};
use serde_json::{Value, json};

/// A key from a small range, so that keys collide, and a number that tells items apart.
type Item = (u8, u16);

fn items(max: usize) -> impl Strategy<Value = Vec<Item>> {
    vec((0..6_u8, any::<u16>()), 0..max)
}

fn record(&(id, n): &Item) -> Value {
    json!({"id": id.to_string(), "n": n})
}

fn records(items: &[Item]) -> Value {
    items.iter().map(record).collect()
}

/// The rules, applied item by item with a search of the whole list for each.
fn naive_keyed(list: &[Item], update: &[Item], replaces: bool) -> Vec<Item> {
    let mut out = list.to_vec();
    for item in update {
        match out.iter().rposition(|(key, _)| *key == item.0) {
            None => out.push(*item),
            Some(at) if replaces => out[at] = *item,
            Some(_) => {}
        }
    }
    out
}

/// LangGraph's semantics, message by message.
fn naive_messages(list: &[Item], update: &[MessageUpdate<Item>]) -> Option<Vec<Item>> {
    let after = update
        .iter()
        .rposition(|op| *op == MessageUpdate::RemoveAll);
    let mut out = if after.is_some() {
        Vec::new()
    } else {
        list.to_vec()
    };
    let mut removed = Vec::new();
    for op in &update[after.map_or(0, |at| at + 1)..] {
        let key = match op {
            MessageUpdate::Put((key, _)) => key.to_string(),
            MessageUpdate::Remove(id) => match id {
                offcut_state::ItemKey::Str(id) => id.to_string(),
                _ => return None,
            },
            MessageUpdate::RemoveAll => return None,
        };
        let at = out.iter().rposition(|(id, _)| id.to_string() == key);
        match (op, at) {
            (MessageUpdate::Put(item), at) => {
                removed.retain(|gone| *gone != key);
                match at {
                    Some(at) => out[at] = *item,
                    None => out.push(*item),
                }
            }
            (_, Some(_)) => removed.push(key),
            (_, None) => return None,
        }
    }
    out.retain(|(id, _)| !removed.contains(&id.to_string()));
    Some(out)
}

fn operations() -> impl Strategy<Value = Vec<MessageUpdate<Item>>> {
    let put = (0..6_u8, any::<u16>()).prop_map(MessageUpdate::Put);
    let remove = (0..6_u8).prop_map(|id| MessageUpdate::remove(id.to_string()));
    vec(
        prop_oneof![6 => put, 3 => remove, 1 => Just(MessageUpdate::RemoveAll)],
        0..10,
    )
}

fn operation_json(op: &MessageUpdate<Item>) -> Value {
    match op {
        MessageUpdate::Put(item) => record(item),
        MessageUpdate::Remove(offcut_state::ItemKey::Str(id)) => {
            json!({"role": "remove", "id": id})
        }
        _ => json!({"role": "remove", "id": "__remove_all__"}),
    }
}

/// A typed key of items. JSON's ids are strings, so the id must be borrowed.
const IDS: [&str; 6] = ["0", "1", "2", "3", "4", "5"];

fn typed_add() -> AddMessages<Item> {
    AddMessages::langgraph(|(id, _): &Item| IDS.get(usize::from(*id)).copied())
}

/// A word of a conversation: see `tool_messages.rs`. Calls are numbered in order.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Word {
    User,
    Answer,
    /// Number of calls.
    Calls(usize),
    /// Number of the call that it answers.
    Result(usize),
}

fn conversations() -> impl Strategy<Value = Vec<Word>> {
    let word = prop_oneof![
        2 => Just(Word::User), 4 => Just(Word::Answer), 5 => (1..3_usize).prop_map(Word::Calls),
        8 => (0..8_usize).prop_map(Word::Result),
    ];
    vec(word, 0..24)
}

/// Mostly results that answer a call: `Result(n)` answers the n-th call counted back from the last.
fn messages(words: &[Word]) -> (Vec<Value>, Vec<Shape>) {
    let mut calls = 0;
    words
        .iter()
        .enumerate()
        .map(|(n, word)| match word {
            Word::User => (json!({"role": "user", "content": n}), Shape::Other),
            Word::Answer => (json!({"role": "assistant", "content": n}), Shape::Answer),
            Word::Calls(count) => {
                let ids: Vec<_> = (calls..calls + count).collect();
                calls += count;
                let json: Vec<_> = ids
                    .iter()
                    .map(|id| json!({"id": id.to_string(), "function": {"name": "f"}}))
                    .collect();
                (
                    json!({"role": "assistant", "tool_calls": json}),
                    Shape::Calls(ids),
                )
            }
            Word::Result(back) => {
                let id = calls.checked_sub(back + 1).unwrap_or(1_000 + n);
                (
                    json!({"role": "tool", "tool_call_id": id.to_string(), "content": n}),
                    Shape::Result(id),
                )
            }
        })
        .unzip()
}

#[derive(Clone, Debug, PartialEq)]
enum Shape {
    Other,
    Answer,
    Calls(Vec<usize>),
    Result(usize),
}

/// Returns whether the messages are consecutive rounds, each with a result.
fn are_rounds(shapes: &[Shape]) -> bool {
    let mut open: Vec<usize> = Vec::new();
    let mut has_result = true;
    for (at, shape) in shapes.iter().enumerate() {
        match shape {
            Shape::Calls(ids) => {
                if !matches!(
                    at.checked_sub(1).map(|before| &shapes[before]),
                    Some(Shape::Calls(_))
                ) {
                    if !has_result {
                        return false;
                    }
                    open.clear();
                }
                open.extend(ids);
                has_result = false;
            }
            Shape::Result(id) => match open.iter().position(|open| open == id) {
                Some(found) => {
                    open.remove(found);
                    has_result = true;
                }
                None => return false,
            },
            Shape::Other | Shape::Answer => return false,
        }
    }
    has_result && matches!(shapes.first(), Some(Shape::Calls(_)))
}

/// Finds the finished sequences by trying every stretch before every answer, the longest first.
fn naive_finished(shapes: &[Shape]) -> Vec<usize> {
    let answers = (0..shapes.len()).filter(|at| shapes[*at] == Shape::Answer);
    answers
        .flat_map(|end| {
            (0..end)
                .find(|start| are_rounds(&shapes[*start..end]))
                .unwrap_or(end)..end
        })
        .collect()
}

/// The key of one item can't be found.
struct Fussy {
    poison: Option<u16>,
}

impl KeyOf<Item> for Fussy {
    type Key<'a> = u8;

    fn key_of<'a>(&'a self, (id, n): &'a Item) -> Result<Option<u8>, KeyFailure> {
        if Some(*n) == self.poison {
            Err(KeyFailure::Failed("poison".into()))
        } else {
            Ok(Some(*id))
        }
    }
}

proptest! {
    #![proptest_config(proptest::test_runner::Config { cases: 512, failure_persistence: None, ..Default::default() })]

    #[test]
    fn typed_and_dynamic_keyed_lists_agree(list in items(12), update in items(12), replaces in any::<bool>()) {
        let expected = naive_keyed(&list, &update, replaces);
        let by_closure = |(id, _): &Item| *id;
        let typed = if replaces { KeyedList::merge_by_key(by_closure) } else { KeyedList::dedupe_append(by_closure) };
        prop_assert_eq!(&typed.reduce(list.clone(), update.clone()).unwrap(), &expected);
        let field = Field::new("id");
        let dynamic = if replaces { KeyedList::merge_by_key(field) } else { KeyedList::dedupe_append(field) };
        prop_assert_eq!(dynamic.reduce(records(&list), records(&update)).unwrap(), records(&expected));
    }

    #[test]
    fn typed_and_dynamic_add_messages_agree(list in items(10), update in operations()) {
        let expected = naive_messages(&list, &update);
        let typed = typed_add().reduce(list.clone(), update.clone());
        let as_json: Value = update.iter().map(operation_json).collect();
        let dynamic = AddMessages::langgraph_json().reduce(records(&list), as_json);
        match expected {
            Some(expected) => {
                prop_assert_eq!(&typed.unwrap(), &expected);
                prop_assert_eq!(dynamic.unwrap(), records(&expected));
            }
            None => {
                prop_assert_eq!(typed.unwrap_err().into_value(), list.clone());
                prop_assert_eq!(dynamic.unwrap_err().into_value(), records(&list));
            }
        }
    }

    /// A message that an update names, before or after a message without an id, stays, with an id
    /// of its own. All have the same content, so the ids to assign are those that they have.
    #[test]
    fn s1_an_assigned_id_is_one_that_nothing_names(
        list in vec(proptest::option::of(0..4_usize), 0..4),
        update in vec((proptest::option::of(0..4_usize), 0..5_u8), 0..8),
    ) {
        let add = AddMessages::langgraph_json();
        let bare = json!({"role": "user"});
        let base = add.reduce(json!([]), json!([bare])).unwrap()[0]["id"].as_str().unwrap().to_owned();
        let near = ["", "-2", "-3", "x"].map(|end| format!("{base}{end}"));
        let message = |id: &Option<usize>| id.map_or(bare.clone(), |at| json!({"role": "user", "id": near[at]}));
        let list: Vec<Value> = list.iter().map(message).collect();
        let update: Vec<Value> = update.iter().map(|(id, kind)| match (id, kind) {
            (Some(at), 0) => json!({"role": "remove", "id": near[*at]}),
            _ => message(id),
        }).collect();
        // It may remove what is not there.
        let Ok(out) = add.reduce(json!(list), json!(update)) else { return Ok(()) };

        let named: Vec<&Value> = list.iter().chain(&update).filter_map(|message| message.get("id")).collect();
        let ids = out.as_array().unwrap().iter().filter_map(|message| message["id"].as_str());
        let assigned: Vec<_> = ids.filter(|id| !named.iter().any(|named| *named == id)).collect();
        let without = update.iter().filter(|message| message.get("id").is_none()).count();
        prop_assert_eq!(assigned.len(), without, "each has an id that nothing names: {}", out);
        let each: std::collections::HashSet<_> = assigned.iter().collect();
        prop_assert_eq!(each.len(), assigned.len(), "each its own");
        prop_assert_eq!(&add.reduce(json!(list), json!(update)).unwrap(), &out, "the same update, the same ids");
    }

    #[test]
    fn agentflow_add_equals_dedupe_append(list in items(10), update in items(10)) {
        let add = AddMessages::agentflow(|(id, _): &Item| IDS.get(usize::from(*id)).copied());
        let puts = update.iter().copied().map(MessageUpdate::Put).collect();
        let expected = naive_keyed(&list, &update, false);
        prop_assert_eq!(add.reduce(list, puts).unwrap(), expected);
    }

    /// The promise: one update or several with the same items give the same list.
    #[test]
    fn splitting_an_update_does_not_matter(list in items(8), update in items(12), at in 0..12_usize, max in 1..8_usize) {
        let max = NonZeroUsize::new(max).unwrap();
        let (first, second) = update.split_at(at.min(update.len()));
        let bare = |items: &[Item]| items.iter().map(|(id, _)| json!({"role": "user", "content": id})).collect::<Value>();
        let reducers: [Box<dyn Reducer<Value, Update = Value>>; 9] = [
            Box::new(Append), Box::new(BoundedAppend::new(max)), Box::new(KeyedList::dedupe_append(Field::new("id"))),
            Box::new(KeyedList::merge_by_key(Field::new("id"))), Box::new(AddMessages::langgraph_json()),
            Box::new(AddMessages::langgraph_json_by("id")), Box::new(AddMessages::agentflow_json_by("id")),
            Box::new(BoundedMessages::new(OpenAiChat, max)), Box::new(RemoveToolMessages::new(OpenAiChat)),
        ];
        for reducer in &reducers {
            for of in [records, bare] {
                // Without an id the keyed lists fail, either way.
                let whole = reducer.reduce(of(&list), of(&update));
                let halves = reducer.reduce(of(&list), of(first)).and_then(|half| reducer.reduce(half, of(second)));
                prop_assert_eq!(whole.is_ok(), halves.is_ok(), "{}", reducer.name());
                if let (Ok(whole), Ok(halves)) = (whole, halves) {
                    prop_assert_eq!(whole, halves, "{}", reducer.name());
                }
            }
        }
        let nested = |items: &[Item]| items.chunks(2).map(records).collect::<Value>();
        let (first, second) = update.split_at(first.len() / 2 * 2);
        let halves = ConcatFlatten.reduce(records(&list), nested(first)).unwrap();
        let halves = ConcatFlatten.reduce(halves, nested(second)).unwrap();
        prop_assert_eq!(ConcatFlatten.reduce(records(&list), nested(&update)).unwrap(), halves);
    }

    #[test]
    fn merging_maps_one_by_one_or_together_is_the_same(map in items(8), updates in vec(items(6), 0..4)) {
        let map_of = |items: &[Item]| json!(items.iter().map(|(id, n)| (id.to_string(), json!(n))).collect::<BTreeMap<_, _>>());
        let mut expected = map_of(&map);
        for (id, n) in updates.iter().flatten() {
            expected[id.to_string()] = json!(n);
        }
        let all = updates.iter().map(|update| map_of(update)).collect();
        prop_assert_eq!(&MergeAll.reduce(map_of(&map), all).unwrap(), &expected);
        let one = |map, update: &Vec<Item>| Merge.reduce(map, map_of(update)).unwrap();
        prop_assert_eq!(updates.iter().fold(map_of(&map), one), expected);
    }

    /// Existing items keep their order, before the new ones. After an error the list is unchanged.
    #[test]
    fn order_is_kept_and_errors_change_nothing(list in items(12), update in items(12), bad in 0..14_usize, keep in any::<bool>()) {
        let key = |(id, _): &Item| *id;
        let keyed = if keep { KeyedList::dedupe_append(key) } else { KeyedList::merge_by_key(key) };
        let out = keyed.reduce(list.clone(), update.clone()).unwrap();
        let ids = |items: &[Item]| items.iter().map(|(id, _)| *id).collect::<Vec<_>>();
        prop_assert_eq!(&ids(&out)[..list.len()], &ids(&list)[..]);
        let new: Vec<_> = update.iter().filter(|(id, _)| !ids(&list).contains(id)).map(|(id, _)| *id).collect();
        let mut first = new.clone();
        first.retain({ let mut seen = Vec::new(); move |id| !seen.contains(id) && { seen.push(*id); true } });
        prop_assert_eq!(&ids(&out)[list.len()..], &first[..]);

        // The key of one item can't be computed.
        let all: Vec<_> = list.iter().chain(&update).map(|(_, n)| *n).collect();
        let poison = all.get(bad).copied();
        let fussy = KeyedList::merge_by_key(Fussy { poison });
        match fussy.reduce(list.clone(), update.clone()) {
            Ok(_) => prop_assert!(poison.is_none() || update.is_empty()),
            Err(error) => {
                prop_assert!(poison.is_some());
                prop_assert_eq!(error.into_value(), list);
            }
        }
    }

    #[test]
    fn finished_sequences_are_found_as_by_trying_all(words in conversations(), at in 0..24_usize) {
        let (all, shapes) = messages(&words);
        let gone = naive_finished(&shapes);
        let expected: Vec<_> = (0..all.len()).filter(|at| !gone.contains(at)).map(|at| all[at].clone()).collect();
        let mut left = all.clone();
        prop_assert_eq!(remove_tool_messages(&OpenAiChat, &mut left), gone.len());
        prop_assert_eq!(&left, &expected);
        let (list, update) = all.split_at(at.min(all.len()));
        if !update.is_empty() {
            let reducer = RemoveToolMessages::new(OpenAiChat);
            prop_assert_eq!(reducer.reduce(list.to_vec(), update.to_vec()).unwrap(), expected);
        }
    }

    #[test]
    fn bounded_messages_are_a_conversation(words in conversations(), system in 0..3_usize, at in 0..24_usize, max in 1..10_usize) {
        let (rest, shapes) = messages(&words);
        let instruction = json!({"role": "system", "content": "Never delete files."});
        let all: Vec<_> = vec![instruction; system].into_iter().chain(rest.iter().cloned()).collect();
        let (list, update) = all.split_at(at.min(all.len()));
        let reducer = BoundedMessages::new(OpenAiChat, NonZeroUsize::new(max).unwrap());
        let left = reducer.reduce(list.to_vec(), update.to_vec()).unwrap();
        if update.is_empty() || all.len() <= max {
            prop_assert_eq!(left, all);
            return Ok(());
        }
        // A result answers its call once, so a second one, or one before its call, is not part of a
        // pair.
        let mut answered = Vec::new();
        let mut pairs = Vec::new();
        for (result, shape) in shapes.iter().enumerate() {
            if let Shape::Result(id) = shape {
                let call = shapes[..result].iter().position(|shape| matches!(shape, Shape::Calls(ids) if ids.contains(id)));
                if let Some(call) = call && !answered.contains(id) {
                    answered.push(*id);
                    pairs.push((call, result));
                }
            }
        }
        // All windows: the instructions, perhaps the last user's message before, and an end that
        // begins with a user or, after one, with a turn.
        let is_user = |at: usize| shapes[at] == Shape::Other;
        let windows: Vec<Vec<Value>> = (0..rest.len()).filter_map(|from| {
            if pairs.iter().any(|(call, result)| *call < from && from <= *result) {
                return None;
            }
            let request = (0..from).rev().find(|at| is_user(*at));
            let begins_turn = !matches!(shapes[from], Shape::Result(_)) && from > 0
                && matches!(shapes[from - 1], Shape::Result(_) | Shape::Other);
            let front = match request {
                _ if is_user(from) => None,
                Some(request) if begins_turn => Some(rest[request].clone()),
                None if !(0..rest.len()).any(is_user) && !matches!(shapes[from], Shape::Result(_)) => None,
                _ => return None,
            };
            Some(all[..system].iter().cloned().chain(front).chain(rest[from..].iter().cloned()).collect())
        }).collect();
        let longest = windows.iter().find(|window| window.len() <= max).or(windows.last());
        prop_assert_eq!(&left, longest.unwrap_or(&all));
    }
}
