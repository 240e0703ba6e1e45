//! The names that may occur in a store's directory.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use regex::Regex;
use sha2::{Digest, Sha256};

use super::world::World;
use super::{Violation, require};

/// Checks that this crate makes such a key: a safe id unchanged or a digest, with fixed endings.
pub(crate) fn check_key(key: &str, ids: &BTreeSet<String>) -> Result<(), Violation> {
    static SHAPE: OnceLock<Regex> = OnceLock::new();
    static ENDING: OnceLock<Regex> = OnceLock::new();
    let shape = SHAPE.get_or_init(|| {
        Regex::new(r"^(one|two)/(agents/a-1/)?(s1/)?(trunc|clear)/([A-Za-z0-9._-]+)$").unwrap()
    });
    let ending = ENDING.get_or_init(|| {
        Regex::new(r"^(-[0-9]{1,4})?(-args(-[0-9]{1,2})?)?(-[0-9a-f]{16})?(\.[a-z0-9]{2,4})?$")
            .unwrap()
    });
    let hostile = || format!("a strange name: {key:?}");
    let Some(found) = shape.captures(key) else {
        return Err(Violation::new("L6", hostile()));
    };
    let name = &found[5];
    let is_digest = name.len() >= 16
        && name[..16]
            .bytes()
            .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let is_safe = |id: &&String| {
        !id.is_empty() && id.len() <= 64 && !id.starts_with('.') && !id.ends_with('.')
    };
    let is_id = |id: &String| {
        name.strip_prefix(id.as_str())
            .is_some_and(|rest| ending.is_match(rest))
    };
    let is_short_id = |id: &String| id.len() > 12 && is_id(&short(id));
    let is_ours = is_digest && ending.is_match(&name[16..])
        || ids.iter().filter(is_safe).any(is_id)
        || ids.iter().any(is_short_id);
    require(is_ours, "L6", hostile)
}

/// Returns six decimal digits that stand for a long id.
fn short(id: &str) -> String {
    let digest = Sha256::digest(id);
    let number = u64::from_be_bytes(digest[..8].try_into().unwrap());
    format!("{:06}", number % 1_000_000)
}

/// Checks that the stores' directories hold only expected files, with nothing outside them.
pub(crate) fn check_paths(world: &World) -> Result<(), Violation> {
    static EXPECTED: OnceLock<Regex> = OnceLock::new();
    let expected = EXPECTED.get_or_init(|| {
        let root =
            r"^(one|two)(/\.staging|(/agents)?|(/agents/a-1)?(/s1)?(/(trunc|clear)(/[A-Za-z0-9_-][A-Za-z0-9._-]*)?)?)$";
        Regex::new(root).unwrap()
    });
    for path in world.paths() {
        require(expected.is_match(&path), "L6", || {
            format!("{path} should not be there")
        })?;
    }
    Ok(())
}
