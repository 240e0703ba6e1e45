//! Token costs of images, by the rules that providers publish, from the size in the image's header.
//!
//! The provider is not known here, so an image costs the higher of two rules:
//!
//! - OpenAI, `gpt-4o` in high detail: scaled down to fit 2048 × 2048, then to a shorter side of
//!   768; 85 tokens and 170 for each tile of 512 × 512
//!   (<https://platform.openai.com/docs/guides/images-vision>, "Calculating costs").
//! - Anthropic: scaled down to a longer side of 1568 and about 1600 tokens; width × height / 750
//!   (<https://docs.anthropic.com/en/docs/build-with-claude/vision>, "Evaluate image size").

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::format::Data;

/// Tokens of an image of unknown size: those of 1024 × 1024.
pub(super) const UNKNOWN: u64 = 1_399;
/// Number of signs of base64, and of bytes, in which the size is looked for. In a JPEG, it may stand after a small picture.
const MAX_HEADER: usize = 128 * 1024;

/// Number of tokens of the image in `data`; `None` if its header says no size.
pub(super) fn cost(data: Data<'_>) -> Option<u64> {
    let size = match data {
        Data::Bytes(bytes) => imagesize::blob_size(&bytes[..bytes.len().min(MAX_HEADER)]),
        Data::Base64(text) => {
            // Whole groups, since the last one may lack its padding.
            let whole = text.len().min(MAX_HEADER) / 4 * 4;
            imagesize::blob_size(&STANDARD.decode(&text.as_bytes()[..whole]).ok()?)
        }
    };
    let size = size.ok().filter(|size| size.width > 0 && size.height > 0)?;
    Some(tokens(size.width as u64, size.height as u64))
}

fn tokens(width: u64, height: u64) -> u64 {
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

#[cfg(test)]
mod tests {
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
        let expected = Some(tokens(640, 480));
        for file in files {
            let base64 = STANDARD.encode(&file);
            for text in [&*base64, base64.trim_end_matches('=')] {
                assert_eq!(cost(Data::Base64(text)), expected, "{base64:.60}");
            }
            assert_eq!(cost(Data::Bytes(&file.into())), expected, "{base64:.60}");
        }
    }

    #[test]
    fn images_without_a_size_are_told() {
        for file in [
            &b""[..],
            b"no image at all",
            b"\xFF\xD8\xFF",
            &png(0, 10),
            &png(3, 3)[..20],
        ] {
            let file = Bytes::copy_from_slice(file);
            assert_eq!(cost(Data::Bytes(&file)), None, "{file:?}");
        }
        assert_eq!(cost(Data::Base64("not base64!")), None);
        let endless = [&b"\xFF\xD8"[..], &b"\xFF\xE0\0\x02".repeat(1 << 20)].concat();
        assert_eq!(cost(Data::Bytes(&endless.into())), None);
    }

    proptest! {
        #[test]
        fn l7_no_bytes_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..80), start in 0_usize..5) {
            let starts: [&[u8]; 5] = [b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\xFF\xD8\xFF", b"RIFF\0\0\0\0WEBPVP8 ", b""];
            bytes.splice(..0, starts[start].iter().copied());
            let base64 = STANDARD.encode(&bytes);
            let known = cost(Data::Bytes(&bytes.into()));
            assert_eq!(known, cost(Data::Base64(&base64)));
            assert!(known.is_none_or(|tokens| (86..=1_600).contains(&tokens)));
        }
    }

    #[test]
    fn the_largest_sizes_do_not_overflow() {
        assert_eq!(tokens(u32::MAX.into(), u32::MAX.into()), 1_600);
        assert_eq!(tokens(u32::MAX.into(), 1), 85 + 170 * 4);
        assert_eq!(tokens(1, 1), 255);
    }
}
