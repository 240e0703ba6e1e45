//! Rewrites the lines that an agent gives to its shell, so that all of their output passes through a
//! sink of ours.
//!
//! A rewritten line runs in the same shell as before: directory, variables, options, traps, jobs and
//! the exit code stay, and so does the number of each line in messages. Its text is in it once and
//! unchanged, in braces whose output goes to two pipes with names. If the sink can't be opened, the
//! line writes where it did before.

mod check;
mod cursor;
mod facts;
mod kind;
mod words;

use check::examine;

pub use kind::Shell;

/// The sink that takes the output of one line.
#[derive(Debug, Clone, Copy)]
pub struct Sink<'a> {
    /// The path of the program `offcut`.
    pub program: &'a str,
    /// The directory of this one sink, which must not exist yet: an absolute path, short enough for
    /// a socket in it.
    pub directory: &'a str,
    /// Options for the sink, such as `--call-id`.
    pub options: &'a [&'a str],
}

/// Rewrites `line` so that its output passes through `sink`. Returns `None` unless it is certain that
/// the line still does the same.
///
/// That is so for syntax that is not closed or not known here, for `exec`, for `exit` together with
/// `trap`, and for several lines that change how the rest is parsed.
#[must_use]
pub fn rewrite(line: &str, shell: Shell, sink: &Sink<'_>) -> Option<String> {
    let facts = examine(line, shell)?;
    if facts.traps && facts.exits {
        return None;
    }
    let (program, directory) = (quote(sink.program)?, quote(sink.directory)?);
    let options: Option<String> = sink
        .options
        .iter()
        .map(|option| Some(format!(" {}", quote(option)?)))
        .collect();
    let options = options?;
    // The shell must wait for the sink, even if it ends inside the braces. A trap of the user's own
    // stays; the sink then shows the output as soon as the shell has ended.
    let trap = if facts.traps {
        String::new()
    } else {
        let body = format!(
            "{{ [ ! -p {directory}/out ] || {program} sink close {directory} --now; }} >/dev/null 2>&1"
        );
        format!(
            " grep -q EXIT {directory}/traps 2>/dev/null || trap {} EXIT;",
            quote(&body)?
        )
    };
    // All of the beginning stands on the first line, because messages have numbers of lines. Its
    // variables would be seen by the line, so there is none; the files 8 and 9 are closed in it.
    Some(format!(
        "{{ if command -v {program} >/dev/null 2>&1 && {program} sink open {directory} $${options} </dev/null 8>&- 9>&-; \
         then exec 8>{directory}/out 9>{directory}/err; trap >{directory}/traps;{trap} fi; {{ {line}\n\
         }} >&8 2>&9 8>&- 9>&-\n\
         }} 8>&1 9>&2; {{ (__offcut=$?; {program} sink close {directory}; exit \"$__offcut\") && :; }} >/dev/null 2>&1"
    ))
}

