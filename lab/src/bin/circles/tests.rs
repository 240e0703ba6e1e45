use std::collections::BTreeMap;

use crate::graph::{Modules, circles, remove_tests};
use crate::source::Source;

/// Returns the circles among files, given as modules and texts.
fn found(files: &[(&str, &str)]) -> String {
    let mut modules: Modules = BTreeMap::from([(Vec::new(), Source::default())]);
    for (module, text) in files {
        let path = module
            .split("::")
            .filter(|name| !name.is_empty())
            .map(str::to_owned);
        modules.insert(path.collect(), Source::read(text.parse().unwrap()));
    }
    remove_tests(&mut modules);
    circles(&modules).iter().map(ToString::to_string).collect()
}

#[test]
fn siblings_that_name_each_other_are_a_circle() {
    let files = [
        (
            "a",
            "use crate::b::{self, deep::C};\nfn f() -> C { b::g() }",
        ),
        ("b", "pub(crate) fn g() { debug!(n = super::a::f()) }"),
        ("b::deep", "pub struct C;"),
    ];
    assert_eq!(
        found(&files),
        "a, b\n    a:2 -> b: g\n    a:1 -> b::deep: C\n    b:1 -> a: f\n"
    );
}

#[test]
fn re_exports_lead_to_the_definition_and_are_no_arrows() {
    let files = [
        ("", "mod a; mod b; pub use a::A;"),
        ("a", "mod inner; pub use inner::A;"),
        ("a::inner", "pub struct A; struct Other(crate::c::C);"),
        ("b", "use crate::A as Renamed; pub struct B(Renamed);"),
        ("c", "use crate::b::B; pub struct C;"),
    ];
    let found = found(&files);
    assert!(found.starts_with("a, b, c\n"), "{found}");
    assert!(found.contains("b:1 -> a::inner: A\n"), "{found}");
}

#[test]
fn a_modules_file_that_defines_and_calls_is_a_circle_with_its_child() {
    let child = ("a::child", "use super::Shared; pub fn run(_: Shared) {}");
    let calls = (
        "a",
        "mod child; pub struct Shared; fn f() { child::run(Shared) }",
    );
    assert!(found(&[calls, child]).starts_with("a, a::child\n"));
    let hands_on = ("a", "mod child; pub use child::run; pub struct Shared;");
    assert_eq!(found(&[hands_on, child]), "");
    let through_its_own_name = (
        "a",
        "mod child; pub use child::run; pub struct Shared; fn f() { run(Shared) }",
    );
    assert!(found(&[through_its_own_name, child]).starts_with("a, a::child\n"));
}

#[test]
fn a_type_that_calls_its_methods_in_another_file_is_a_circle_with_it() {
    let home = (
        "a",
        "pub struct A<T>(T); impl<T> A<T> { fn f(&self) { self.g() } }",
    );
    let other = (
        "b",
        "impl<T: Fn() -> u8> crate::a::A<T> where T: Copy { pub fn g(&self) {} }",
    );
    let trait_impl = (
        "b",
        "use crate::a::A; impl<T> Show for A<T> { fn g(&self) {} }",
    );
    assert!(found(&[home, other]).contains("a:1 -> b: A::g\n"));
    assert_eq!(found(&[home, trait_impl]), "");
}

#[test]
fn comments_and_tests_do_not_count() {
    let files = [
        (
            "a",
            "/// See [`crate::b::B`].\npub struct A; #[cfg(test)] use crate::b::{B, C}; fn f() { \"crate::b::B\" }",
        ),
        ("b", "use crate::a::A; #[cfg(test)] mod tests;"),
        ("b::tests", "use crate::a::A;"),
        (
            "c",
            "use crate::a::A; #[cfg(all(test, unix))] mod tests { use crate::d::D; }",
        ),
        ("d", "use crate::c::C;"),
    ];
    assert_eq!(found(&files), "");
}
