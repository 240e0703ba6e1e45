//! Reads one transcript file.

use std::io::{self, Read};

use super::names::{NameScanner, Names};

/// Number of bytes of a file that are held at once.
pub(super) const BUFFER: usize = 64 << 10;

/// Reads `file` to its end and adds what it names to `names`. Bytes other than text are searched as they are in a
/// tool's output; a transcript of them may name content in another way.
pub(super) fn read(mut file: impl Read, is_output: bool, names: &mut Names) -> io::Result<()> {
    let not_text =
        "it is not UTF-8 text: unpack it, or move it out of the folder if it is not a transcript";
    let (mut buffer, mut filled) = (vec![0; BUFFER], 0);
    let mut scanner = NameScanner::default();
    loop {
        let read = match file.read(&mut buffer[filled..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        let bytes = &buffer[..filled + read];
        let whole = match std::str::from_utf8(bytes) {
            Ok(text) => text.len(),
            // The last character is incomplete. The file may still be being written.
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) if is_output => bytes.len(),
            Err(_) => return Err(io::Error::other(not_text)),
        };
        if bytes.contains(&0) && !is_output {
            return Err(io::Error::other(not_text));
        }
        scanner.push(&bytes[..whole], &mut |name| names.take(name));
        if read == 0 {
            scanner.finish(&mut |name| names.take(name));
            return Ok(());
        }
        let end = filled + read;
        buffer.copy_within(whole..end, 0);
        filled = end - whole;
    }
}
