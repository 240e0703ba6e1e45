//! Token costs of images, by the rules that providers publish, from the size in the image's header.
//!
//! The provider is not known here, so an image costs the higher of two rules:
//!
//! - OpenAI, `gpt-4o` in high detail: scaled down to fit 2048 × 2048, then to a shorter side of
//!   768; 85 tokens and 170 for each tile of 512 × 512
//!   (<https://platform.openai.com/docs/guides/images-vision>, "Calculating costs").
//! - Anthropic: scaled down to a longer side of 1568 and about 1600 tokens; width × height / 750
//!   (<https://docs.anthropic.com/en/docs/build-with-claude/vision>, "Evaluate image size").
//!
//! The headers of the four formats that providers accept are read here, in some sixty lines. The
//! crate `imagesize` (0.15) needs a reader that seeks, so base64 would have to be decoded whole or
//! wrapped in as many lines. It mistakes the two scaling bits of a VP8 for part of its size (640 ×
//! 480 comes out as 17 024 × 16 864), returns sides of 0, and follows a JPEG's segments without
//! limit: a crafted file of 10 MB takes it 10 ms each time.

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::format::Data;

/// Tokens of an image of unknown size: those of 1024 × 1024.
pub(super) const UNKNOWN: u64 = 1_399;
/// A JPEG's size is searched for in at most this many segments.
const MAX_SEGMENTS: usize = 64;

/// Number of tokens of the image in `data`.
pub(super) fn cost(data: Data<'_>) -> u64 {
    size(data).map_or(UNKNOWN, |(width, height)| tokens(width, height))
}

fn tokens(width: u32, height: u32) -> u64 {
    let (width, height) = (u64::from(width), u64::from(height));
    let (short, long) = (width.min(height), width.max(height));
    openai(short, long).max(anthropic(short, long))
}

fn openai(short: u64, long: u64) -> u64 {
    let (short, long) = shrink(short, long, long, 2048);
    let (short, long) = shrink(short, long, short, 768);
    85 + 170 * short.div_ceil(512) * long.div_ceil(512)
}

fn anthropic(short: u64, long: u64) -> u64 {
    let (short, long) = shrink(short, long, long, 1568);
    (short * long).div_ceil(750).min(1600)
}

/// Scales both sides down so that `side` is at most `limit`.
fn shrink(short: u64, long: u64, side: u64, limit: u64) -> (u64, u64) {
    if side <= limit {
        return (short, long);
    }
    let scaled = |length: u64| (length * limit).div_ceil(side);
    (scaled(short), scaled(long))
}

/// Width and height in pixels from the header of a PNG, GIF, WebP or JPEG; `None` if it has none.
fn size(data: Data<'_>) -> Option<(u32, u32)> {
    let (width, height) = match read::<12>(data, 0)? {
        [0x89, b'P', b'N', b'G', ..] => {
            let [w @ .., _, _, _, _] = read::<8>(data, 16)?;
            (u32::from_be_bytes(w), u32::from_be_bytes(read(data, 20)?))
        }
        [b'G', b'I', b'F', b'8', ..] => {
            let [a, b, c, d] = read(data, 6)?;
            (
                u16::from_le_bytes([a, b]).into(),
                u16::from_le_bytes([c, d]).into(),
            )
        }
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P'] => webp(data)?,
        [0xFF, 0xD8, ..] => jpeg(data)?,
        _ => return None,
    };
    (width > 0 && height > 0).then_some((width, height))
}

