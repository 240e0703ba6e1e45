//! The systems whose words declarations use.

use serde::Deserialize;

/// The system whose words a declaration uses. Some words mean different things in different
/// systems, so every declaration names one. All other words are those of every dialect.
///
/// | word | `openarmature` | `sherma` | `agentflow` |
/// |---|---|---|---|
/// | `append` | list + list | LangGraph's `add_messages` | list + list |
/// | `add_messages` | LangGraph's | LangGraph's | Agentflow's |
/// | without a reducer | `last_write_wins` | a list named `messages`: `append`; else `replace` | `replace_value` |
/// | a reducer on a field that is not a list | an error, if it needs one | ignored, with a warning in the log | as OpenArmature |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Dialect {
    /// OpenArmature's reducers; also for those of LangGraph.
    OpenArmature,
    /// sherma's reducers.
    Sherma,
    /// Agentflow's reducers.
    Agentflow,
}
