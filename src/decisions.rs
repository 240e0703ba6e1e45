//! Decisions about the results, calls and users' texts of a conversation, and what takes their place: in memory, and as
//! records, one small object for each call that decided something, in a row that any process can read from its beginning.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use bytes::Bytes;
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};

use crate::backend::{Backend, BackendError, ErrorKind, Key, Location, PutOutcome};
use crate::content::Part;
use crate::fingerprint::SlotId;

/// Number of records that are read at once where several are expected.
const AT_ONCE: u64 = 8;
/// Maximum length of a record in bytes. A longer object is not one of ours.
const MAX_RECORD: u64 = 16 << 20;
/// Number of bytes that are read first: all of nearly every record, so that a store's time limit for it is short.
const FIRST: u64 = 512 << 10;
const VERSION: u32 = 1;

/// The moment of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Moment {
    /// The result arrived. The decision is repeated from the first call on.
    Arrival,
    /// A pass went over the conversation. The decision is repeated where the model has answered the
    /// result.
    Pass,
}

/// The text of a replacement that is one text, as those of a call's arguments and of a user's text are.
pub(crate) fn only_text(put: &[Part]) -> Option<&str> {
    match put {
        [Part::Text(text)] => Some(text),
        _ => None,
    }
}

/// A part of a replacement, as it is written down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WrittenPart {
    /// The part of the original with this index, which is not written down again.
    Kept(usize),
    /// Another part.
    New(Part),
}

impl WrittenPart {
    /// Writes a replacement of `originals` down. Parts that are in these too are kept; both are in one order.
    pub(crate) fn all(put: &[Part], originals: &[Part]) -> Vec<Self> {
        let mut next = 0;
        let written = put.iter().map(|part| {
            let mut later = originals.iter().enumerate().skip(next);
            match later.find(|(_, original)| *original == part) {
                Some((at, _)) => {
                    next = at + 1;
                    Self::Kept(at)
                }
                None => Self::New(part.clone()),
            }
        });
        written.collect()
    }
}

/// A decision about one result or one call's arguments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Decided {
    pub(crate) slot: SlotId,
    pub(crate) moment: Moment,
    pub(crate) put: Vec<WrittenPart>,
    /// Locations of the original.
    #[serde(rename = "at", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) locations: Vec<Location>,
}

/// The records of one session, made with the same settings.
///
/// The n-th is `<prefix>meta/decided-<settings>-<n>`, counted from 0, where no hint leads. Records
/// are created and never changed. The row ends where nothing is stored.
#[derive(Debug)]
pub(crate) struct Records {
    pub(crate) store: Arc<dyn Backend>,
    /// The keys without their numbers.
    stem: String,
    /// True once the row has been read to its end.
    is_known: AtomicBool,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record<D = Vec<Decided>> {
    offcut_record: u32,
    /// True if the decisions before it were too old. They count no more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) anew: bool,
    pub(crate) decisions: D,
}

/// A record, and the time at which it was stored. `None` for an object that can't be understood: it keeps its
/// place in the row and decides nothing.
pub(crate) type ReadRecord = (Option<Record>, SystemTime);

impl Records {
    /// The records of the session that stores below `prefix`, under the settings with the digest
    /// `settings`.
    pub(crate) fn new(store: Arc<dyn Backend>, prefix: &str, settings: &str) -> Self {
        Self {
            store,
            stem: format!("{prefix}{}/decided-{settings}-", Key::META),
            is_known: AtomicBool::new(false),
        }
    }

    /// Reads the records from the `next`-th on.
    ///
    /// # Errors
    ///
    /// The store failed.
    pub(crate) async fn read(&self, mut next: u64) -> Result<Vec<ReadRecord>, BackendError> {
        let mut records = Vec::new();
        // A process that meets a conversation for the first time expects several; one that knows it
        // expects none.
        let is_known = self.is_known.load(Ordering::Relaxed);
        let mut at_once = if is_known { 1 } else { AT_ONCE };
        loop {
            let reads = (next..next + at_once).map(|number| self.read_one(number));
            for record in join_all(reads).await {
                match record? {
                    Some(record) => records.push(record),
                    None => {
                        self.is_known.store(true, Ordering::Relaxed);
                        return Ok(records);
                    }
                }
            }
            (next, at_once) = (next + at_once, AT_ONCE);
        }
    }

