//! `add_messages` in both dialects, and removals (S2).

use offcut_state::{AddMessages, MessageUpdate, Reducer};
use serde_json::{Value, json};

use crate::{fails, reduce};

fn message(id: &str, text: &str) -> Value {
    json!({"id": id, "role": "user", "content": text})
}

fn remove(id: &str) -> Value {
    json!({"role": "remove", "id": id})
}

fn add() -> AddMessages<Value> {
    AddMessages::langgraph_json()
}

/// LangGraph: "deduplicates by ID" (sherma's plan). A known id is replaced in place, new ones are
/// appended.
#[test]
fn langgraph_replaces_by_id_in_place() {
    let existing = json!([message("1", "a"), message("2", "b")]);
    let update = json!([message("3", "c"), message("1", "z"), message("3", "d")]);
    assert_eq!(
        reduce(&add(), existing, update),
        json!([message("1", "z"), message("2", "b"), message("3", "d")])
    );
    assert_eq!(
        reduce(&add(), json!([message("1", "a")]), json!([])),
        json!([message("1", "a")])
    );
    assert_eq!(
        reduce(&add(), json!([]), message("1", "one")),
        json!([message("1", "one")]),
        "a single message is a list"
    );
}

/// LangGraph: `RemoveMessage` removes every message with the id.
#[test]
fn s2_removals_are_operations() {
    let existing = || {
        json!([
            message("1", "a"),
            message("2", "b"),
            message("1", "c"),
            message("3", "d")
        ])
    };
    assert_eq!(
        reduce(&add(), existing(), json!([remove("1")])),
        json!([message("2", "b"), message("3", "d")])
    );
    let as_serialised = json!([{"type": "remove", "id": "2", "content": ""}]);
    assert_eq!(
        reduce(&add(), json!([message("2", "b")]), as_serialised),
        json!([])
    );
    let twice = json!([remove("3"), remove("3")]);
    assert_eq!(reduce(&add(), json!([message("3", "d")]), twice), json!([]));
    let just_added = json!([message("9", "x"), remove("9"), message("8", "y")]);
    assert_eq!(
        reduce(&add(), json!([]), just_added),
        json!([message("8", "y")])
    );
}

/// LangGraph: "Attempting to delete a message with an ID that doesn't exist" fails, and no part of
/// the update has an effect.
#[test]
fn s2_an_unknown_removal_fails_and_has_no_effect() {
    let update = json!([message("1", "changed"), message("2", "new"), remove("7")]);
    let said = fails(&add(), json!([message("1", "a")]), update);
    assert_eq!(
        said,
        "item 2 of the update removes a message that does not exist"
    );
    assert_eq!(
        fails(
            &add(),
            json!([]),
            json!([remove("1"), message("1", "late")])
        ),
        said.replace("item 2", "item 0")
    );
    assert_eq!(
        fails(&add(), json!([]), json!([{"role": "remove"}])),
        "item 0 of the update has no key: give it one"
    );
    assert_eq!(
        fails(&add(), json!([]), json!([{"role": "remove", "id": null}])),
        "item 0 of the update has no key: give it one"
    );
}

/// LangGraph: a message removed and added again in one update takes its old place.
#[test]
fn s2_remove_then_add_again() {
    let existing = json!([message("1", "a"), message("2", "b")]);
    let update = json!([remove("1"), message("3", "c"), message("1", "again")]);
    assert_eq!(
        reduce(&add(), existing, update),
        json!([message("1", "again"), message("2", "b"), message("3", "c")])
    );
    let within = json!([
        message("9", "x"),
        message("8", "y"),
        remove("9"),
        message("9", "again")
    ]);
    assert_eq!(
        reduce(&add(), json!([]), within),
        json!([message("9", "again"), message("8", "y")])
    );
}

/// LangGraph: the last `RemoveAll` wins, and nothing before it has an effect. LangGraph lets later
/// removals into the list as messages; here they are operations there too.
#[test]
fn s2_remove_all_in_the_middle() {
    let all = || remove("__remove_all__");
    let existing = || json!([message("1", "a"), message("2", "b")]);
    let update = json!([
        message("3", "c"),
        all(),
        message("1", "new"),
        message("4", "d"),
        message("1", "newer")
    ]);
    assert_eq!(
        reduce(&add(), existing(), update),
        json!([message("1", "newer"), message("4", "d")])
    );
    assert_eq!(reduce(&add(), existing(), json!([all()])), json!([]));
    assert_eq!(
        reduce(
            &add(),
            existing(),
            json!([remove("7"), all(), message("5", "e")])
        ),
        json!([message("5", "e")])
    );
    assert_eq!(
        reduce(&add(), existing(), json!([all(), message("5", "e"), all()])),
        json!([])
    );
    let said = fails(&add(), existing(), json!([all(), remove("1")]));
    assert_eq!(
        said,
        "item 1 of the update removes a message that does not exist"
    );
}

/// LangGraph: "a missing id is assigned". Ours is derived from the content, so that the same update
/// gives the same state.
#[test]
fn langgraph_assigns_missing_ids() {
    let same = json!({"role": "user", "content": "hi"});
    let state = reduce(
        &add(),
        json!([]),
        json!([same, same, {"role": "user", "content": "hi", "id": null}]),
    );
    let ids: Vec<_> = state
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids[1], format!("{}-2", ids[0]));
    assert!(ids[0].starts_with("msg-") && ids[0].len() == 20 && ids[2] != ids[0]);
    let other_order = json!({"content": "hi", "role": "user"});
    for equal in [same.clone(), other_order] {
        assert_eq!(
            reduce(&add(), json!([]), json!([equal]))[0]["id"],
            ids[0].as_str(),
            "deterministic"
        );
    }

    // An existing message is not given a new id, and equal content never merges two messages into
    // one.
    let again = reduce(&add(), state.clone(), json!([same]));
    assert_eq!(
        again.as_array().unwrap()[..3],
        state.as_array().unwrap()[..]
    );
    assert_eq!(again[3]["id"], format!("{}-3", ids[0]));
    let bare = json!([{"role": "user", "content": "from before"}]);
    assert_eq!(
        reduce(&add(), bare.clone(), json!([message("1", "a")]))[0],
        bare[0],
        "what exists stays as it is"
    );
}

