//! Reducers and declared state for agents. A reducer decides what a field keeps when an update is
//! merged into it.
//!
//! ```
//! use offcut_state::{BoundedAppend, KeyedList, Reducer};
//! # use std::num::NonZeroUsize;
//! # let fifty = NonZeroUsize::MIN.saturating_add(49);
//!
//! struct Hit {
//!     path: String,
//! }
//! # let (hits, more) = (vec![Hit { path: "a".into() }], vec![Hit { path: "a".into() }, Hit { path: "b".into() }]);
//! let unique = KeyedList::dedupe_append(|hit: &Hit| hit.path.clone());
//! let hits = unique.reduce(hits, more)?;
//! # assert_eq!(hits.len(), 2);
//! let errors = BoundedAppend::new(fifty).reduce(vec!["timed out"], vec!["timed out again"])?;
//! # assert_eq!(errors.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - **Typed:** each reducer of lists takes a `Vec<T>`, with closures as keys, and returns the new
//!   one.
//! - **Declared:** a [`Schema`], in Rust, YAML or JSON, lists the fields of a [`State`] and their
//!   reducers. The same reducers work on JSON there.
//! - **Your own:** [`custom`] turns a closure into a reducer; [`Reducers`] names it for
//!   declarations.
//! - **Condensed:** [`ReduceNode`] has a model condense several values into one and deletes the
//!   inputs.
//!
//! | reducer | known as | in short |
//! |---|---|---|
//! | [`LastWriteWins`] | `last_write_wins`, `replace_value`, `replace_messages`, `replace` | the update, unchanged |
//! | [`Append`] | `append` | list + list |
//! | [`ConcatFlatten`] | `concat_flatten` | list + the lists in the update |
//! | [`BoundedAppend`] | `bounded_append` | list + list, only the newest `max_len` items |
//! | [`KeyedList::dedupe_append`] | `dedupe_append`, `append_items` | items whose key is new; the first wins |
//! | [`KeyedList::merge_by_key`] | `merge_by_key` | known items replaced in place, new ones at the end |
//! | [`Merge`], [`MergeAll`] | `merge`, `merge_all` | maps, shallow; the last wins |
//! | [`AddMessages::langgraph`] | `add_messages` | messages by id, replaced in place; removals |
//! | [`AddMessages::agentflow`] | `add_messages` | messages by id, those in the list stay |
//! | [`RemoveToolMessages`] | `remove_tool_messages` | the messages without finished tool sequences |
//! | [`BoundedMessages`] | | a bound that keeps instructions and begins with a user's request |
//!
//! # Guarantees
//!
//! - Reducers are pure: they borrow the value and decide, and applying the decision can't fail.
//!   After an error the value, and a whole [`State`], is unchanged. Content that a reducer drops is
//!   gone: this is the one part of Offcut that loses content without a hint.
//! - Lists may hold a million items: `Append` costs only the update; keyed reducers read the list
//!   once for each update and index the update alone.
//!
//! `docs/state.md` in the repository tells users of Agentflow, LangGraph, Lár, OpenArmature and
//! sherma where to find what they know, and what differs.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod apply;
mod apply_error;
mod current;
mod declare;
mod json_messages;
mod key;
mod keyed;
mod keyed_list;
mod list;
mod messages;
mod reduce_node;
mod reducer;
mod schema;
mod schema_error;
mod tool_messages;
mod value;
mod whole;

pub use apply_error::ApplyError;
pub use current::State;
pub use declare::{Dialect, Reducers};
pub use key::{Field, ItemKey, KeyFailure, KeyOf};
pub use keyed::MissingKey;
pub use keyed_list::KeyedList;
pub use list::{Append, BoundedAppend, ConcatFlatten, ItemList};
pub use messages::{AddMessages, MessageUpdate, REMOVE_ALL};
pub use reduce_node::{OriginalsNote, ReduceNode, ReduceNodeBuilder, ReduceNodeError, Reduced};
pub use reducer::{Cause, Change, Reducer, ReducerError, Side};
pub use schema::{FieldType, Schema, StateField};
pub use schema_error::SchemaError;
pub use tool_messages::{BoundedMessages, RemoveToolMessages, remove_tool_messages};
pub use whole::{Custom, LastWriteWins, Merge, MergeAll, custom};

/// Compiles and runs the README's examples.
#[cfg(all(doctest, feature = "yaml"))]
#[doc = include_str!("../README.md")]
struct Readme;
