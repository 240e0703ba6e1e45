//! The path of a store: resolved without writing, created for the first content.

use std::io;
use std::path::{Component, Path, PathBuf};

/// Resolves the links in the existing part of the absolute `path`. None of the path needs to exist.
///
/// Fails for a path that can never be a directory. Other problems, such as a permission, may be
/// fixed later.
pub(super) fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut at = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            // Links are already resolved, so `..` just removes the last component.
            Component::ParentDir => drop(at.pop()),
            Component::Prefix(_) | Component::RootDir => at.push(component),
            Component::Normal(name) => {
                at.push(name);
                match at.canonicalize() {
                    Ok(real) => at = real,
                    Err(error) if is_hopeless(&error) || at.is_symlink() => return Err(error),
                    Err(_) => {}
                }
            }
        }
    }
    match at.metadata() {
        Ok(metadata) if !metadata.is_dir() => Err(io::ErrorKind::NotADirectory.into()),
        _ => Ok(at),
    }
}

fn is_hopeless(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, InvalidInput, NotADirectory};
    matches!(error.kind(), InvalidFilename | InvalidInput | NotADirectory)
}

/// Creates the directory `path` with mode 0700, and its parents.
pub(super) fn make(path: &Path) -> io::Result<()> {
    // Parents of the new directories: they must be synced, or a power loss could remove the new
    // store.
    let parents: Vec<&Path> = path
        .ancestors()
        .take_while(|directory| !directory.exists())
        .filter_map(Path::parent)
        .collect();
    private().recursive(true).create(path)?;
    // Sync here, since other handles can't tell that the directories are new.
    if cfg!(unix) {
        for parent in parents {
            sync(&std::fs::File::open(parent)?)?;
        }
    }
    Ok(())
}

fn private() -> std::fs::DirBuilder {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has modes"))]
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

/// The absolute `path` of a directory as hints show it, ending in `/`. `None` if they can't.
pub(super) fn shown(path: &Path) -> Option<String> {
    let path = path
        .to_str()
        .filter(|path| !path.contains(char::is_control))?;
    Some(ending_in_slash(portable(path)))
}

/// Makes `prefix` end in a slash.
pub(super) fn ending_in_slash(mut prefix: String) -> String {
    if !prefix.ends_with('/') {
        prefix.push('/');
    }
    prefix
}

/// Replaces the separators of `path` by those of keys. Windows canonicalizes to `\\?\C:\store`, a
/// form that allows no `/`.
fn portable(path: &str) -> String {
    if !cfg!(windows) {
        return path.to_owned();
    }
    let path = match path.strip_prefix(r"\\?\UNC\") {
        Some(share) => format!(r"\\{share}"),
        None => path.strip_prefix(r"\\?\").unwrap_or(path).to_owned(),
    };
    path.replace('\\', "/")
}

pub(super) fn sync(directory: &std::fs::File) -> io::Result<()> {
    use io::ErrorKind::{InvalidInput, Unsupported};
    match directory.sync_all() {
        // This file system can't sync directories, so nothing more can be done.
        Err(error) if matches!(error.kind(), InvalidInput | Unsupported) => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_end_in_one_slash() {
        for (given, made) in [
            ("/", "/"),
            (".offcut", ".offcut/"),
            (".offcut/", ".offcut/"),
            ("offcut:", "offcut:/"),
            ("", "/"),
        ] {
            assert_eq!(ending_in_slash(given.to_owned()), made);
        }
    }

    #[test]
    fn a_path_that_is_not_there_is_resolved_as_it_will_be() {
        let home = tempfile::tempdir().unwrap();
        let real = home.path().canonicalize().unwrap();
        for (given, resolved) in [
            ("", ""),
            ("a/b", "a/b"),
            ("a/../b/./c", "b/c"),
            ("a/b/../..", ""),
        ] {
            let resolved = real
                .components()
                .chain(Path::new(resolved).components())
                .collect::<PathBuf>();
            assert_eq!(
                resolve(&home.path().join(given)).unwrap(),
                resolved,
                "{given}"
            );
        }
        assert_eq!(home.path().read_dir().unwrap().count(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn a_parent_of_a_link_is_that_of_what_it_leads_to() {
        let home = tempfile::tempdir().unwrap();
        let real = home.path().canonicalize().unwrap();
        std::fs::create_dir_all(real.join("deep/er")).unwrap();
        std::os::unix::fs::symlink("deep/er", real.join("link")).unwrap();
        assert_eq!(
            resolve(&real.join("link/../new")).unwrap(),
            real.join("deep/new")
        );
    }
}
