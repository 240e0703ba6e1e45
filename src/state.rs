//! S
mod key;
mod keyed;
mod keyed_list;
mod list;
mod messages;
mod reducer;
mod tool_messages;
mod value;
mod whole;

pub use key::{By, Field, ItemKey, Itself, KeyFailure, KeyOf, Scalar, TryBy, by, try_by};
pub use keyed::{NoKey, OnMatch, Twins, Unknown};
pub use keyed_list::KeyedList;
pub use list::{Append, BoundedAppend, ConcatFlatten};
pub use messages::{AddMessages, MessageUpdate, REMOVE_ALL};
pub use reducer::{Cause, Change, Reducer, ReducerError, Side};
pub use tool_messages::{BoundedMessages, RemoveToolMessages, remove_tool_messages};
pub use whole::{Custom, LastWriteWins, Mapping, Merge, MergeAll, custom};
