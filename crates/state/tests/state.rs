//! State, rule by rule (the reducer table, S1–S7, N1–N5). Each case names the document that it
//! comes from.
//!
//! "OpenArmature" is its proposal 0023, canonical state reducers; "Agentflow" its reference of
//! reducers; "sherma" its plan for declared state reducers; "LangGraph" the reducer that sherma
//! builds on; "Lár" its document on `ReduceNode`.

#![allow(clippy::unwrap_used)]

#[path = "state/bounded.rs"]
mod bounded;
#[path = "state/cases.rs"]
mod cases;
#[path = "../../../tests/common/mod.rs"]
mod common;
#[path = "state/compact.rs"]
mod compact;
#[path = "state/declared.rs"]
mod declared;
#[path = "state/keys.rs"]
mod keys;
#[path = "state/messages.rs"]
mod messages;
#[path = "state/properties.rs"]
mod properties;
#[path = "state/reduce_node.rs"]
mod reduce_node;
#[path = "state/table.rs"]
mod table;
#[path = "state/tool_messages.rs"]
mod tool_messages;

use std::error::Error;

use offcut_state::Reducer;
use serde_json::Value;

/// Reduces JSON with `reducer`.
fn reduce(reducer: &impl Reducer<Value, Update = Value>, existing: Value, update: Value) -> Value {
    reducer.reduce(existing, update).unwrap()
}

/// Returns the error's text with its source, after checking that the value came back unchanged.
#[allow(clippy::needless_pass_by_value, reason = "as reducers take it")]
fn fails<T: Clone + PartialEq + std::fmt::Debug, R: Reducer<T>>(
    reducer: &R,
    existing: T,
    update: R::Update,
) -> String {
    let error = reducer.reduce(existing.clone(), update).unwrap_err();
    assert_eq!(
        (error.value(), error.code(), error.reducer()),
        (&existing, "reducer_error", reducer.name())
    );
    let said = match error.cause().source() {
        Some(source) => format!("{}: {source}", error.cause()),
        None => error.cause().to_string(),
    };
    assert_eq!(error.into_value(), existing);
    said
}
