//! Content encodings, decoded only to read.

use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, header};
use ruzstd::decoding::StreamingDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};

use crate::lock::locked;

/// A content encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentEncoding {
    Identity,
    Gzip,
    Brotli,
    Zstd,
}

/// Bytes to which a byte may decode.
const RATIO: usize = 100;
/// The most members of a body: encoders write one, or one for each 64 KiB, and empty ones cost time alone.
const MEMBERS: usize = 4096;

impl ContentEncoding {
    /// The encoding that `content-encoding` names; `None` if it is not known.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut named = headers.get_all(header::CONTENT_ENCODING).iter();
        let first = named.next().map(|value| value.to_str().unwrap_or("?"));
        if named.next().is_some() {
            return None;
        }
        let name = first.unwrap_or_default().trim().to_ascii_lowercase();
        match &*name {
            "" | "identity" => Some(Self::Identity),
            "gzip" | "x-gzip" => Some(Self::Gzip),
            "br" => Some(Self::Brotli),
            "zstd" => Some(Self::Zstd),
            _ => None,
        }
    }

    /// The most bytes to which a body of `bytes` is decoded: at most `max`, and [`RATIO`] for each of its own above a
    /// mebibyte, since only what is made for that decodes to more.
    pub(crate) fn longest(self, bytes: usize, max: usize) -> usize {
        max.min(match self {
            Self::Identity => bytes,
            _ => bytes.saturating_mul(RATIO).saturating_add(1024 * 1024),
        })
    }

    /// The decoded body; `None` if it is longer than [`longest`](Self::longest), or not in that encoding.
    pub(crate) fn decode(self, body: &Bytes, max: usize) -> Option<Bytes> {
        let bytes = body.as_ref();
        let max = self.longest(bytes.len(), max);
        let mut decoded = Vec::new();
        match self {
            Self::Identity => return Some(body.clone()),
            Self::Gzip => members(bytes, |rest| {
                at_most(flate2::bufread::GzDecoder::new(rest), &mut decoded, max)
            })?,
            Self::Brotli => {
                // It has one member, and a buffer of one byte takes nothing of what follows.
                let mut rest = bytes;
                let decoder = brotli_decompressor::Decompressor::new(&mut rest, 1);
                at_most(decoder, &mut decoded, max)?;
                rest.is_empty().then_some(())?;
            }
            Self::Zstd => members(bytes, |rest| zstd_frame(rest, &mut decoded, max))?,
        }
        Some(decoded.into())
    }
}

/// Reads to the end, but no further than to `max` bytes in all.
fn at_most(reader: impl Read, decoded: &mut Vec<u8>, max: usize) -> Option<()> {
    let most = u64::try_from(max - decoded.len()).unwrap_or(u64::MAX);
    let read = reader.take(most.saturating_add(1)).read_to_end(decoded);
    (read.is_ok() && decoded.len() <= max).then_some(())
}

/// Decodes all members, or frames, of a body, one after the other.
fn members(mut bytes: &[u8], mut decode: impl FnMut(&mut &[u8]) -> Option<()>) -> Option<()> {
    let mut left = MEMBERS;
    while !bytes.is_empty() {
        left = left.checked_sub(1)?;
        decode(&mut bytes)?;
    }
    Some(())
}

/// Decodes a frame, or skips one that is to be skipped.
fn zstd_frame(bytes: &mut &[u8], decoded: &mut Vec<u8>, max: usize) -> Option<()> {
    let mut frame = match StreamingDecoder::new(&mut *bytes) {
        Ok(frame) => frame,
        Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
            length,
            ..
        })) => {
            *bytes = bytes.get(usize::try_from(length).unwrap_or(usize::MAX)..)?;
            return Some(());
        }
        Err(_) => return None,
    };
    at_most(&mut frame, decoded, max)?;
    let sum = frame.decoder.get_checksum_from_data();
    (sum.is_none() || sum == frame.decoder.get_calculated_checksum()).then_some(())
}

/// Bytes to which a stream may decode, and besides for each byte of it; and to which a piece may.
const DECODED: usize = 4 * 1024 * 1024;
const STREAM_RATIO: usize = 40;

