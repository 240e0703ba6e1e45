//! Finds modules that need each other.
//!
//! Modules are compared folder by folder, in every crate of the workspace. A folder's nodes are its
//! modules, each with everything below it, and the file of the module that the folder belongs to.
//! An arrow leads from one node to another if code of the first names an item that the second
//! defines: in a `use`, in a path, in a macro's arguments, or where the file of a type calls a
//! method from an `impl` of that type in another file, if no other type has a method of that name.
//! A circle is a set of nodes that all reach each other.
//!
//! Re-exports are followed to the item's definition and are not arrows themselves. So a module's
//! file may declare its children, re-export them and define what they share. If it also calls them,
//! the shared items belong in a file of their own.
//!
//! Comments and code under `cfg(test)` do not count. Not detected: methods of traits, methods that
//! a third file calls, and paths inside strings, such as serde's `with`.

mod graph;
mod source;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use graph::Modules;
use source::Source;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let workspace = env::args_os()
        .nth(1)
        .map_or_else(|| PathBuf::from("."), PathBuf::from);
    let mut roots = Vec::new();
    let mut circles = 0;
    find_roots(&workspace, &mut roots)?;
    for root in &roots {
        for circle in graph::circles(&read_modules(root)?) {
            circles += 1;
            writeln!(io::stdout(), "{}: {circle}", root.display())?;
        }
    }
    writeln!(io::stdout(), "{circles} circles in {} crates", roots.len())?;
    Ok(if circles == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Finds the folders of crate roots: those that hold a `lib.rs` or a `main.rs`. A crate in a single
/// file of another name has no modules to compare.
fn find_roots(folder: &Path, roots: &mut Vec<PathBuf>) -> io::Result<()> {
    if ["lib.rs", "main.rs"]
        .iter()
        .any(|file| folder.join(file).exists())
    {
        roots.push(folder.to_owned());
        return Ok(());
    }
    for entry in entries(folder)? {
        let name = entry.file_name().unwrap_or_default();
        if entry.is_dir()
            && name != "target"
            && name != "tests"
            && !name.as_encoded_bytes().starts_with(b".")
        {
            find_roots(&entry, roots)?;
        }
    }
    Ok(())
}

fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut entries = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<Vec<_>>>()?;
    entries.sort();
    Ok(entries)
}

/// Reads the modules of the crate in `root`, without tests.
fn read_modules(root: &Path) -> Result<Modules, Box<dyn Error>> {
    let mut modules = Modules::new();
    let mut folders = vec![(root.to_owned(), Vec::new())];
    while let Some((folder, path)) = folders.pop() {
        for entry in entries(&folder)? {
            let stem = entry
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let mut module = path.clone();
            if !["lib", "main", "mod"].contains(&stem.as_str()) {
                module.push(stem);
            }
            if entry.is_dir() {
                folders.push((entry, module));
            } else if entry.extension() == Some(OsStr::new("rs")) {
                let tokens = fs::read_to_string(&entry)?.parse();
                let tokens = tokens.map_err(|error| format!("{}: {error}", entry.display()))?;
                modules.insert(module, Source::read(tokens));
            }
        }
    }
    graph::remove_tests(&mut modules);
    Ok(modules)
}
