//! Streams: content, preview and decisions are the same however a result is cut into chunks (T2),
//! and for whole results.

use std::cell::Cell;

use offcut::hint::Language;
use offcut::preview::Preview;

use crate::laws::generate::Id;
use crate::laws::l9::{Case, Piece, chunks_change_nothing};
use crate::laws::text::{Kind, Text};
use crate::laws::{assert_held, block_on};

/// Separator of a result's parts. The byte after it is the kind of the next part.
const SEPARATOR: u8 = 0x1e;

/// Takes nine bytes of settings, then the parts of the result.
pub(crate) fn splitter(data: &[u8]) {
    let Some((settings, result)) = data.split_first_chunk::<9>() else {
        return;
    };
    let [how, what, limit, preview, above, chunks @ ..] = *settings;
    let is = |bit: u32| what >> bit & 1 == 1;
    let kinds = [
        Preview::HeadTail,
        Preview::Lines,
        Preview::Index,
        Preview::Mixed,
    ];
    let ids = ["call_1", "", "../../x", "call_1-2"];
    let case = Case {
        id: Id(ids[usize::from(how >> 4) % 4].to_owned()),
        // Rarely, because the content that is stored first is long.
        is_taken: what >> 5 == 7,
        pieces: result.split(|byte| *byte == SEPARATOR).map(piece).collect(),
        chunks: chunks
            .iter()
            .map(|size| usize::from(*size) * if is(1) { 40 } else { 1 } + 1)
            .collect(),
        breaks_off: is(2),
        limit: 1_000 + usize::from(limit) * 4,
        preview: usize::from(preview) * 12,
        strategy: kinds[usize::from(how) % 4],
        above: is(3).then_some(usize::from(above) * 4),
        language: if is(4) {
            Language::Chinese
        } else {
            Language::English
        },
    };
    assert_held(block_on(chunks_change_nothing(case)));
}

fn piece(bytes: &[u8]) -> Piece {
    let Some((kind, rest)) = bytes.split_first() else {
        return Piece::Raw(Vec::new());
    };
    let at = Cell::new(0);
    let next = || {
        at.set(at.get() + 1);
        usize::from(rest.get(at.get() - 1).copied().unwrap_or_default())
    };
    let kinds = [
        Kind::Lines,
        Kind::OneLine,
        Kind::Chinese,
        Kind::Json,
        Kind::Spaces,
        Kind::Odd,
        Kind::Marks,
        Kind::Names,
    ];
    let text = || Text::new(kinds[next() % 8], next() * 32, next() as u8);
    match kind {
        b'T' => Piece::Text(text()),
        b'J' => Piece::Json(text()),
        b'M' => Piece::Media(next() * 20),
        b'L' => Piece::Link,
        b'O' => Piece::Opaque(next() * 20),
        b'N' => Piece::Many(
            Text {
                length: next(),
                ..text()
            },
            next() % 40,
        ),
        // A long part, repeated from the fuzzer's bytes.
        b'R' => Piece::Raw(rest.get(1..).unwrap_or_default().repeat(next() % 32)),
        b'B' => Piece::Bytes(text(), vec![(next() * 32, 0xe2), (next() * 32, 0xff)]),
        _ => Piece::Raw(bytes.to_vec()),
    }
}
