//! The bodies that came last: what the next one shares with one of them is not parsed again.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use offcut::format::{BodyError, RequestBody};

/// Number of bytes of memory that the bodies may take together.
const MOST: usize = 64 * 1024 * 1024;
/// Length in bytes from which a body is kept. Shorter ones are parsed in less time than many that are kept
/// can be looked at.
const SHORTEST: usize = 64 * 1024;

/// The bodies that came last, as they came, the latest at the end.
#[derive(Debug, Default)]
pub(crate) struct Recent(Mutex<VecDeque<Kept>>);

#[derive(Debug)]
struct Kept {
    tenant: String,
    body: RequestBody,
    memory: usize,
}

impl Recent {
    /// Parses a body, sharing what an earlier one of the same tenant has begun with.
    pub(crate) fn parse(&self, tenant: &str, text: &str) -> Result<RequestBody, BodyError> {
        if text.len() < SHORTEST {
            return RequestBody::parse(text);
        }
        let earlier = self.take(tenant, text);
        let parsed = match &earlier {
            Some(earlier) => RequestBody::parse_after(&earlier.body, text),
            None => RequestBody::parse(text),
        };
        let next = parsed.as_ref().ok().map(|body| Kept {
            tenant: tenant.to_owned(),
            memory: body.memory(),
            body: body.clone(),
        });
        if let Some(kept) = next.or(earlier).filter(|kept| kept.memory <= MOST / 4) {
            self.keep(kept);
        }
        parsed
    }

    /// Takes out the latest body that `text` probably begins with. The next one is kept in its place.
    fn take(&self, tenant: &str, text: &str) -> Option<Kept> {
        let mut bodies = self.bodies();
        let is_like = |kept: &Kept| kept.tenant == tenant && kept.body.probably_begins(text);
        let at = bodies.iter().rposition(is_like)?;
        bodies.remove(at)
    }

    fn keep(&self, kept: Kept) {
        let mut bodies = self.bodies();
        bodies.push_back(kept);
        let mut memory: usize = bodies.iter().map(|kept| kept.memory).sum();
        let too_many = bodies.iter().take_while(|kept| {
            let is_over = memory > MOST;
            memory -= kept.memory;
            is_over
        });
        let too_many = too_many.count();
        let oldest: Vec<Kept> = bodies.drain(..too_many).collect();
        drop(bodies);
        // Freed while others may use the rest.
        drop(oldest);
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
            let words = "word ".repeat(900);
            format!(r#"{{"role":"user","content":"{nth}\n{words}"}}"#)
        };
        let messages: Vec<String> = (0..messages).map(message).collect();
        let messages = messages.join(",");
        // As much follows the messages as some agents have tools.
        let tail = "x".repeat(messages.len());
        format!(r#"{{"system":"{mark}","messages":[{messages}],"user":"{tail}"}}"#)
    }

    fn kept(recent: &Recent) -> Vec<(String, usize)> {
        let bodies = recent.bodies();
        let kept = bodies
            .iter()
            .map(|kept| (kept.tenant.clone(), kept.body.messages().len()));
        kept.collect()
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
        let both = [("two".to_owned(), 8), ("one".to_owned(), 9)];
        assert_eq!(kept(&recent), both);
        assert!(recent.parse("one", &next[..next.len() - 1]).is_err());
        assert_eq!(kept(&recent), both, "what was known still is");
        let other = text(9, "another");
        assert_eq!(recent.parse("one", &other).unwrap().to_string(), other);
    }

    #[test]
    fn the_oldest_bodies_make_room_by_the_memory_that_they_take() {
        let recent = Recent::default();
        let long = text(1_000, "");
        for nth in 0..9 {
            recent.parse(&nth.to_string(), &long).unwrap();
        }
        let memory: usize = recent.bodies().iter().map(|kept| kept.memory).sum();
        let one = recent.bodies()[0].memory;
        assert!((MOST - one..=MOST).contains(&memory), "{memory} of {MOST}");
        assert_eq!(kept(&recent).last().unwrap().0, "8");
        // Short messages take many times as much memory as text.
        let short = format!("[{}1]", "1,".repeat(200_000));
        recent.parse("0", &short).unwrap();
        assert_eq!(kept(&recent).last().unwrap().0, "8", "it takes too much");
    }
}