/// Quotes a word for every shell. `None` if it holds more than one line.
fn quote(word: &str) -> Option<String> {
    let is_line = !word.contains(['\n', '\r', '\0']);
    is_line.then(|| format!("'{}'", word.replace('\'', r"'\''")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SINK: Sink<'_> = Sink {
        program: "/bin/offcut",
        directory: "/tmp/d",
        options: &["--call-id", "a'b"],
    };
    const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Dash];

    fn is_rewritten(line: &str, shell: Shell) -> bool {
        rewrite(line, shell, &SINK).is_some()
    }

    #[test]
    fn a_line_is_put_in_braces() {
        assert_eq!(
            rewrite("trap 'rm x' EXIT; ls", Shell::Dash, &SINK).unwrap(),
            "{ if command -v '/bin/offcut' >/dev/null 2>&1 && '/bin/offcut' sink open '/tmp/d' $$ '--call-id' 'a'\\''b' \
             </dev/null 8>&- 9>&-; then exec 8>'/tmp/d'/out 9>'/tmp/d'/err; trap >'/tmp/d'/traps; fi; { trap 'rm x' EXIT; ls\n\
             } >&8 2>&9 8>&- 9>&-\n\
             } 8>&1 9>&2; { (__offcut=$?; '/bin/offcut' sink close '/tmp/d'; exit \"$__offcut\") && :; } >/dev/null 2>&1"
        );
        let waits = rewrite("exit 3", Shell::Bash, &SINK).unwrap();
        assert!(waits.contains("--now"), "{waits}");
    }

    #[test]
    fn lines_that_are_sure_are_rewritten() {
        let lines = [
            "ls",
            "cd /tmp && ls -l | wc -l; echo \"$? $(pwd)\" # done",
            "cat <<A <<'B'\na $(\nA\n'\nB",
            "if a; then b; elif c; then d; else e; fi",
            "for x in a b; do echo $x; done; while read y; do :; done <f",
            "case $x in (a|b) c;; *) ;; esac",
            "f() { return 1; }; f || (cd /; ls)",
            "echo ${x:-\"a}\"} $((1 + (2))) `date` 'a # b' \\; {a,b} >f 2>&1 &",
            "docker exec x ls; find . -exec ls {} \\;",
            "! true\n\n# a comment",
            "{ ls; } >f",
        ];
        for line in lines {
            for shell in SHELLS {
                assert!(is_rewritten(line, shell), "{shell:?}: {line}");
            }
        }
        for line in [
            "[[ a && b < c ]] && ((x = (1) << 2))",
            "a=(x \"y\" # c\n z); cat <<<$a &>f",
            "for ((i = 0; i < 3; i++)); do echo $i; done",
            "diff <(ls) <(ls -a) |& cat",
            "function f { echo $'a\\'b'; }",
        ] {
            assert!(is_rewritten(line, Shell::Bash), "{line}");
            assert!(is_rewritten(line, Shell::Zsh), "{line}");
        }
    }

    #[test]
    fn lines_that_are_not_sure_stay() {
        let lines = [
            "",
            " # only a comment",
            "echo 'a",
            "echo \"$(ls\"",
            "echo a \\",
            "ls |",
            "ls && ",
            "; ls",
            "ls ;; ls",
            "if a; then b",
            "if ; then b; fi",
            "done",
            "{ ls; ",
            "ls }; }",
            "ls )",
            "(ls",
            "cat <<A\nb",
            "cat <<A\nb\\\nA",
            "x=$(cat <<A)\nA",
            "exec >log; ls",
            "A=b command exec ls",
            "\\exec ls",
            "trap 'echo a' EXIT; exit 3",
            "alias a=b\na",
            "ulimit -t 1; ls",
            "echo !(a)",
            "for",
            "case a in a) b",
            "ls > ",
            "${",
            "$((1)",
        ];
        for line in lines {
            for shell in SHELLS {
                assert!(!is_rewritten(line, shell), "{shell:?}: {line}");
            }
        }
        assert!(!is_rewritten("echo }", Shell::Zsh), "it closes braces");
        assert!(
            !is_rewritten("set -ex; ls", Shell::Zsh),
            "it shows our part"
        );
        assert!(is_rewritten("set -ex; ls -v", Shell::Bash));
        assert!(!is_rewritten("set -o verbose", Shell::Bash));
        assert!(is_rewritten("echo }", Shell::Bash));
        for line in ["((1))", "ls &>f", "a=(b)", "cat <<<a", "cat <(ls)"] {
            assert!(!is_rewritten(line, Shell::Dash), "{line}");
        }
        assert!(!is_rewritten(&"$(".repeat(100_000), Shell::Bash));
        assert!(!is_rewritten(&"(".repeat(100_000), Shell::Bash));
    }

    #[test]
    fn a_shell_is_known_by_its_program() {
        assert_eq!(Shell::of_program("/bin/zsh"), Some(Shell::Zsh));
        assert_eq!(Shell::of_program("sh"), Some(Shell::Dash));
        assert_eq!(Shell::of_program("/usr/bin/fish"), None);
    }

    proptest! {
        #[test]
        fn l7_any_line_is_rewritten_or_refused(
            line in "([a-z ;&|(){}<>$`'\"\\\\\n#!=\\[\\]]|if |then |fi |do |done |case |in |esac |for |<<|é){0,40}"
        ) {
            for shell in SHELLS {
                let rewritten = rewrite(&line, shell, &SINK);
                prop_assert!(rewritten.is_none_or(|rewritten| rewritten.contains(&line)));
            }
        }
    }
}
