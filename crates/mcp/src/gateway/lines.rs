//! Messages as lines of bounded length.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// Number of bytes that are read at once.
const CHUNK: usize = 64 * 1024;

/// Number of bytes at each end of a line over the maximum that are kept.
pub(crate) const END: usize = 256;

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
    /// True if the first line is over the maximum, and its middle may have been dropped.
    is_long: bool,
    is_over: bool,
}

/// A line with its end, which only the last one may lack.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'b> {
    Whole(&'b [u8]),
    /// A line over the maximum, of which at least both ends are there.
    TooLong(&'b [u8]),
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// The lines of `reader`. One with more than `max` bytes is not kept.
    pub(crate) fn new(reader: R, max: usize) -> Self {
        Self {
            reader,
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            max,
            is_long: false,
            is_over: false,
        }
    }

    /// The next line; `None` at the end. Safe to drop before it is ready: nothing is lost.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        loop {
            let rest = &self.buffer[self.start..];
            let last = (self.is_over && !rest.is_empty()).then_some(rest.len());
            if let Some(length) = self.first_line(rest).or(last) {
                let is_long = std::mem::take(&mut self.is_long) || length > self.max;
                let line = self.take(length);
                let line = if is_long {
                    Line::TooLong(line)
                } else {
                    Line::Whole(line)
                };
                return Ok(Some(line));
            }
            if self.is_over {
                return Ok(None);
            }
            self.is_long |= rest.len() > self.max;
            self.buffer.drain(..self.start);
            self.start = 0;
            if self.is_long && self.buffer.len() > 2 * END {
                self.buffer.drain(END..self.buffer.len() - END);
            }
            self.searched = self.buffer.len();
            if self.buffer.is_empty() {
                // The room of a large message is not kept.
                self.buffer = Vec::with_capacity(CHUNK);
            }
            self.buffer.reserve(CHUNK);
            self.is_over = self.reader.read_buf(&mut self.buffer).await? == 0;
        }
    }

    /// The length of the first line with its end.
    fn first_line(&self, rest: &[u8]) -> Option<usize> {
        let end = memchr::memchr(b'\n', &rest[self.searched..])?;
        Some(self.searched + end + 1)
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
        fn all_lines_are_the_stream_and_only_long_ones_lack_their_middle(
            bytes in bytes(),
            reads in prop::collection::vec(1..50_usize, 0..40),
            max in 0..60_usize,
        ) {
            let lines = bytes.split_inclusive(|byte| *byte == b'\n');
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let mut found = Lines::new(InPieces(bytes.clone(), reads), max);
            for line in lines {
                let next = runtime.block_on(found.next()).unwrap();
                let expected = if line.len() > max { Line::TooLong(line) } else { Line::Whole(line) };
                prop_assert_eq!(next, Some(expected));
            }
            prop_assert_eq!(runtime.block_on(found.next()).unwrap(), None);
        }

        #[test]
        fn of_a_long_line_both_ends_are_kept(
            length in 2_000..20_000_usize,
            reads in prop::collection::vec(1..5_000_usize, 0..40),
        ) {
            let long: Vec<u8> = (0..length).map(|nth| b'a' + (nth % 26) as u8).chain(*b"\n").collect();
            let stream = [&long[..], b"next"].concat();
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let mut lines = Lines::new(InPieces(stream, reads), 1_000);
            let Some(Line::TooLong(kept)) = runtime.block_on(lines.next()).unwrap() else {
                panic!("it is long");
            };
            prop_assert!(kept.starts_with(&long[..END]) && kept.ends_with(&long[long.len() - END..]));
            prop_assert_eq!(runtime.block_on(lines.next()).unwrap(), Some(Line::Whole(b"next")));
        }
    }
}
