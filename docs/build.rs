//! Copies the pages with their links changed for rustdoc, where each page is a module.

use std::path::Path;
use std::{env, fs, io};

/// The place of files that are not pages.
const REPOSITORY: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/");

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=.");
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    for entry in fs::read_dir(".")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") {
            let mut page = with_links(&fs::read_to_string(&name)?, name == "README.md");
            if !page.starts_with('#') {
                // The table of options, which is also part of another page.
                page.insert_str(0, "# Options\n\n");
            }
            fs::write(Path::new(&out).join(&name), page)?;
        }
    }
    Ok(())
}

/// The page with its links changed. Code keeps what looks like one.
fn with_links(page: &str, front: bool) -> String {
    let mut changed = String::with_capacity(page.len());
    let mut fenced = false;
    for line in page.split_inclusive('\n') {
        fenced ^= line.starts_with("```");
        let mut rest = line;
        while let Some((before, after)) = rest.split_once("](").filter(|_| !fenced) {
            let (target, left) = after.split_once(')').unwrap_or((after, ""));
            changed += &format!("{before}]({})", link(target, front));
            rest = left;
        }
        changed += rest;
    }
    changed
}

/// The link's target, seen from the front page or from a page's module.
fn link(target: &str, front: bool) -> String {
    let (path, anchor) = match target.find('#') {
        Some(at) => target.split_at(at),
        None => (target, ""),
    };
    if path.is_empty() || path.contains("://") {
        return target.into();
    }
    if let Some(outside) = path.strip_prefix("../") {
        return format!("{REPOSITORY}{outside}{anchor}");
    }
    let module = path.trim_end_matches(".md").replace('-', "_");
    let up = if front { "" } else { "../" };
    format!("{up}{module}/index.html{anchor}")
}