/// Decodes a stream as it passes.
pub(crate) struct BodyDecoder {
    decoder: Box<dyn Write + Send>,
    decoded: DecodedPiece,
    /// Number of bytes to which the stream may still decode: decoding delays the reply.
    left: usize,
}

/// The output for one piece of a stream, within a limit: 53 bytes of brotli can hold 64 MiB.
#[derive(Clone, Default)]
struct DecodedPiece(Arc<Mutex<Vec<u8>>>);

impl Write for DecodedPiece {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut piece = locked(&self.0);
        if piece.len() + bytes.len() > DECODED {
            return Err(io::Error::other("a piece of a reply decodes to too much"));
        }
        piece.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl BodyDecoder {
    /// The decoder of a reply; `None` if its encoding is not decoded while it passes.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let decoded = DecodedPiece::default();
        let to = decoded.clone();
        let decoder: Box<dyn Write + Send> = match ContentEncoding::of(headers)? {
            ContentEncoding::Identity => Box::new(to),
            ContentEncoding::Gzip => Box::new(flate2::write::MultiGzDecoder::new(to)),
            ContentEncoding::Brotli => {
                Box::new(brotli_decompressor::DecompressorWriter::new(to, 4096))
            }
            ContentEncoding::Zstd => return None,
        };
        Some(Self {
            decoder,
            decoded,
            left: DECODED,
        })
    }

