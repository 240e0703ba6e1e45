//! `add_messages`: lists of messages by their ids, in the dialects of LangGraph and Agentflow.

use std::fmt;

use crate::key::{ItemKey, KeyFailure};
use crate::keyed::{KeyedDecision, OnMatch, Op, decide};
use crate::list::ListEdit;
use crate::reducer::{Cause, Change, Reducer, Side};

/// The id that removes all messages, as in LangGraph.
pub const REMOVE_ALL: &str = "__remove_all__";

/// One operation on a list of messages. Removals are operations, not messages, so they can't get
/// into a state.
///
/// In JSON a removal is `{"role": "remove", "id": …}`, or has `"type": "remove"`, as LangGraph
/// serializes it. The id `__remove_all__` is [`RemoveAll`](Self::RemoveAll).
#[derive(Clone, Debug, PartialEq)]
pub enum MessageUpdate<M> {
    /// Puts a message: a new one or, in LangGraph's dialect, in place of the one with its id.
    Put(M),
    /// Removes the messages with this id. The same id later in the update takes the old place
    /// again.
    Remove(ItemKey<'static>),
    /// Removes all messages, including those earlier in the update.
    RemoveAll,
}

impl<M> MessageUpdate<M> {
    /// Removes the messages with this id.
    pub fn remove(id: impl Into<ItemKey<'static>>) -> Self {
        Self::Remove(id.into())
    }
}

pub(crate) type IdOf<M> =
    Box<dyn for<'m> Fn(&'m M) -> Result<Option<ItemKey<'m>>, KeyFailure> + Send + Sync>;

/// Adds messages to a list by their ids.
///
/// | | [`langgraph`](Self::langgraph) | [`agentflow`](Self::agentflow) |
/// |---|---|---|
/// | a message whose id is in the list | takes its place | is skipped |
/// | messages of one update with the same id | the last, in the place of the first | the first |
/// | removals | taken; an unknown one fails | fail |
/// | a message without an id | is new, and is [given one in JSON](Self::langgraph_json) | is new |
///
/// # Guarantees
///
/// - The order stays, new messages are appended, and messages that the update does not name are
///   unchanged.
/// - After an error, an unknown removal included, the update has had no effect.
/// - Assigned ids depend on the list and the update alone. None equals an id in the list or in the
///   update, removals included.
pub struct AddMessages<M> {
    id: IdOf<M>,
    on_match: OnMatch,
    /// True if JSON messages without an id are given one.
    pub(crate) assigns_ids: bool,
    pub(crate) skips: fn(&M) -> bool,
}

impl<M> AddMessages<M> {
    /// LangGraph's `add_messages`, sherma's `append`: by id, replaced in place. Formats whose
    /// messages have no ids can use any key function, since nothing is added to the messages.
    ///
    /// ```
    /// use offcut_state::{AddMessages, MessageUpdate, Reducer};
    /// let add = AddMessages::langgraph(|(id, _): &(&str, &str)| Some(id));
    /// let state = add.reduce(vec![("1", "hi"), ("2", "oh")], vec![
    ///     MessageUpdate::Put(("1", "hello")),
    ///     MessageUpdate::remove("2".to_owned()),
    ///     MessageUpdate::Put(("3", "bye")),
    /// ])?;
    /// assert_eq!(state, [("1", "hello"), ("3", "bye")]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn langgraph(id: impl Fn(&M) -> Option<&str> + Send + Sync + 'static) -> Self {
        Self::new(
            Box::new(move |message| Ok(id(message).map(ItemKey::from))),
            OnMatch::Replace,
        )
    }

    /// Agentflow's `add_messages`: by id, those in the list stay. Agentflow's code keeps duplicates
    /// within the update, but its documentation says that the list is unique, and so it is here.
    ///
    /// ```
    /// use offcut_state::{AddMessages, MessageUpdate, Reducer};
    /// let add = AddMessages::agentflow(|id: &&str| Some(id));
    /// let state = add.reduce(vec!["msg1"], vec![MessageUpdate::Put("msg2"), MessageUpdate::Put("msg1")])?;
    /// assert_eq!(state, ["msg1", "msg2"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn agentflow(id: impl Fn(&M) -> Option<&str> + Send + Sync + 'static) -> Self {
        Self::new(
            Box::new(move |message| Ok(id(message).map(ItemKey::from))),
            OnMatch::Keep,
        )
    }

    pub(crate) fn new(id: IdOf<M>, on_match: OnMatch) -> Self {
        Self {
            id,
            on_match,
            assigns_ids: false,
            skips: |_| false,
        }
    }

    pub(crate) fn edit(
        &self,
        existing: &[M],
        update: Vec<MessageUpdate<M>>,
    ) -> Result<ListEdit<M>, Cause> {
        if update.is_empty() {
            return Ok(ListEdit::append(Vec::new()));
        }
        let decision = self.decide(existing, &update)?;
        let messages = update.into_iter().map(|item| match item {
            MessageUpdate::Put(message) => Some(message),
            MessageUpdate::Remove(_) | MessageUpdate::RemoveAll => None,
        });
        Ok(decision.into_edit(existing.len(), messages))
    }

    fn decide<'m>(
        &self,
        existing: &'m [M],
        update: &'m [MessageUpdate<M>],
    ) -> Result<KeyedDecision, Cause> {
        let ops = update.iter().enumerate().map(|(index, item)| match item {
            MessageUpdate::Put(message) if (self.skips)(message) => Ok(Op::Skip),
            MessageUpdate::Put(message) => self.id_of(message, Side::Update, index).map(Op::Put),
            _ if self.on_match == OnMatch::Keep => Err(Cause::RemovalNotTaken { index }),
            MessageUpdate::Remove(id) => Ok(Op::Remove(id.clone())),
            MessageUpdate::RemoveAll => Ok(Op::RemoveAll),
        });
        let ids = existing
            .iter()
            .enumerate()
            .map(|(index, message)| self.id_of(message, Side::Existing, index));
        decide(ops, ids, self.on_match)
    }

    fn id_of<'m>(
        &self,
        message: &'m M,
        side: Side,
        index: usize,
    ) -> Result<Option<ItemKey<'m>>, Cause> {
        (self.id)(message).map_err(|failure| failure.at(side, index))
    }
}

impl<M: 'static> Reducer<Vec<M>> for AddMessages<M> {
    type Update = Vec<MessageUpdate<M>>;

    fn name(&self) -> &str {
        "add_messages"
    }

    fn plan(&self, existing: &Vec<M>, update: Self::Update) -> Result<Change<Vec<M>>, Cause> {
        Ok(self.edit(existing, update)?.into_change())
    }
}

impl<M> fmt::Debug for AddMessages<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AddMessages")
            .field("on_match", &self.on_match)
            .field("assigns_ids", &self.assigns_ids)
            .finish_non_exhaustive()
    }
}
