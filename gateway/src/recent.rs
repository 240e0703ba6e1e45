//! The bodies that came last: what the next one shares with one of them is not parsed again.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use offcut::format::{BodyError, RequestBody};

/// Number of bytes of the bodies that are kept. They take up to three times as much memory, with
/// their strings unescaped.
const MOST: usize = 32 * 1024 * 1024;
/// Number of bytes from which a body is kept.
const SHORTEST: usize = 16 * 1024;
/// Number of bytes by which a body is recognized in a longer one.
const SAMPLE: usize = 64;

/// The bodies that came last, as they came, the latest at the end.
#[derive(Debug, Default)]
pub(crate) struct Recent(Mutex<VecDeque<Kept>>);

#[derive(Debug)]
struct Kept {
    tenant: String,
    body: RequestBody,
    length: usize,
    /// The bytes at [`place`](Self::place).
    sample: Vec<u8>,
}

impl Kept {
    fn new(tenant: &str, text: &str, body: RequestBody) -> Self {
        let sample = text.as_bytes()[Self::place(text.len())..].iter();
        Self {
            tenant: tenant.to_owned(),
            body,
            length: text.len(),
            sample: sample.take(SAMPLE).copied().collect(),
        }
    }

    /// A place that the next body of the conversation has too, although the messages before its
    /// last ones may have changed their marks.
    fn place(length: usize) -> usize {
        length / 4 * 3
    }

    /// Returns true if `text` probably begins as this body does.
    fn is_like(&self, tenant: &str, text: &str) -> bool {
        let here = text.as_bytes().get(Self::place(self.length)..);
        self.tenant == tenant && here.is_some_and(|here| here.starts_with(&self.sample))
    }
}

impl Recent {
    /// Parses a body, sharing what an earlier one of the same tenant has begun with.
    pub(crate) fn parse(&self, tenant: &str, text: &str) -> Result<RequestBody, BodyError> {
        if !(SHORTEST..=MOST / 4).contains(&text.len()) {
            return RequestBody::parse(text);
        }
        let body = match self.take(tenant, text) {
            Some(earlier) => RequestBody::parse_after(&earlier.body, text),
            None => RequestBody::parse(text),
        }?;
        self.keep(Kept::new(tenant, text, body.clone()));
        Ok(body)
    }

    /// Takes out the latest body that `text` probably begins with. The next one is kept in its place.
    fn take(&self, tenant: &str, text: &str) -> Option<Kept> {
        let mut bodies = self.bodies();
        let at = bodies.iter().rposition(|kept| kept.is_like(tenant, text))?;
        bodies.remove(at)
    }

    fn keep(&self, kept: Kept) {
        let mut bodies = self.bodies();
        bodies.push_back(kept);
        let mut length: usize = bodies.iter().map(|kept| kept.length).sum();
        while length > MOST {
            length -= bodies.pop_front().map_or(length, |oldest| oldest.length);
        }
    }

    fn bodies(&self) -> MutexGuard<'_, VecDeque<Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(messages: usize, mark: &str) -> String {
        let message = |nth| {
            format!(
                r#"{{"role":"user","content":"{nth}\n{}"}}"#,
                "word ".repeat(900)
            )
        };
        let messages: Vec<String> = (0..messages).map(message).collect();
        format!(
            r#"{{"system":"{mark}","messages":[{}]}}"#,
            messages.join(",")
        )
    }

    fn lengths(recent: &Recent) -> Vec<usize> {
        recent.bodies().iter().map(|kept| kept.length).collect()
    }

    #[test]
    fn a_conversation_is_kept_once_and_apart_from_other_tenants() {
        let recent = Recent::default();
        let [short, first, next] = [1, 8, 9].map(|messages| text(messages, "a"));
        for (tenant, text) in [
            ("one", &short),
            ("one", &first),
            ("two", &first),
            ("one", &next),
        ] {
            assert_eq!(recent.parse(tenant, text).unwrap().to_string(), *text);
        }
        assert_eq!(lengths(&recent), [first.len(), next.len()]);
        assert_eq!(recent.bodies()[0].tenant, "two");
        assert!(recent.parse("one", &next[1..]).is_err());
        let other = text(9, "another");
        assert_eq!(recent.parse("one", &other).unwrap().to_string(), other);
    }

    #[test]
    fn the_oldest_bodies_make_room() {
        let recent = Recent::default();
        let longest = text(1_700, "");
        assert!(longest.len() <= MOST / 4);
        for nth in 0..6 {
            recent.parse(&nth.to_string(), &longest).unwrap();
        }
        assert_eq!(lengths(&recent).len(), MOST / longest.len());
        assert_eq!(recent.bodies().back().unwrap().tenant, "5");
        recent.parse("0", &text(2_000, "")).unwrap();
        assert_eq!(
            recent.bodies().back().unwrap().tenant,
            "5",
            "it is too long"
        );
    }
}
