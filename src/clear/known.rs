//! What the results and calls of a conversation are, and how large: the second look, where
//! something may have to be done.

use super::ledger::{Ledger, Origin, ResultPrint, Walk, print_of_call};
use crate::fingerprint::Fingerprint;
use crate::format::{Conversation, PartRef};
use crate::rounds::{CallSite, Outline, Slot};
use crate::tokens::{Meter, Of, Row, Seen, Text, media_cost};

/// All results and calls of a conversation, and what each of them is.
pub(super) struct All<'c> {
    pub(super) outline: Outline<'c>,
    pub(super) results: Vec<Known>,
    pub(super) calls: Vec<Known>,
}

/// What is known of a result's content, or of a call's arguments.
pub(super) struct Known {
    pub(super) original: Origin,
    pub(super) bytes: u64,
    pub(super) tokens: u64,
}

impl<'c> All<'c> {
    /// `seen` is what the first look at the same conversation has seen.
    pub(super) fn of(
        conversation: &'c dyn Conversation,
        meter: &Meter,
        ledger: &Ledger,
        seen: &Seen,
    ) -> Self {
        let (outline, mut walk) = (Outline::of(conversation), ledger.walk());
        let mut texts = Texts {
            meter,
            rows: seen.subjects(Of::Result),
        };
        let results = outline
            .slots
            .iter()
            .map(|slot| Known::of_result(slot, &mut texts, &mut walk))
            .collect();
        let mut texts = Texts {
            meter,
            rows: seen.subjects(Of::Arguments),
        };
        let calls = outline
            .calls
            .iter()
            .map(|call| Known::of_call(call, &mut texts, &mut walk))
            .collect();
        Self {
            outline,
            results,
            calls,
        }
    }
}

/// What the texts of results, or of arguments, are known by and cost, one after the other.
struct Texts<'m, R> {
    meter: &'m Meter,
    /// What was found before. Nothing, or all of it.
    rows: R,
}

impl<R: Iterator<Item = Row>> Texts<'_, R> {
    fn next(&mut self, text: Text<'_>) -> (Fingerprint, u64) {
        let Row { print, tokens } = self.rows.next().unwrap_or_else(|| Row {
            print: self.meter.print(text),
            tokens: None,
        });
        debug_assert_eq!(
            print,
            self.meter.print(text),
            "what a format shows changes without its messages"
        );
        (
            print,
            tokens.unwrap_or_else(|| self.meter.count(print, text)),
        )
    }
}

impl Known {
    fn of_result(
        slot: &Slot<'_>,
        texts: &mut Texts<'_, impl Iterator<Item = Row>>,
        walk: &mut Walk<'_>,
    ) -> Self {
        let mut print = ResultPrint::of(texts.meter, slot.head);
        let (mut bytes, mut tokens) = (0, 0_u64);
        for part in &slot.parts {
            let text = Text::of_part(*part).map(|text| texts.next(text));
            print.add(*part, text.map(|(print, _)| print));
            let cost = media_cost(*part).saturating_add(text.map_or(0, |(_, tokens)| tokens));
            tokens = cost.saturating_add(tokens);
            bytes += text.map_or_else(|| part_bytes(*part), |(print, _)| print.len());
        }
        Self {
            original: walk.next(print.finish()),
            bytes,
            tokens,
        }
    }

    fn of_call(
        call: &CallSite<'_>,
        texts: &mut Texts<'_, impl Iterator<Item = Row>>,
        walk: &mut Walk<'_>,
    ) -> Self {
        let (print, tokens) = texts.next(Text::of_arguments(call.is.arguments));
        let original = walk.next(print_of_call(texts.meter, call.is, print));
        Self {
            original,
            bytes: print.len(),
            tokens,
        }
    }
}

/// The bytes of content that a part is.
pub(super) fn part_bytes(part: PartRef<'_>) -> u64 {
    match part {
        PartRef::Media { data, .. } => data.decoded_len(),
        part => Text::of_part(part).map_or(0, Text::bytes),
    }
}
