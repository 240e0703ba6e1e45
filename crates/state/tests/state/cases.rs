//! The cases that Python and TypeScript run too.

use offcut_state::{Reducers, Schema, State};
use serde_json::Value;

#[test]
fn the_cases_of_all_languages_hold() {
    let cases: Value = serde_json::from_str(include_str!("cases.json")).unwrap();
    for case in cases.as_array().unwrap() {
        let run = || -> Result<Value, &'static str> {
            let schema = Schema::from_json(&case["schema"].to_string(), &Reducers::new())
                .map_err(|error| error.code())?;
            let mut state = match case.get("state") {
                None => schema.state(),
                Some(state) => {
                    State::restore(&schema, state.clone()).map_err(|error| error.code())?
                }
            };
            for update in case["updates"].as_array().unwrap() {
                state.apply(update.clone()).map_err(|error| error.code())?;
            }
            Ok(serde_json::to_value(&state).unwrap())
        };
        match run() {
            Ok(after) => assert_eq!(Some(&after), case.get("after"), "{case}"),
            Err(code) => assert_eq!(Some(code), case["error"].as_str(), "{case}"),
        }
    }
}
