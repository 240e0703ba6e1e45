//! The systems whose words declarations use.

use serde::Deserialize;

/// The system whose words a declaration uses. Some words mean different things in different
/// systems, so every declaration names one.
///
/// | word | `openarmature` | `sherma` | `agentflow` |
/// |---|---|---|---|
/// | `append` | list + list | LangGraph's `add_messages` | no word |
/// | `add_messages` | LangGraph's | no word | Agentflow's |
/// | without a reducer | `last_write_wins` | a list named `messages`: `append`; else `replace` | `replace_value` |
/// | a reducer on a field that is not a list | an error, if it needs one | ignored, with a warning | as OpenArmature |
/// | an unknown type | an error | `str`, with a warning | an error |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Dialect {
    /// OpenArmature's canonical reducers, and those of the other systems whose names don't clash
    /// with them.
    OpenArmature,
    /// sherma's two words, `append` and `replace`, and the reducers with parameters.
    Sherma,
    /// Agentflow's reducers, and those of the other systems whose names don't clash with them,
    /// except `append`.
    Agentflow,
}