    /// Returns `true` if there is a `number`-th record. Each call asks that about a record that it knows (L8).
    pub(crate) async fn has(&self, number: u64) -> Result<bool, BackendError> {
        match self.store.read(&self.key(number)?, 0..1).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads the `number`-th record; `None` if there is none.
    async fn read_one(&self, number: u64) -> Result<Option<ReadRecord>, BackendError> {
        let key = self.key(number)?;
        let mut read = self.store.read(&key, 0..FIRST).await;
        if matches!(&read, Ok(page) if page.total > FIRST) {
            read = self.store.read(&key, 0..MAX_RECORD).await;
        }
        match read {
            Ok(page) => {
                let record = (page.total <= MAX_RECORD)
                    .then(|| serde_json::from_slice(&page.bytes).ok())
                    .flatten()
                    .filter(|record: &Record| record.offcut_record == VERSION);
                Ok(Some((record, page.stored_at)))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the `number`-th record; all records before it must have been read, and count no more if
    /// it is `anew`. Returns `false` if another process was faster and decided otherwise.
    ///
    /// # Errors
    ///
    /// The store failed. The record may or may not be there.
    pub(crate) async fn append(
        &self,
        number: u64,
        anew: bool,
        decisions: &[Decided],
    ) -> Result<bool, BackendError> {
        let put = self
            .store
            .put(&self.key(number)?, write(anew, decisions)?)
            .await?;
        Ok(put != PutOutcome::Taken)
    }

    fn key(&self, number: u64) -> Result<Key, BackendError> {
        Key::new(format!("{}{number}", self.stem))
            .map_err(|error| BackendError::new(ErrorKind::Other, error.to_string()))
    }
}

fn write(anew: bool, decisions: &[Decided]) -> Result<Bytes, BackendError> {
    let written = Record {
        offcut_record: VERSION,
        anew,
        decisions,
    };
    serde_json::to_vec(&written)
        .map(Bytes::from)
        .map_err(|error| BackendError::new(ErrorKind::Other, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Memory;

    fn parts(parts: &[&str]) -> Vec<Part> {
        parts.iter().map(|part| (*part).into()).collect()
    }

    #[test]
    fn kept_parts_are_not_written_down_again() {
        let originals = parts(&["head", "image", "long", "image"]);
        let put = WrittenPart::all(&parts(&["head", "hint", "image"]), &originals);
        let new = WrittenPart::New("hint".into());
        assert_eq!(put, [WrittenPart::Kept(0), new, WrittenPart::Kept(1)]);
    }

    fn at_arrival(text: &str) -> Vec<Decided> {
        vec![Decided {
            slot: SlotId { digest: 1, nth: 0 },
            moment: Moment::Arrival,
            put: vec![WrittenPart::New(text.into())],
            locations: vec![Location::new("memory:trunc/a")],
        }]
    }

    fn records(store: &Memory) -> Records {
        Records::new(Arc::new(store.clone()), "s1/", "0123456789abcdef")
    }

    /// Decisions of records; `None` for each that is not one.
    async fn read(store: &Memory, from: u64) -> Vec<Option<Vec<Decided>>> {
        let read = records(store).read(from).await.unwrap();
        let records = read.into_iter().map(|(record, _)| record);
        records.map(|record| Some(record?.decisions)).collect()
    }

    #[tokio::test]
    async fn records_are_read_in_their_order_from_any_place_on() {
        let store = Memory::new();
        let texts: Vec<String> = (0..20).map(|number| number.to_string()).collect();
        for (number, text) in (0..).zip(&texts) {
            assert!(
                records(&store)
                    .append(number, false, &at_arrival(text))
                    .await
                    .unwrap()
            );
        }
        for from in [0, 1, 8, 19, 20] {
            let read = read(&store, from as u64).await;
            let expected: Vec<_> = texts
                .iter()
                .skip(from)
                .map(|text| Some(at_arrival(text)))
                .collect();
            assert_eq!(read, expected, "from {from}");
        }
    }

    #[tokio::test]
    async fn a_place_is_taken_only_once() {
        let store = Memory::new();
        assert!(
            records(&store)
                .append(0, false, &at_arrival("one"))
                .await
                .unwrap()
        );
        assert!(
            records(&store)
                .append(0, false, &at_arrival("one"))
                .await
                .unwrap(),
            "the same again"
        );
        assert!(
            !records(&store)
                .append(0, false, &at_arrival("two"))
                .await
                .unwrap()
        );
    }

    #[tokio::test]
    async fn what_is_not_a_record_keeps_its_place_and_decides_nothing() {
        let store = Memory::new();
        let key =
            |number: u64| Key::new(format!("s1/meta/decided-0123456789abcdef-{number}")).unwrap();
        let whole = String::from_utf8(write(false, &at_arrival("one")).unwrap().to_vec()).unwrap();
        let broken = [
            "",
            "{}",
            &whole[..whole.len() - 1],
            &whole.replace("\"offcut_record\":1", "\"offcut_record\":2"),
            &whole.replace("\"nth\":0", "\"nth\":00"),
            &whole.replace("\"moment\"", "\"more\":1,\"moment\""),
        ];
        for (number, text) in (0..).zip(broken) {
            store
                .put(&key(number), Bytes::copy_from_slice(text.as_bytes()))
                .await
                .unwrap();
        }
        let last = broken.len() as u64;
        assert!(
            records(&store)
                .append(last, false, &at_arrival("one"))
                .await
                .unwrap()
        );
        let read = read(&store, 0).await;
        assert_eq!(read.len(), broken.len() + 1);
        assert!(read[..broken.len()].iter().all(Option::is_none));
        assert_eq!(read.last(), Some(&Some(at_arrival("one"))));
    }
}
