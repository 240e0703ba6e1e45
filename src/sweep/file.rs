//! Reads one transcript file.

use std::io::{self, Read};

use super::names::{NameScanner, Names};

/// Number of bytes of a file that are held at once.
pub(super) const BUFFER: usize = 64 << 10;

/// Reads `file` to its end and adds what it names to `names`. Returns false if it is not text.
pub(super) fn read(mut file: impl Read, names: &mut Names) -> io::Result<bool> {
    let (mut buffer, mut scanner) = (Vec::with_capacity(BUFFER), NameScanner::default());
    loop {
        let room = BUFFER - buffer.len();
        let read = file.by_ref().take(room as u64).read_to_end(&mut buffer)?;
        let whole = match std::str::from_utf8(&buffer) {
            Ok(text) => text.len(),
            // The last character is incomplete. The file may still be being written.
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => return Ok(false),
        };
        if buffer.contains(&0) {
            return Ok(false);
        }
        scanner.push(&buffer[..whole], &mut |piece| names.take(piece));
        if read == 0 {
            scanner.finish(&mut |piece| names.take(piece));
            return Ok(true);
        }
        buffer.drain(..whole);
    }
}