fn webp(data: Data<'_>) -> Option<(u32, u32)> {
    match &read::<4>(data, 12)? {
        b"VP8X" => {
            let [a, b, c, d, e, f] = read(data, 24)?;
            Some((
                u32::from_le_bytes([a, b, c, 0]) + 1,
                u32::from_le_bytes([d, e, f, 0]) + 1,
            ))
        }
        // 14 bits each, minus one.
        b"VP8L" => {
            let bits = u32::from_le_bytes(read(data, 21)?);
            Some(((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1))
        }
        // 14 bits each, and two bits of scaling.
        b"VP8 " => {
            let [a, b, c, d] = read(data, 26)?;
            Some((
                (u16::from_le_bytes([a, b]) & 0x3FFF).into(),
                (u16::from_le_bytes([c, d]) & 0x3FFF).into(),
            ))
        }
        _ => None,
    }
}

/// The size is in the start of frame, after any number of other segments.
fn jpeg(data: Data<'_>) -> Option<(u32, u32)> {
    let mut at = 2;
    for _ in 0..MAX_SEGMENTS {
        let [mark, kind, high, low] = read(data, at)?;
        if mark != 0xFF {
            return None;
        }
        if matches!(kind, 0xC0..=0xCF) && !matches!(kind, 0xC4 | 0xC8 | 0xCC) {
            let [a, b, c, d] = read(data, at + 5)?;
            return Some((
                u16::from_be_bytes([c, d]).into(),
                u16::from_be_bytes([a, b]).into(),
            ));
        }
        at += 2 + usize::from(u16::from_be_bytes([high, low]));
    }
    None
}

/// A piece cut out of longer base64 may lack padding, and its last bits may be anything.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Reads `N` bytes from `at` on, with `N` at most 12. Decodes no more of the base64 than that
/// takes.
fn read<const N: usize>(data: Data<'_>, at: usize) -> Option<[u8; N]> {
    match data {
        Data::Bytes(bytes) => bytes.get(at..at.checked_add(N)?)?.try_into().ok(),
        Data::Base64(text) => {
            let text = text.as_bytes();
            let from = at / 3 * 4;
            let to = text.len().min((at + N).div_ceil(3) * 4);
            let mut decoded = [0; 18];
            let length = LENIENT
                .decode_slice(text.get(from..to)?, &mut decoded)
                .ok()?;
            decoded[..length].get(at % 3..at % 3 + N)?.try_into().ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;
    use bytes::Bytes;
    use proptest::prelude::{any, proptest};

    use super::*;

    fn png(width: u32, height: u32) -> Vec<u8> {
        [
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
            &width.to_be_bytes()[..],
            &height.to_be_bytes(),
            b"\x08\x02\0\0\0",
        ]
        .concat()
    }

    fn gif(width: u16, height: u16) -> Vec<u8> {
        [
            b"GIF89a",
            &width.to_le_bytes()[..],
            &height.to_le_bytes(),
            &[0; 9],
        ]
        .concat()
    }

    /// A JPEG with `between` bytes of other segments before the segment with the size.
    fn jpeg_file(width: u16, height: u16, between: u16) -> Vec<u8> {
        let other = [
            b"\xFF\xE1",
            &(between + 2).to_be_bytes()[..],
            &vec![9; between.into()],
        ]
        .concat();
        let frame = [
            b"\xFF\xC2\0\x11\x08",
            &height.to_be_bytes()[..],
            &width.to_be_bytes(),
            &[3; 10],
        ]
        .concat();
        [b"\xFF\xD8", &other[..], b"\xFF\xC4\0\x04\0\0", &frame].concat()
    }

    fn webp_file(kind: &[u8], rest: &[u8]) -> Vec<u8> {
        [b"RIFF\0\0\0\0WEBP", kind, &[0; 4], rest, &[0; 8]].concat()
    }

    #[test]
    fn the_providers_examples_have_their_documented_costs() {
        // OpenAI's guide: 1024 × 1024 and 2048 × 4096.
        assert_eq!(
            [openai(1024, 1024), openai(2048, 4096), openai(100, 100)],
            [765, 1105, 255]
        );
        // Anthropic's guide: 200 × 200, 1000 × 1000 and 1092 × 1092.
        assert_eq!(
            [
                anthropic(200, 200),
                anthropic(1000, 1000),
                anthropic(1092, 1092)
            ],
            [54, 1334, 1590]
        );
        assert_eq!(UNKNOWN, tokens(1024, 1024));
    }

    #[test]
    fn headers_say_the_size() {
        let files = [
            png(640, 480),
            gif(640, 480),
            jpeg_file(640, 480, 0),
            jpeg_file(640, 480, 60_001),
            webp_file(b"VP8X", &[0, 0, 0, 0, 0x7F, 0x02, 0, 0xDF, 0x01, 0]),
            webp_file(
                b"VP8L",
                &[&[0x2F][..], &(639_u32 | 479 << 14).to_le_bytes()].concat(),
            ),
            webp_file(
                b"VP8 ",
                &[0, 0, 0, 0x9D, 0x01, 0x2A, 0x80, 0x02, 0xE0, 0x01],
            ),
        ];
        for file in files {
            let base64 = STANDARD.encode(&file);
            assert_eq!(
                size(Data::Bytes(&Bytes::from(file))),
                Some((640, 480)),
                "{base64:.60}"
            );
            assert_eq!(
                size(Data::Base64(&base64)),
                Some((640, 480)),
                "{base64:.60}"
            );
        }
    }

    #[test]
    fn images_without_a_size_cost_as_unknown() {
        for file in [
            &b""[..],
            b"no image at all",
            b"\xFF\xD8\xFF",
            &png(0, 10),
            &png(3, 3)[..20],
        ] {
            assert_eq!(
                cost(Data::Bytes(&Bytes::copy_from_slice(file))),
                UNKNOWN,
                "{file:?}"
            );
        }
        assert_eq!(cost(Data::Base64("not base64!")), UNKNOWN);
        let endless = [&b"\xFF\xD8"[..], &b"\xFF\xE0\0\x02".repeat(10_000)].concat();
        assert_eq!(cost(Data::Bytes(&endless.into())), UNKNOWN);
    }

    proptest! {
        #[test]
        fn l7_no_bytes_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..80), start in 0_usize..5) {
            let starts: [&[u8]; 5] = [b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\xFF\xD8\xFF", b"RIFF\0\0\0\0WEBPVP8 ", b""];
            bytes.splice(..0, starts[start].iter().copied());
            let base64 = STANDARD.encode(&bytes);
            let known = size(Data::Bytes(&bytes.clone().into()));
            assert_eq!(known, size(Data::Base64(&base64)));
            assert!(known.is_none_or(|(width, height)| width > 0 && height > 0));
            assert!((86..=1_600).contains(&cost(Data::Base64(&base64))));
        }
    }

    #[test]
    fn the_largest_sizes_do_not_overflow() {
        assert_eq!(tokens(u32::MAX, u32::MAX), 1_600);
        assert_eq!(tokens(u32::MAX, 1), 85 + 170 * 4);
        assert_eq!(tokens(1, 1), 255);
    }
}
