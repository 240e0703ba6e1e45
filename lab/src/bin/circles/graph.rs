//! References between modules, and the circles that they form.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};

use crate::source::{Segments, Source};

/// The modules of a crate, by path; the root's path is empty.
pub(crate) type Modules = BTreeMap<Segments, Source>;

/// A place where code of one module names an item that another defines.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Naming {
    from: Segments,
    line: usize,
    to: Segments,
    item: String,
}

/// Modules of one folder that all reach each other, and the places where they name each other.
#[derive(Debug)]
pub(crate) struct Circle {
    nodes: BTreeSet<String>,
    namings: Vec<Naming>,
}

/// Removes modules that are declared as tests, and everything below them.
pub(crate) fn remove_tests(modules: &mut Modules) {
    let child = |(module, source): (&Segments, &Source)| {
        let tests = source.tests.iter();
        tests
            .map(|name| [module.as_slice(), std::slice::from_ref(name)].concat())
            .collect()
    };
    let tests: Vec<Segments> = modules.iter().flat_map::<Vec<_>, _>(child).collect();
    modules.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
}

/// Finds the circles of a crate, folder by folder.
pub(crate) fn circles(modules: &Modules) -> Vec<Circle> {
    let mut folders: BTreeMap<Segments, Vec<Naming>> = BTreeMap::new();
    for naming in namings(modules) {
        folders.entry(folder(&naming)).or_default().push(naming);
    }
    folders
        .iter()
        .flat_map(|(folder, namings)| circles_of_folder(folder, namings))
        .collect()
}

/// Returns the innermost folder that holds both ends of an arrow.
fn folder(naming: &Naming) -> Segments {
    let both = naming.from.iter().zip(&naming.to);
    both.take_while(|(from, to)| from == to)
        .map(|(name, _)| name.clone())
        .collect()
}

/// Returns the node of `folder` that `module` belongs to.
fn node(folder: &[String], module: &[String]) -> String {
    name(&module[..module.len().min(folder.len() + 1)])
}

fn name(module: &[String]) -> String {
    if module.is_empty() {
        "lib".to_owned()
    } else {
        module.join("::")
    }
}

fn circles_of_folder(folder: &[String], namings: &[Naming]) -> Vec<Circle> {
    let mut arrows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for naming in namings {
        arrows
            .entry(node(folder, &naming.from))
            .or_default()
            .insert(node(folder, &naming.to));
    }
    let reached: BTreeMap<_, _> = arrows
        .keys()
        .map(|from| (from, reach(from, &arrows)))
        .collect();
    let mut left: BTreeSet<&String> = arrows.keys().collect();
    let mut circles = Vec::new();
    while let Some(first) = left.pop_first() {
        let back = |to: &&String| {
            reached
                .get(to)
                .is_some_and(|reached| reached.contains(first))
        };
        let nodes: BTreeSet<String> = reached[first].iter().filter(back).cloned().collect();
        if nodes.len() > 1 {
            left.retain(|name| !nodes.contains(*name));
            let within = |naming: &&Naming| {
                nodes.contains(&node(folder, &naming.from))
                    && nodes.contains(&node(folder, &naming.to))
            };
            let namings = namings.iter().filter(within).cloned().collect();
            circles.push(Circle { nodes, namings });
        }
    }
    circles
}

/// Returns all nodes that can be reached from `from` by arrows.
fn reach(from: &String, arrows: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(next) = open.pop() {
        for to in arrows.get(next).into_iter().flatten() {
            if reached.insert(to.clone()) {
                open.push(to);
            }
        }
    }
    reached
}

/// Finds every arrow between files, once for each item.
fn namings(modules: &Modules) -> Vec<Naming> {
    let mut found = BTreeMap::new();
    let mut note = |from: &Segments, line: usize, to: Segments, item: &str| {
        if *from != to {
            found
                .entry((from.clone(), to, item.to_owned()))
                .or_insert(line);
        }
    };
    for (module, source) in modules {
        for (path, line) in &source.named {
            if let Some((to, item)) = definition(modules, module, path, 0) {
                note(module, *line, to, &item);
            }
        }
        for (path, method) in &source.methods {
            let Some((home, type_name)) = definition(modules, module, path, 0) else {
                continue;
            };
            for (called, line) in &modules[&home].called {
                if called == method && is_unique(modules, method) {
                    note(
                        &home,
                        *line,
                        module.clone(),
                        &format!("{type_name}::{method}"),
                    );
                }
            }
        }
    }
    found
        .into_iter()
        .map(|((from, to, item), line)| Naming {
            from,
            line,
            to,
            item,
        })
        .collect()
}

/// Returns true if only one type has a method of this name.
fn is_unique(modules: &Modules, method: &str) -> bool {
    let methods = modules.values().flat_map(|source| &source.methods);
    methods.filter(|(_, other)| other == method).count() == 1
}

/// Returns the module that defines what `path` names in the module `from`, and the item's name;
/// `None` for modules, and for items of other crates or of `from` itself.
fn definition(
    modules: &Modules,
    from: &[String],
    path: &[String],
    steps: usize,
) -> Option<(Segments, String)> {
    if steps > 16 {
        return None; // a name that refers to itself, such as `use regex;`
    }
    let mut here = from.to_vec();
    for (at, word) in path.iter().enumerate() {
        let child = [here.as_slice(), std::slice::from_ref(word)].concat();
        let import = modules.get(&here)?.imports.get(word);
        match word.as_str() {
            "crate" => here.clear(),
            "self" => {}
            "super" => {
                here.pop()?;
            }
            _ if modules.contains_key(&child) => here = child,
            _ => match import {
                Some(import) => {
                    let whole = [import, &path[at + 1..]].concat();
                    return definition(modules, &here, &whole, steps + 1);
                }
                None if at == 0 => return None,
                // A module whose file is set by a `path` attribute.
                None if modules[&here].children.contains(word) => return None,
                None => return Some((here, word.clone())),
            },
        }
    }
    None
}

impl Display for Circle {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let nodes = self.nodes.iter().map(String::as_str).collect::<Vec<_>>();
        writeln!(f, "{}", nodes.join(", "))?;
        for Naming {
            from,
            line,
            to,
            item,
        } in &self.namings
        {
            writeln!(f, "    {}:{line} -> {}: {item}", name(from), name(to))?;
        }
        Ok(())
    }
}
