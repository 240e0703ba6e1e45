//! Heads of groups of lines: without its head, a line of a status or a diff says something else.

use crate::preview::units::{Unit, is_excerpt_of_file};

/// The beginning of a file in a diff of Git, or of several files.
const FILE: &str = "diff -";
/// Lines of a diff that say no more than the head of their file does.
const REPEATED: [&str; 3] = ["index ", "--- ", "+++ "];
/// The beginning of a commit above its diffs.
const COMMIT: &str = "commit ";

/// All units but the lines of a diff that only repeat their head.
pub(crate) fn without_repeats<'t>(units: &[Unit<'t>]) -> Vec<Unit<'t>> {
    let mut is_head = false;
    let is_told = |unit: &&Unit<'_>| {
        is_head = begins(unit, FILE) || is_head && !unit.text.starts_with("@@");
        !is_head || !REPEATED.iter().any(|begin| unit.text.starts_with(begin))
    };
    units.iter().filter(is_told).copied().collect()
}

/// The head of each unit's group: the file of a line of a diff and the commit of that file, or the line with a colon at its
/// end over lines that are indented more.
pub(crate) fn heads(units: &[Unit<'_>]) -> Vec<Option<usize>> {
    if units.iter().any(|unit| begins(unit, FILE)) {
        files(units)
    } else if is_excerpt_of_file(units) {
        vec![None; units.len()]
    } else {
        indented(units)
    }
}

fn begins(unit: &Unit<'_>, with: &str) -> bool {
    unit.place.byte == 0 && unit.text.starts_with(with)
}

fn files(units: &[Unit<'_>]) -> Vec<Option<usize>> {
    let (mut commit, mut file) = (None, None);
    let head = |at: usize| {
        if begins(&units[at], COMMIT) {
            (commit, file) = (Some(at), None);
            None
        } else if begins(&units[at], FILE) {
            file = Some(at);
            commit
        } else {
            file.or(commit)
        }
    };
    (0..units.len()).map(head).collect()
}

fn indented(units: &[Unit<'_>]) -> Vec<Option<usize>> {
    // The heads that are open, each with its indentation.
    let (mut open, mut heads) = (Vec::<(usize, usize)>::new(), Vec::new());
    for (at, unit) in units.iter().enumerate() {
        let text = unit.text.trim_start_matches([' ', '\t']);
        let indentation = unit.text.len() - text.len();
        let is_line = unit.place.byte == 0;
        while is_line && open.last().is_some_and(|(other, _)| *other >= indentation) {
            open.pop();
        }
        heads.push(open.last().map(|(_, head)| *head));
        if is_line && text.ends_with(':') && unit.place.ends_line {
            open.push((indentation, at));
        }
    }
    heads
}

#[cfg(test)]
mod tests {
    use crate::preview::Preview;

    #[test]
    fn a_status_names_its_groups() {
        let files = |group: &str, count: usize| -> String {
            let file = |n: usize| format!("\tmodified:   src/{group}/part_{n}/{group}_{n}.rs\n");
            (0..count).map(file).collect()
        };
        let text = format!(
            "On branch main\n\nChanges to be committed:\n{}\nChanges not staged for commit:\n  (use a command)\n{}\nUntracked files:\n{}",
            files("billing", 9),
            files("engine", 90),
            files("notes", 40),
        );
        let shown = Preview::Mixed.show(&text, 600);
        insta::assert_snapshot!(shown, @"
        1|On branch main
        3|Changes to be committed:
        	modified:   src/billing/part_0/billing_0.rs
        	modified:   src/billing/part_1/billing_1.rs
        	modified:   src/billing/part_2/billing_2.rs
        	modified:   src/billing/part_3/billing_3.rs
        	modified:   src/billing/part_4/billing_4.rs
        	modified:   src/billing/part_5/billing_5.rs
        	modified:   src/billing/part_6/billing_6.rs
        14|Changes not staged for commit:
        107|Untracked files:
        146|	modified:   src/notes/part_38/notes_38.rs
        	modified:   src/notes/part_39/notes_39.rs
        names: 26 engine_10 27 engine_11
        [… 5755 B …]
        ");
        let shown = Preview::Lines.show(&text, 160);
        assert!(
            !shown.contains("engine/") || shown.contains("not staged"),
            "{shown}"
        );
    }

    #[test]
    fn the_message_of_a_commit_comes_first() {
        let diff: String = (10..60)
            .map(|n| {
                format!(
                    "diff --git a/{n}.rs b/{n}.rs\n@@ -1 +1 @@\n-    old_{n}()\n+    new_{n}()\n"
                )
            })
            .collect();
        let text = format!(
            "commit 0a1b2c3\n\n    Wait longer\n\n    some of the pods were lost\n\n{diff}"
        );
        let shown = Preview::Mixed.show(&text, 600);
        assert!(shown.contains("pods were lost"), "{shown}");
    }

    #[test]
    fn lines_of_a_diff_come_with_their_commit() {
        let hunk = |n: usize| {
            format!(
                "@@ -{n} +{n} @@\n     let before_{n} = first_{n}();\n+    new_{n}(SIZE_{n});\n"
            )
        };
        let commit = |n: usize| {
            format!(
                "commit {n}a1b2c3d\n\n    Change it\n\ndiff --git a/part.rs b/part.rs\n{}",
                hunk(n)
            )
        };
        let text: String = (10..40).map(commit).collect();
        let shown = Preview::Mixed.show(&text, 400);
        for n in 10..40 {
            let is_shown = shown.contains(&format!("new_{n}("));
            assert!(
                !is_shown || shown.contains(&format!("commit {n}a")),
                "{n}: {shown}"
            );
        }
    }

    #[test]
    fn a_line_of_a_diff_comes_with_its_file() {
        let file = |n: usize| {
            format!(
                "diff --git a/src/part_{n}.rs b/src/part_{n}.rs\nindex 0a1b2c{n:02}..3d4e5f{n:02} 100644\n--- a/src/part_{n}.rs\n+++ b/src/part_{n}.rs\n@@ -{n},3 +{n},3 @@ fn part_{n}() {{\n     let before_{n} = first_{n}();\n-    old_{n}(before_{n});\n+    new_{n}(before_{n}, SIZE_{n});\n"
            )
        };
        let text: String = (10..40).map(file).collect();
        let shown = Preview::Lines.show(&text, 500);
        insta::assert_snapshot!(shown, @"
        1|diff --git a/src/part_10.rs b/src/part_10.rs
        6|     let before_10 = first_10();
        8|+    new_10(before_10, SIZE_10);
        diff --git a/src/part_11.rs b/src/part_11.rs
        16|+    new_11(before_11, SIZE_11);
        diff --git a/src/part_12.rs b/src/part_12.rs
        24|+    new_12(before_12, SIZE_12);
        diff --git a/src/part_13.rs b/src/part_13.rs
        32|+    new_13(before_13, SIZE_13);
        233|diff --git a/src/part_39.rs b/src/part_39.rs
        240|+    new_39(before_39, SIZE_39);
        [… 6837 B …]
        ");
        let few: String = (10..13).map(file).collect::<String>() + &"     plain words\n".repeat(99);
        let shown = Preview::Mixed.show(&few, 600);
        for n in 10..13 {
            assert!(
                shown.contains(&format!("diff --git a/src/part_{n}.rs")),
                "{shown}"
            );
        }
    }
}
