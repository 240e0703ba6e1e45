//! Declared state: an update applies to all of its fields or to none, and writing and reading a
//! state gives the same state.

use offcut_state::{Reducers, Schema, State};
use serde_json::{Value, json};

/// Takes a declaration in YAML or JSON, then updates in JSON, with lines of `---` between them.
pub(crate) fn schema(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let mut documents = text.split("\n---\n");
    let declared = documents.next().unwrap_or_default();
    let reducers = Reducers::new();
    let [from_json, from_yaml] = [
        Schema::from_json(declared, &reducers),
        Schema::from_yaml(declared, &reducers),
    ];
    for error in [&from_json, &from_yaml]
        .into_iter()
        .filter_map(|read| read.as_ref().err())
    {
        assert!(!error.to_string().is_empty());
    }
    // JSON is YAML too.
    if let (Ok(json), Ok(yaml)) = (&from_json, &from_yaml) {
        assert_eq!(format!("{json:?}"), format!("{yaml:?}"));
    }
    let Ok(schema) = from_json.or(from_yaml) else {
        return;
    };
    let mut state = schema.state();
    check_written(&schema, &state);
    for update in documents {
        let Ok(update) = serde_json::from_str::<Value>(update) else {
            continue;
        };
        apply(&mut state, &update);
        check_written(&schema, &state);
    }
}

fn written(state: &State) -> Value {
    serde_json::to_value(state).unwrap()
}

fn check_written(schema: &Schema, state: &State) {
    let values = written(state);
    let read = State::restore(schema, values.clone()).unwrap();
    assert_eq!(written(&read), values);
    assert!(schema.names().all(|name| read.get(name) == state.get(name)));
}

fn apply(state: &mut State, update: &Value) {
    let before = state.clone();
    let values = written(&before);
    match state.apply(update.clone()) {
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert_eq!(
                written(state),
                values,
                "an update that failed has changed something"
            );
        }
        Ok(()) => {
            assert_eq!(written(&before), values, "a snapshot has changed");
            // Fields that are not in an update stay.
            let named = update.as_object().unwrap();
            let others = before
                .schema()
                .names()
                .filter(|name| !named.contains_key(*name));
            assert!(
                others
                    .into_iter()
                    .all(|name| state.get(name) == before.get(name))
            );
            let mut again = before.clone();
            again.apply(update.clone()).unwrap();
            // LangGraph's missing ids are drawn again.
            let is_drawn = update.to_string().contains("role");
            assert!(
                is_drawn || written(&again) == written(state),
                "the same update gives another state"
            );
        }
    }
    let now = written(state);
    state.apply(json!({})).unwrap();
    assert_eq!(written(state), now, "an empty update has changed something");
}