/// An explicit id may be the one that an earlier message would be given, for instance if the
/// program has seen it in an earlier state.
#[test]
fn s1_an_id_that_comes_later_in_the_update_is_taken() {
    let bare = json!({"role": "user", "content": "hi"});
    let given = reduce(&add(), json!([]), json!([bare]))[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let state = reduce(
        &add(),
        json!([]),
        json!([bare, message(&given, "explicit")]),
    );
    let second = json!({"role": "user", "content": "hi", "id": format!("{given}-2")});
    assert_eq!(state, json!([second, message(&given, "explicit")]));
    let said = fails(&add(), json!([]), json!([bare, remove(&given)]));
    assert_eq!(
        said, "item 1 of the update removes a message that does not exist",
        "no removal meets an assigned id"
    );
}

/// S7: ids are added only to formats that have them; other messages are identified by a key.
#[test]
fn s7_a_key_function_instead_of_ids() {
    let add = AddMessages::langgraph_json_by("tool_call_id");
    let result =
        |id: &str, text: &str| json!({"role": "tool", "tool_call_id": id, "content": text});
    let user = || json!({"role": "user", "content": "hi"});
    let state = reduce(
        &add,
        json!([user(), result("a", "1")]),
        json!([user(), result("a", "2"), user()]),
    );
    assert_eq!(state, json!([user(), result("a", "2"), user(), user()]));
}

/// LangGraph's and Agentflow's rules over a custom message type.
#[test]
fn custom_message_types_follow_the_same_rules() {
    #[derive(Clone, Debug, PartialEq)]
    struct Note {
        id: Option<String>,
        text: &'static str,
    }
    let note = |id: &str, text| Note {
        id: Some(id.into()),
        text,
    };
    let add = AddMessages::langgraph(|note: &Note| note.id.as_deref());
    let bare = Note {
        id: None,
        text: "c",
    };
    let update = vec![
        MessageUpdate::Put(note("1", "z")),
        MessageUpdate::remove("2".to_owned()),
        MessageUpdate::Put(bare.clone()),
        MessageUpdate::Put(bare.clone()),
    ];
    let state = add
        .reduce(vec![note("1", "a"), note("2", "b")], update)
        .unwrap();
    assert_eq!(state, [note("1", "z"), bare.clone(), bare]);
    let said = fails(
        &add,
        state,
        vec![
            MessageUpdate::RemoveAll,
            MessageUpdate::remove("1".to_owned()),
        ],
    );
    assert_eq!(
        said,
        "item 1 of the update removes a message that does not exist"
    );
}

/// Agentflow: `add_messages([msg1], [msg2, msg1])` is `[msg1, msg2]`. Its document promises unique
/// messages; its code keeps duplicates within the update.
#[test]
fn agentflow_keeps_existing_messages() {
    let add = AddMessages::agentflow_json();
    let message = |id: u8, text: &str| json!({"message_id": id, "role": "user", "content": text});
    let update = json!([message(2, "b"), message(1, "changed"), message(2, "twin")]);
    assert_eq!(
        reduce(&add, json!([message(1, "a")]), update),
        json!([message(1, "a"), message(2, "b")])
    );
    let without = json!({"role": "user", "content": "hi"});
    assert_eq!(
        reduce(&add, json!([without]), json!([without, without])),
        json!([without, without, without])
    );
    assert_eq!(
        fails(&add, json!([{"message_id": []}]), json!([message(1, "a")]))
            .split(':')
            .next()
            .unwrap(),
        "the key of item 0 of the existing value is a list"
    );
}

/// Agentflow: streaming deltas are not added.
#[test]
fn agentflow_does_not_add_deltas() {
    let add = AddMessages::agentflow_json();
    let delta = json!({"message_id": 1, "delta": true, "content": "Hel"});
    let whole = json!({"message_id": 1, "delta": false, "content": "Hello"});
    assert_eq!(
        reduce(&add, json!([]), json!([delta, whole])),
        json!([whole])
    );
    assert_eq!(reduce(&add, json!([whole]), json!([delta])), json!([whole]));
}

/// Agentflow has no removals; S2: none gets into the state as a message.
#[test]
fn s2_agentflow_refuses_removals() {
    let add = AddMessages::agentflow_json();
    let delta = json!({"message_id": 1, "delta": true});
    let said = fails(&add, json!([]), json!([delta, remove("1")]));
    assert_eq!(
        said,
        "item 1 of the update is a removal, which this reducer does not support: use LangGraph's `add_messages`"
    );
}

#[test]
fn messages_are_maps() {
    let wanted = "the items must be messages, which are maps";
    assert_eq!(
        fails(&add(), json!([]), json!(["hi"])),
        format!("item 0 of the update is a string, but {wanted}")
    );
    assert_eq!(
        fails(&add(), json!([]), json!("hi")),
        "the update is a string, but must be a list of messages"
    );
    assert_eq!(
        fails(&add(), json!({}), json!([])),
        "the existing value is a map, but must be a list"
    );
    assert!(
        fails(&add(), json!(["hi"]), json!([message("1", "a")]))
            .starts_with("the key function failed on item 0")
    );
}
