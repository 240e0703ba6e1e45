//! One file with a transcript.

use std::io::{self, Read};

use super::live_error::Problem;
use super::names::{Names, Scanner};

/// How much of a file is held at once, in bytes.
pub(super) const BUFFER: usize = 64 << 10;

/// Takes what a text in a file names, read to its end.
pub(super) fn read(mut file: impl Read, names: &mut Names) -> Result<(), Problem> {
    let (mut buffer, mut filled) = (vec![0; BUFFER], 0);
    let mut scanner = Scanner::default();
    loop {
        let read = match file.read(&mut buffer[filled..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read.map_err(Problem::Io)?,
        };
        let bytes = &buffer[..filled + read];
        let whole = match std::str::from_utf8(bytes) {
            Ok(text) => text.len(),
            // A character that is not there to its end yet. Somebody may be writing it.
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => return Err(Problem::NoText),
        };
        if bytes.contains(&0) {
            return Err(Problem::NoText);
        }
        scanner.push(&bytes[..whole], &mut |piece| names.take(piece));
        if read == 0 {
            scanner.finish(&mut |piece| names.take(piece));
            return Ok(());
        }
        let end = filled + read;
        buffer.copy_within(whole..end, 0);
        filled = end - whole;
    }
}
