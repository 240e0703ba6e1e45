//! Reads one transcript file.

use std::io::{self, Read};

use super::names::{NameScanner, Names};

/// Number of bytes of a file that are held at once.
pub(super) const BUFFER: usize = 64 << 10;

/// Reads `file` to its end and adds what it names to `names`. It may hold any bytes: names are ASCII.
pub(super) fn read(mut file: impl Read, names: &mut Names) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    let mut scanner = NameScanner::default();
    // UTF-16 has a zero beside each byte of a name.
    let mut wide: Option<NameScanner> = None;
    loop {
        let read = match file.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        let bytes = &buffer[..read];
        scanner.push(bytes, &mut |piece| names.take(piece));
        if wide.is_some() || bytes.contains(&0) {
            let narrow: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != 0).collect();
            let wide = wide.get_or_insert_default();
            wide.push(&narrow, &mut |piece| names.take(piece));
        }
        if read == 0 {
            for scanner in [Some(scanner), wide].into_iter().flatten() {
                scanner.finish(&mut |piece| names.take(piece));
            }
            return Ok(());
        }
    }
}