    /// Calls `read` with what can be decoded of `bytes`, in pieces.
    ///
    /// # Errors
    ///
    /// The bytes are not in that encoding, or decode to too much.
    pub(crate) fn pass(&mut self, bytes: &[u8], mut read: impl FnMut(&[u8])) -> io::Result<()> {
        // Small pieces, so that no bomb fills the memory.
        const PIECE: usize = 1024;
        for piece in bytes.chunks(PIECE) {
            self.decoder.write_all(piece)?;
            self.decoder.flush()?;
            let decoded = std::mem::take(&mut *locked(&self.decoded.0));
            let left = (self.left + piece.len() * STREAM_RATIO).checked_sub(decoded.len());
            self.left = left.ok_or_else(|| io::Error::other("a reply decodes to too much"))?;
            read(&decoded);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(bytes: &[u8]) -> Bytes {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap().into()
    }

    #[test]
    fn a_bomb_is_given_up_at_the_limit() {
        let bomb = gzip(&vec![0; 50_000_000]);
        assert!(bomb.len() < 100_000);
        let decoded = ContentEncoding::Gzip.decode(&bomb, 1_000_000);
        assert_eq!(decoded, None);
        let text = vec![b'x'; 1_000_000];
        assert_eq!(
            ContentEncoding::Gzip.decode(&gzip(&text), 1_000_000),
            Some(text.into())
        );
    }

    #[test]
    fn a_bomb_in_a_reply_is_given_up_while_it_passes() {
        // 64 MiB of zeros.
        let bomb = [
            0xcf, 0xff, 0xff, 0x7f, 0xf8, 0x27, 0x00, 0xe2, 0xb1, 0x40, 0x20, 0xf7, 0xfe, 0x9f,
            0xff, 0xff, 0xff, 0xf0, 0x4f, 0x00, 0xc4, 0x61, 0x01, 0x80, 0xee, 0xfd, 0x3f, 0xff,
            0xff, 0xff, 0xe1, 0x9f, 0x00, 0x88, 0xc3, 0x22, 0x00, 0xdd, 0xfb, 0xff, 0xfc, 0xff,
            0xff, 0xc7, 0x3f, 0x01, 0x10, 0x87, 0x05, 0x00, 0xba, 0xf7, 0xff,
        ];
        let mut headers = HeaderMap::new();
        let brotli = http::HeaderValue::from_static("br");
        headers.insert(header::CONTENT_ENCODING, brotli);
        // At the beginning, and after much that was hardly compressed.
        for earned in [0, 1 << 30] {
            let mut decoder = BodyDecoder::of(&headers).unwrap();
            decoder.left += earned;
            let passed = decoder.pass(&bomb, |_| {});
            assert!(passed.is_err() && locked(&decoder.decoded.0).len() <= DECODED);
        }
    }

    #[test]
    fn garbage_is_an_error_in_every_encoding() {
        let garbage = Bytes::from_static(b"{\"messages\": []} is not compressed");
        for encoding in [
            ContentEncoding::Gzip,
            ContentEncoding::Brotli,
            ContentEncoding::Zstd,
        ] {
            assert_eq!(encoding.decode(&garbage, 1000), None, "{encoding:?}");
        }
    }

    #[test]
    fn zstd_and_brotli_are_decoded() {
        let zstd = [
            0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x58, 0x65, 0x00, 0x00, 0x30, 0x68, 0x65, 0x6c, 0x6c,
            0x6f, 0x20, 0x01, 0x00, 0x31, 0x4a, 0x11, 0xa2, 0xed, 0x1e, 0x0c,
        ];
        let decoded = ContentEncoding::Zstd.decode(&Bytes::copy_from_slice(&zstd), 100);
        assert_eq!(decoded, Some(Bytes::from_static(b"hello hello hello")));
        // All frames count, skippable ones hold nothing, and a checksum is compared.
        let summed = [
            0x28, 0xb5, 0x2f, 0xfd, 0x24, 0x11, 0x65, 0x00, 0x00, 0x30, 0x68, 0x65, 0x6c, 0x6c,
            0x6f, 0x20, 0x01, 0x00, 0x31, 0x4a, 0x11, 0xa2, 0xed, 0x1e, 0x0c,
        ];
        let skipped = [0x50, 0x2a, 0x4d, 0x18, 0x02, 0x00, 0x00, 0x00, 0xff, 0xff];
        let frames = Bytes::from([&summed[..], &skipped, &zstd].concat());
        let twice = Bytes::from_static(b"hello hello hellohello hello hello");
        assert_eq!(ContentEncoding::Zstd.decode(&frames, 100), Some(twice));
        assert_eq!(ContentEncoding::Zstd.decode(&frames, 20), None);
        let mut wrong = summed;
        wrong[wrong.len() - 1] ^= 1;
        let then_more = [&zstd[..], b"more"].concat();
        for broken in [&wrong[..], &then_more, &skipped[..9]] {
            let broken = Bytes::copy_from_slice(broken);
            assert_eq!(ContentEncoding::Zstd.decode(&broken, 100), None);
        }
        let brotli = [0x0b, 0x02, 0x80, b'h', b'e', b'l', b'l', b'o', 0x03];
        let decoded = ContentEncoding::Brotli.decode(&Bytes::copy_from_slice(&brotli), 100);
        assert_eq!(decoded, Some(Bytes::from_static(b"hello")));
        for more in [&b"\n"[..], &brotli] {
            let then_more = Bytes::from([&brotli, more].concat());
            assert_eq!(ContentEncoding::Brotli.decode(&then_more, 100), None);
        }
    }

    #[test]
    fn members_are_limited_that_hold_nothing() {
        let two = [gzip(b"one "), gzip(b"two")].concat();
        let decoded = ContentEncoding::Gzip.decode(&two.into(), 100);
        assert_eq!(decoded, Some(Bytes::from_static(b"one two")));
        let zstd = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58, 0x01, 0x00, 0x00];
        for (encoding, empty) in [
            (ContentEncoding::Gzip, gzip(b"")),
            (ContentEncoding::Zstd, Bytes::copy_from_slice(&zstd)),
        ] {
            let most = empty.repeat(MEMBERS);
            let more = empty.repeat(MEMBERS + 1);
            assert_eq!(encoding.decode(&most.into(), 100), Some(Bytes::new()));
            assert_eq!(encoding.decode(&more.into(), 100), None);
        }
    }

    #[test]
    fn a_reply_is_decoded_while_it_passes() {
        let text = "data: {\"usage\": 1}\n\n".repeat(5_000);
        let compressed = gzip(text.as_bytes());
        let mut headers = HeaderMap::new();
        headers.insert(
            header::CONTENT_ENCODING,
            http::HeaderValue::from_static("gzip"),
        );
        let mut decoder = BodyDecoder::of(&headers).unwrap();
        let mut read = Vec::new();
        for piece in compressed.chunks(7) {
            decoder
                .pass(piece, |bytes| read.extend_from_slice(bytes))
                .unwrap();
        }
        assert_eq!(read, text.as_bytes());
    }
}
