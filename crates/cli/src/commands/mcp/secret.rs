//! The secret of a user's gateways, with which they name what nobody else is to find.

use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use tempfile::NamedTempFile;

use crate::agents::layout::Home;
use crate::agents::log;
use crate::output;

/// Number of bytes of a secret.
const LENGTH: usize = 32;

/// The user's secret, the same after a restart; one for this process alone if none can be kept.
pub(super) fn secret() -> Vec<u8> {
    let kept = Home::from_env().and_then(|home| kept(&home.path().join("mcp.secret")).ok());
    kept.or_else(|| {
        output::warn(
            "no secret can be kept in `mcp.secret`, which may be damaged: hints will lead nowhere after a restart",
        );
        random().ok()
    })
    .unwrap_or_default()
}

/// The secret in a file, which is written if there is none.
fn kept(path: &Path) -> io::Result<Vec<u8>> {
    if let Some(secret) = read(path)? {
        return Ok(secret);
    }
    let folder = path.parent().unwrap_or(path);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    // Only its owner can read it.
    let mut new = NamedTempFile::new_in(folder)?;
    new.write_all(&random()?)?;
    // An empty file would stay for good.
    new.as_file().sync_all()?;
    // If several begin at once, the secret of the first counts.
    _ = new.persist_noclobber(path);
    read(path)?.ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let Some(mut file) = log::open(path)? else {
        return Ok(None);
    };
    // One that is too short could be guessed.
    let mut secret = vec![0; LENGTH];
    file.read_exact(&mut secret).map(|()| Some(secret))
}

fn random() -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; LENGTH];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}
