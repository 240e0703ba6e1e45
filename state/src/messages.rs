//! `add_messages`: lists of messages by their ids, in LangGraph's dialect and in Agentflow's.

use std::collections::{HashMap, HashSet};
use std::fmt;

use crate::key::{ItemKey, KeyFailure};
use crate::keyed::{Decision, DuplicatesInUpdate, OnMatch, Op, Rules, UnknownRemoval, decide};
use crate::list::ListEdit;
use crate::reducer::{Cause, Change, Reducer, Side};

/// The id that removes all messages, as in LangGraph.
pub const REMOVE_ALL: &str = "__remove_all__";

/// One thing that an update does to a list of messages. Removals are operations and no messages:
/// they can't get into a state.
///
/// In JSON a removal is `{"role": "remove", "id": …}`, or has `"type": "remove"`, as LangGraph
/// serialises it; the id `__remove_all__` is [`RemoveAll`](Self::RemoveAll).
#[derive(Clone, Debug, PartialEq)]
pub enum MessageUpdate<M> {
    /// A message: new, or, in LangGraph's dialect, in the place of the one with its id.
    Put(M),
    /// The messages with this id go. The same id later in the update takes the old place again.
    Remove(ItemKey<'static>),
    /// All messages go, those before it in the update included.
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
type Assign<M> = (
    Box<dyn Fn(&M) -> String + Send + Sync>,
    Box<dyn Fn(&mut M, String) + Send + Sync>,
);
type Skip<M> = Box<dyn Fn(&M) -> bool + Send + Sync>;

/// Adds messages to a list by their ids.
///
/// | | [`langgraph`](Self::langgraph) | [`agentflow`](Self::agentflow) |
/// |---|---|---|
/// | a message whose id is in the list | takes its place | is skipped |
/// | messages of one update with the same id | the last, in the place of the first | the first |
/// | [removals](Self::removals) | taken; an unknown one fails | fail |
/// | a message without an id | is new, [with one](Self::assign_ids) if you like | is new |
///
/// # Guarantees
///
/// - The order stays, new messages go last, and messages that the update does not name are as they
///   were.
/// - After an error, an unknown removal included, the update has had no effect.
/// - Assigned ids depend on the list and the update alone. None equals an id that the list or the
///   update names, in a removal too.
pub struct AddMessages<M> {
    id: IdOf<M>,
    on_match: OnMatch,
    /// What becomes of unknown removals; `None` where none are taken.
    removals: Option<UnknownRemoval>,
    assign: Option<Assign<M>>,
    skip: Option<Skip<M>>,
}

impl<M> AddMessages<M> {
    /// LangGraph's `add_messages`, which is sherma's `append`: by id, replaced in place. Formats
    /// whose messages have no ids take any key function: nothing is added to them.
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

    /// Agentflow's `add_messages`: by id, the ones that are there stay. Its code keeps duplicates
    /// within the update; its document says that the list is unique, and so it is here.
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
        let removals = (on_match == OnMatch::Replace).then_some(UnknownRemoval::Fail);
        Self {
            id,
            on_match,
            removals,
            assign: None,
            skip: None,
        }
    }

    /// Takes removals; `unknown` says what becomes of those that name what is not there.
    #[must_use]
    pub fn removals(mut self, unknown: UnknownRemoval) -> Self {
        self.removals = Some(unknown);
        self
    }

    /// Messages of the update without an id are given one: `new_id`, or that with `-2`, `-3`, …
    /// after it where the list or the update names it. `new_id` should be made of the message, so
    /// that the same update gives the same state.
    #[must_use]
    pub fn assign_ids(
        mut self,
        new_id: impl Fn(&M) -> String + Send + Sync + 'static,
        set: impl Fn(&mut M, String) + Send + Sync + 'static,
    ) -> Self {
        self.assign = Some((Box::new(new_id), Box::new(set)));
        self
    }

    /// Messages of which `skip` says so are not added: streaming deltas.
    #[must_use]
    pub fn skip(mut self, skip: impl Fn(&M) -> bool + Send + Sync + 'static) -> Self {
        self.skip = Some(Box::new(skip));
        self
    }

    pub(crate) fn edit(
        &self,
        existing: &[M],
        mut update: Vec<MessageUpdate<M>>,
    ) -> Result<ListEdit<M>, Cause> {
        // Places in errors are those of the update as it came.
        let mut places: Vec<usize> = (0..update.len()).collect();
        if let Some(skip) = &self.skip {
            let is_added = |item: &MessageUpdate<M>| !matches!(item, MessageUpdate::Put(message) if skip(message));
            places.retain(|&at| is_added(&update[at]));
            update.retain(is_added);
        }
        if update.is_empty() {
            return Ok(ListEdit::append(Vec::new()));
        }
        if let Some(assign) = &self.assign {
            self.assign_missing(assign, existing, &mut update, &places)?;
        }
        let decision = self.decide(existing, &update, &places)?;
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
        places: &[usize],
    ) -> Result<Decision, Cause> {
        let ops = update.iter().zip(places).map(|(item, &index)| match item {
            MessageUpdate::Put(message) => self.id_of(message, Side::Update, index).map(Op::Put),
            _ if self.removals.is_none() => Err(Cause::RemovalNotTaken { index }),
            MessageUpdate::Remove(id) => Ok(Op::Remove(id.clone())),
            MessageUpdate::RemoveAll => Ok(Op::RemoveAll),
        });
        let ids = existing
            .iter()
            .enumerate()
            .map(|(index, message)| self.id_of(message, Side::Existing, index));
        let rules = Rules {
            on_match: self.on_match,
            twins: DuplicatesInUpdate::Collapse,
            unknown: self.removals.unwrap_or(UnknownRemoval::Fail),
        };
        decide(ops, ids, rules).map_err(|cause| match cause {
            Cause::UnknownRemoval { index } => Cause::UnknownRemoval {
                index: places[index],
            },
            other => other,
        })
    }

    fn id_of<'m>(
        &self,
        message: &'m M,
        side: Side,
        index: usize,
    ) -> Result<Option<ItemKey<'m>>, Cause> {
        (self.id)(message).map_err(|failure| failure.at(side, index))
    }

    fn assign_missing(
        &self,
        (new_id, set): &Assign<M>,
        existing: &[M],
        update: &mut [MessageUpdate<M>],
        places: &[usize],
    ) -> Result<(), Cause> {
        let mut is_missing = Vec::with_capacity(update.len());
        // All that the update names is taken, also what comes later in it: a message that was given
        // the same id would be replaced or removed by it.
        let mut taken = HashSet::new();
        for (item, &index) in update.iter().zip(places) {
            let named = match item {
                MessageUpdate::Put(message) => self
                    .id_of(message, Side::Update, index)?
                    .map(ItemKey::into_owned),
                MessageUpdate::Remove(id) => Some(id.clone()),
                MessageUpdate::RemoveAll => None,
            };
            is_missing.push(named.is_none());
            taken.extend(named);
        }
        if !is_missing.contains(&true) {
            return Ok(());
        }
        for (index, message) in existing.iter().enumerate() {
            taken.extend(self.id_of(message, Side::Existing, index)?);
        }
        // How far each id has been counted, so that many messages of one content do not begin at 2
        // again each.
        let mut counted: HashMap<String, usize> = HashMap::new();
        for (item, is_missing) in update.iter_mut().zip(is_missing) {
            let MessageUpdate::Put(message) = item else {
                continue;
            };
            if !is_missing {
                continue;
            }
            let base = new_id(message);
            let count = counted.entry(base.clone()).or_insert(0);
            let free = loop {
                *count += 1;
                let id = if *count == 1 {
                    base.clone()
                } else {
                    format!("{base}-{count}")
                };
                if taken.insert(ItemKey::from(id.clone())) {
                    break id;
                }
            };
            set(message, free);
        }
        Ok(())
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
        let Self {
            id: _,
            on_match,
            removals,
            assign,
            skip,
        } = self;
        f.debug_struct("AddMessages")
            .field("on_match", on_match)
            .field("removals", removals)
            .field("assigns_ids", &assign.is_some())
            .field("skips", &skip.is_some())
            .finish_non_exhaustive()
    }
}
