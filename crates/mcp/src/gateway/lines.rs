//! Messages as lines of bounded length.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// Number of bytes that are read at once.
const CHUNK: usize = 64 * 1024;

/// Splits a stream of bytes into lines.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    /// Start of the first line in the buffer.
    start: usize,
    /// Number of bytes from `start` on that hold no line feed.
    searched: usize,
    max: usize,
    /// The byte that ends a line besides a line feed, if there is another.
    end: u8,
    is_in_long_line: bool,
    is_over: bool,
}

/// A piece of the stream. All pieces together are the stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'b> {
    /// A whole line with its end, which only the last line may lack.
    Line(&'b [u8]),
    /// A part of a line that is longer than the maximum.
    Part {
        bytes: &'b [u8],
        is_first: bool,
        is_last: bool,
    },
}

#[cfg(feature = "http")]
impl<'b> Piece<'b> {
    /// The bytes, and whether they are the first and the last of their line.
    pub(crate) fn parts(&self) -> (&'b [u8], bool, bool) {
        match *self {
            Self::Line(bytes) => (bytes, true, true),
            Self::Part {
                bytes,
                is_first,
                is_last,
            } => (bytes, is_first, is_last),
        }
    }
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// The lines of `reader`. A line with more than `max` bytes comes in parts.
    pub(crate) fn new(reader: R, max: usize) -> Self {
        Self::ended_by(b'\n', reader, max)
    }

    /// The lines of a stream of events. They end in a line feed, a carriage return, or both; a line feed
    /// that comes later than its carriage return is a piece of its own, so that no line waits for it.
    #[cfg(any(feature = "http", test))]
    pub(crate) fn of_events(reader: R, max: usize) -> Self {
        Self::ended_by(b'\r', reader, max)
    }

    fn ended_by(end: u8, reader: R, max: usize) -> Self {
        Self {
            reader,
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            max,
            end,
            is_in_long_line: false,
            is_over: false,
        }
    }

    /// The next piece; `None` at the end. Safe to drop before it is ready: nothing is lost.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Piece<'_>>> {
        loop {
            let rest = &self.buffer[self.start..];
            let length = match self.first_line(rest) {
                Some(length) => length,
                None if self.is_over => rest.len(),
                None => 0,
            };
            let is_long =
                self.is_in_long_line || rest.len() > self.max && (length == 0 || length > self.max);
            if is_long && !rest.is_empty() {
                let (is_first, is_last) = (!self.is_in_long_line, length > 0);
                let taken = if is_last { length } else { rest.len() };
                self.is_in_long_line = !is_last;
                return Ok(Some(Piece::Part {
                    bytes: self.take(taken),
                    is_first,
                    is_last,
                }));
            }
            if length > 0 {
                return Ok(Some(Piece::Line(self.take(length))));
            }
            if self.is_over {
                return Ok(None);
            }
            self.searched = rest.len();
            self.buffer.drain(..self.start);
            self.start = 0;
            if self.buffer.is_empty() {
                // The room of a large message is not kept.
                self.buffer = Vec::with_capacity(CHUNK);
            }
            self.buffer.reserve(CHUNK);
            self.is_over = self.reader.read_buf(&mut self.buffer).await? == 0;
        }
    }

    /// Returns true if a whole line is at hand, so that the next piece comes without reading.
    pub(crate) fn has_next(&self) -> bool {
        self.first_line(&self.buffer[self.start..]).is_some()
    }

    /// The length of the first line with its end.
    fn first_line(&self, rest: &[u8]) -> Option<usize> {
        let unsearched = &rest[self.searched..];
        let end = self.searched + memchr::memchr2(b'\n', self.end, unsearched)?;
        let is_pair = rest[end..].starts_with(b"\r\n");
        Some(end + 1 + usize::from(is_pair))
    }

    fn take(&mut self, length: usize) -> &[u8] {
        let from = self.start;
        self.start += length;
        self.searched = 0;
        &self.buffer[from..self.start]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Gives its bytes in pieces of the given lengths.
    struct InPieces(Vec<u8>, Vec<usize>);

    impl AsyncRead for InPieces {
        fn poll_read(
            mut self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
            to: &mut tokio::io::ReadBuf<'_>,
        ) -> std::task::Poll<io::Result<()>> {
            let length = self.1.pop().unwrap_or(usize::MAX).max(1);
            let length = length.min(self.0.len()).min(to.remaining());
            let rest = self.0.split_off(length);
            to.put_slice(&std::mem::replace(&mut self.0, rest));
            std::task::Poll::Ready(Ok(()))
        }
    }

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![4 => Just(b'a'), 1 => Just(b'\n'), 1 => any::<u8>()];
        prop::collection::vec(byte, 0..400)
    }

    proptest! {
        #[test]
        fn all_pieces_are_the_stream_and_only_long_lines_are_split(
            bytes in bytes(),
            reads in prop::collection::vec(1..50_usize, 0..40),
            max in 0..60_usize,
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let mut lines = Lines::new(InPieces(bytes.clone(), reads), max);
            let (mut all, mut whole, mut long) = (Vec::new(), Vec::new(), Vec::new());
            let mut is_open = false;
            while let Some(piece) = runtime.block_on(lines.next()).unwrap() {
                match piece {
                    Piece::Line(line) => {
                        prop_assert!(!is_open);
                        all.extend_from_slice(line);
                        whole.push(line.to_vec());
                    }
                    Piece::Part { bytes, is_first, is_last } => {
                        prop_assert_eq!(is_open, !is_first);
                        is_open = !is_last;
                        if is_first {
                            long.push(Vec::new());
                        }
                        all.extend_from_slice(bytes);
                        long.last_mut().unwrap().extend_from_slice(bytes);
                    }
                }
            }
            let (short, over): (Vec<_>, Vec<_>) =
                bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).partition(|line| line.len() <= max);
            prop_assert_eq!(all, bytes);
            prop_assert_eq!(whole, short);
            prop_assert_eq!(long, over);
        }

        /// Wherever the stream is cut, lines are the same, and a line feed is never taken for a line.
        #[test]
        fn lines_of_events_end_in_any_of_three_ways(
            bytes in prop::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'a')], 0..60),
            reads in prop::collection::vec(1..9_usize, 0..40),
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let mut lines = Lines::of_events(InPieces(bytes.clone(), reads), 1_000);
            let (mut all, mut found, mut is_after_return) = (Vec::new(), Vec::new(), false);
            while let Some(piece) = runtime.block_on(lines.next()).unwrap() {
                let Piece::Line(line) = piece else { unreachable!("it is short") };
                all.extend_from_slice(line);
                if !std::mem::replace(&mut is_after_return, line.ends_with(b"\r")) || line != b"\n" {
                    found.push(String::from_utf8(line.to_vec()).unwrap());
                }
            }
            let text = String::from_utf8(bytes.clone()).unwrap().replace("\r\n", "\n").replace('\r', "\n");
            let expected: Vec<&str> = text.split_inclusive('\n').map(|line| line.trim_end_matches('\n')).collect();
            let found: Vec<&str> = found.iter().map(|line| line.trim_end_matches(['\n', '\r'])).collect();
            prop_assert_eq!(all, bytes);
            prop_assert_eq!(found, expected);
        }
    }
}
