//! The directory where content waits for its name, and stays if it can't be uploaded.

use std::path::PathBuf;

use sha2::{Digest, Sha256};

use crate::open_error::OpenError;

/// Returns `offcut/spool` in the user's own directory for state. The system's directory for
/// temporary files would not do: all users share it, and it is emptied while hints still point
/// there.
pub(crate) fn default_directory(
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<PathBuf, OpenError> {
    let absolute = |name: &str| {
        env(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let home = || std::env::home_dir().filter(|home| home.is_absolute());
    let state = if cfg!(windows) {
        absolute("LOCALAPPDATA").or_else(|| Some(home()?.join("AppData").join("Local")))
    } else if cfg!(target_os = "macos") {
        home().map(|home| home.join("Library").join("Application Support"))
    } else {
        absolute("XDG_STATE_HOME").or_else(|| Some(home()?.join(".local").join("state")))
    };
    Ok(state
        .ok_or(OpenError::Spool { source: None })?
        .join("offcut")
        .join("spool"))
}

/// Returns the name of one store's directory in the spool. Keys alone determine the paths in it,
/// and two stores may have the same keys.
pub(crate) fn name(origin: &str) -> String {
    Sha256::digest(origin)[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(all(unix, not(target_os = "macos")))]
    #[test]
    fn the_spool_is_where_state_is_kept() {
        let env = |name: &str| (name == "XDG_STATE_HOME").then(|| "/home/me/state".to_owned());
        assert_eq!(
            default_directory(&env).unwrap(),
            PathBuf::from("/home/me/state/offcut/spool")
        );
        // A relative path would be another directory in each process.
        let relative = |name: &str| (name == "XDG_STATE_HOME").then(|| "state".to_owned());
        assert!(
            default_directory(&relative)
                .is_ok_and(|path| path.ends_with(".local/state/offcut/spool"))
        );
    }

    #[test]
    fn stores_do_not_share_a_directory() {
        assert_ne!(name("s3://one/"), name("s3://two/"));
        assert_eq!(name("s3://one/").len(), 16);
    }
}
