//! Questions about one result each: the agent runs a command, and finds what it was asked for in what it is shown, or asks
//! the reader.

use offcut_cli::trials::Random;

use crate::scripted::step::{Thought, answer};
use crate::scripted::task::{Set, Work, filler};
use crate::scripted::view::RequestView;

/// A question about the output of a command.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) name: &'static str,
    prompt: &'static str,
    /// `cat` prints a file; a name that ends with `.sh` is a program that prints it and fails.
    file: &'static str,
    /// Lines or records in 5 kB.
    pub(crate) count: usize,
    text: QuestionText,
    find: Find,
}

#[derive(Debug)]
enum QuestionText {
    /// One line with a value, which is the answer, among `other` ones. [`filled`] has the places in them.
    Among {
        value: &'static str,
        odd: &'static str,
        other: &'static str,
    },
    /// The text of so many, and the answer.
    Made(fn(&mut Random, usize) -> (String, String)),
}

#[derive(Debug)]
enum Find {
    /// The first group of a regular expression, in one line.
    Line(&'static str),
    /// A finding that no single line tells.
    All {
        /// The first group of a regular expression, if a preview can say it.
        told: Option<&'static str>,
        /// The question to the reader, in jq's language.
        query: &'static str,
    },
}

impl Work for Question {
    fn set_up(&self, count: usize) -> Set {
        let random = &mut Random::new(count as u64);
        let (text, answer) = match self.text {
            QuestionText::Made(text) => text(random, count),
            QuestionText::Among { value, odd, other } => {
                let value = filled(value, random, 0, "");
                let odd = filled(odd, random, count * 3 / 5, &value);
                let text = among(&odd, count, |index| filled(other, random, index, &value));
                (text, value)
            }
        };
        let text = if self.file.ends_with(".sh") {
            format!("cat <<'END_OF_OUTPUT'\n{text}END_OF_OUTPUT\nexit 1\n")
        } else {
            text
        };
        Set {
            prompt: format!("{} See `{}`.", self.prompt, self.file),
            files: vec![(self.file.to_owned(), text)],
            answer,
            expected: Vec::new(),
        }
    }

    fn act(&self, view: &RequestView, set: &Set) -> Thought {
        let program = if self.file.ends_with(".sh") {
            "sh"
        } else {
            "cat"
        };
        let command = format!("{program} {}", self.file);
        view.run(&command)?;
        Ok(answer(match self.find {
            Find::Line(pattern) => view.search(&command, pattern)?.remove(1),
            Find::All { told, query } => {
                let whole = (&*set.files[0].1, &*set.answer);
                view.ask(&command, whole, told, query)?
            }
        }))
    }
}

/// Lines of a text.
fn lines(count: usize, mut line: impl FnMut(usize) -> String) -> String {
    (0..count).map(|index| line(index) + "\n").collect()
}

/// One line among ordinary ones.
fn among(odd: &str, count: usize, mut line: impl FnMut(usize) -> String) -> String {
    lines(count, |index| {
        if index == count * 3 / 5 {
            odd.to_owned()
        } else {
            line(index)
        }
    })
}

/// Fills the places of a template: `$v` is the value, `$i` the index of the line, `$g` that of its group, `$n` a number,
/// `$x` sixteen digits, and `$w` words.
fn filled(template: &str, random: &mut Random, index: usize, value: &str) -> String {
    let mut parts = template.split('$');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (place, rest) = part.split_at(1);
        text += &match place {
            "i" => index.to_string(),
            "g" => (index / 9).to_string(),
            "n" => (random.below(900) + 100).to_string(),
            "x" => format!("{:016x}", random.next_u64()),
            "w" => filler(random),
            _ => value.to_owned(),
        };
        text += rest;
    }
    text
}

pub(crate) static ALL: [Question; 20] = [
    Question {
        name: "pytest",
        prompt: "Which value does the failing test find?",
        file: "pytest.sh",
        count: 75,
        text: QuestionText::Among {
            value: "$n",
            odd: "E       assert $v == 120\n\ntests/test_rates.py:88: AssertionError",
            other: "tests/test_rates.py::test_case_$i PASSED [$g%]",
        },
        find: Find::Line(r"assert (\d+) == 120"),
    },
    Question {
        name: "build",
        prompt: "Where does the build fail?",
        file: "build.sh",
        count: 28,
        text: QuestionText::Among {
            value: "src/wire/frame.c:$n",
            odd: "$v:17: error: 'struct frame' has no member named 'lenght'",
            other: "src/mod$g.c:$n:9: warning: unused variable 'tmp$i' [-Wunused-variable]\n     int tmp$i = 0;\n         ^~~~",
        },
        find: Find::Line(r"(src/\S+\.c:\d+):\d+: error"),
    },
    Question {
        name: "grep",
        prompt: "Which value has RETRY_LIMIT, where it is defined?",
        file: "matches.txt",
        count: 60,
        text: QuestionText::Among {
            value: "$n",
            odd: "src/limits.rs:7:pub const RETRY_LIMIT: u32 = $v;",
            other: "src/jobs/job_$g.rs:$i:    if attempts > RETRY_LIMIT { give_up($i); }",
        },
        find: Find::Line(r"RETRY_LIMIT: u32 = (\d+)"),
    },
    Question {
        name: "flights",
        prompt: "Which flight is the cheapest?",
        file: "flights.json",
        count: 50,
        text: QuestionText::Made(|random, count| {
            let best = random.below(count);
            let flights: Vec<String> = (0..count).map(|index| {
                let price = if index == best { 61 } else { random.below(700) + 90 };
                format!("{{\"id\":\"F{index:05}\",\"airline\":\"{}\",\"departure\":\"2026-05-{:02}T09:40\",\"stops\":{},\"price\":{price},\"seats\":{}}}", ["Alba", "Boreal", "Cirro"][random.below(3)], random.below(28) + 1, random.below(3), random.below(200))
            }).collect();
            (
                format!("{{\"flights\":[{}]}}\n", flights.join(",")),
                format!("F{best:05}"),
            )
        }),
        find: Find::All {
            told: Some(r"(?s)price: 61….*\|(F\d{5})\|[^\n]*\|61\|"),
            query: ".flights | min_by(.price) | .id",
        },
    },
    Question {
        name: "tickets",
        prompt: "How many tickets are open and of high priority?",
        file: "tickets.jsonl",
        count: 30,
        text: QuestionText::Made(|random, count| {
            let mut open = 0;
            let text = lines(count, |index| {
                let (state, priority) = (
                    ["open", "closed"][random.below(2)],
                    ["low", "high"][random.below(2)],
                );
                open += usize::from(state == "open" && priority == "high");
                format!(
                    "{{\"ticket\":{index},\"state\":\"{state}\",\"priority\":\"{priority}\",\"subject\":\"{}\"}}",
                    filler(random)
                )
            });
            (text, open.to_string())
        }),
        find: Find::All {
            told: None,
            query: "map(select(.state == \"open\" and .priority == \"high\")) | length",
        },
    },
    Question {
        name: "log",
        prompt: "Which worker lost its lease?",
        file: "server.log",
        count: 75,
        text: QuestionText::Made(|random, count| {
            let worker = format!("worker-{}", random.below(90) + 10);
            let time = |index: usize| {
                format!(
                    "2026-11-25T{:02}:{:02}:{:02}Z",
                    index / 3_600 % 24,
                    index / 60 % 60,
                    index % 60
                )
            };
            let error = format!(
                "{} ERROR {worker} lost its lease of shard 7",
                time(count * 3 / 5)
            );
            let info = |index| match index % 40 {
                0 => format!("{} WARN slow query {} ms", time(index), random.below(900)),
                _ => format!(
                    "{} INFO worker-{} finished job {index}",
                    time(index),
                    random.below(9)
                ),
            };
            (among(&error, count, info), worker)
        }),
        find: Find::Line(r"ERROR (worker-\d+) lost its lease"),
    },
    Question {
        name: "handbook",
        prompt: "How many days of notice do contractors give?",
        file: "handbook.md",
        count: 10,
        text: QuestionText::Among {
            value: "$n",
            odd: "## Notice\n\nContractors give $v days of notice.\n",
            other: "## Chapter $i\n\n$w.\n$w.\n$w.\n$w.\n$w.\n",
        },
        find: Find::Line(r"Contractors give (\d+) days"),
    },
    Question {
        name: "orders",
        prompt: "Which sum have the orders of customer 3?",
        file: "orders.csv",
        count: 350,
        text: QuestionText::Made(|random, count| {
            let mut sum = 0;
            let text = lines(count, |index| {
                let (customer, amount) = (random.below(5), random.below(900) + 100);
                sum += if customer == 3 { amount } else { 0 };
                format!("o{index:06},{customer},{amount}")
            });
            (format!("order,customer,amount\n{text}"), sum.to_string())
        }),
        find: Find::All {
            told: None,
            query: "map(select(.customer == 3) | .amount) | add",
        },
    },
    Question {
        name: "API answer",
        prompt: "Which commit is the head of the pull request?",
        file: "pull.json",
        count: 32,
        text: QuestionText::Made(|random, count| {
            let commit = format!("{:040x}", random.next_u64());
            let check = |index| {
                format!(
                    "{{\"name\":\"check {index}\",\"url\":\"https://ci.example.com/runs/{}\",\"summary\":\"{}\"}}",
                    index * 7,
                    filler(random)
                )
            };
            let checks: Vec<String> = (0..count).map(check).collect();
            (
                format!(
                    "{{\"number\":112,\"checks\":[{}],\"head\":{{\"label\":\"ada:round\",\"sha\":\"{commit}\"}},\"draft\":false}}\n",
                    checks.join(",")
                ),
                commit,
            )
        }),
        find: Find::All {
            told: Some(r#"sha"?: ?"?([0-9a-f]{40})"#),
            query: ".head.sha",
        },
    },
    Question {
        name: "listing",
        prompt: "Which file is the largest?",
        file: "ls.txt",
        count: 85,
        text: QuestionText::Made(|random, count| {
            let file = format!("part-{:05}.bin", count * 3 / 5);
            let large = format!("-rw-r--r-- 1 ada staff  99123456 Nov 20 10:00 {file}");
            let other = |index| {
                format!(
                    "-rw-r--r-- 1 ada staff {:>9} Nov 20 10:{:02} part-{index:05}.bin",
                    random.below(9_000_000),
                    index % 60
                )
            };
            (
                format!("total 12345678\n{}", among(&large, count, other)),
                file,
            )
        }),
        find: Find::All {
            told: Some(r"[ |]99123456[ |].*[ |](part-\d+\.bin)"),
            query: r#"map([splits(" +")] | select(length > 8)) | max_by(.[4] | tonumber) | .[8]"#,
        },
    },
    Question {
        name: "history",
        prompt: "Which commit raised the limit of open files?",
        file: "commits.txt",
        count: 60,
        text: QuestionText::Among {
            value: "$x",
            odd: "$v Raise the limit of open files",
            other: "$x $w",
        },
        find: Find::Line(r"([0-9a-f]{16}) Raise the limit of open files"),
    },
    Question {
        name: "diff",
        prompt: "Which value gets MAX_OPEN?",
        file: "changes.diff",
        count: 18,
        text: QuestionText::Among {
            value: "$n",
            odd: "diff --git a/src/m$i.rs b/src/m$i.rs\nindex 1a2b3c..4d5e6f 100644\n--- a/src/m$i.rs\n+++ b/src/m$i.rs\n@@ -10,3 +10,3 @@\n fn run() {\n-const MAX_OPEN: usize = 64;\n+const MAX_OPEN: usize = $v;\n }",
            other: "diff --git a/src/m$i.rs b/src/m$i.rs\nindex 1a2b3c..4d5e6f 100644\n--- a/src/m$i.rs\n+++ b/src/m$i.rs\n@@ -10,3 +10,3 @@\n fn run() {\n-    log($i);\n+    trace(\"$w\");\n }",
        },
        find: Find::Line(r"\+const MAX_OPEN: usize = (\d+)"),
    },
    Question {
        name: "web page",
        prompt: "How many EUR does the Larkspur lamp cost?",
        file: "page.md",
        count: 27,
        text: QuestionText::Among {
            value: "$n.50",
            odd: "The Larkspur lamp costs $v EUR until the end of the year.",
            other: "[$w](https://shop.example.com/p/$i) $w",
        },
        find: Find::Line(r"Larkspur lamp costs (\S+) EUR"),
    },
    Question {
        name: "lock file",
        prompt: "Which version has left-margin?",
        file: "app.lock",
        count: 32,
        text: QuestionText::Among {
            value: "4.$n.$i",
            odd: "[[package]]\nname = \"left-margin\"\nversion = \"$v\"\nchecksum = \"$x$x$x$x\"\n",
            other: "[[package]]\nname = \"crate-$i\"\nversion = \"1.$g.0\"\nchecksum = \"$x$x$x$x\"\n",
        },
        // A model asks for the name with the line after it.
        find: Find::All {
            told: Some(r#""left-margin"\nversion = "([^"]+)"#),
            query: r#"join("\n") | capture("\"left-margin\"\nversion = \"(?<v>[^\"]+)").v"#,
        },
    },
    Question {
        name: "SQL table",
        prompt: "Which account is frozen?",
        file: "accounts.txt",
        count: 135,
        text: QuestionText::Made(|random, count| {
            let frozen = format!("{:05}", count * 3 / 5);
            let account =
                |id: &str, balance, state| format!(" {id} | north  | {balance:>7} | {state}");
            let text = among(&account(&frozen, 70, "frozen"), count, |index| {
                account(&format!("{index:05}"), random.below(90_000), "active")
            });
            (
                format!(
                    " id    | region | balance | state  \n-------+--------+---------+--------\n{text}({count} rows)\n"
                ),
                frozen,
            )
        }),
        find: Find::Line(r"(\d{5})[ |].*frozen"),
    },
    Question {
        name: "processes",
        prompt: "Which PID uses most memory?",
        file: "ps.txt",
        count: 95,
        text: QuestionText::Made(|random, count| {
            let pid = (1_000 + count * 3 / 5).to_string();
            let large = format!("{pid:>7}   12  987654321 /usr/bin/worker --queue q3");
            let other = |index| {
                format!(
                    "{:>7} {:>4} {:>10} /usr/bin/worker --queue q{}",
                    1_000 + index,
                    random.below(100),
                    random.below(90_000_000),
                    index % 12
                )
            };
            (
                format!(
                    "    PID  CPU        RSS COMMAND\n{}",
                    among(&large, count, other)
                ),
                pid,
            )
        }),
        find: Find::All {
            told: Some(r"\b(\d{4,7})[ |]+\d+[ |]+987654321"),
            query: "max_by(.RSS) | .PID",
        },
    },
    Question {
        name: "metrics",
        prompt: "How many times did /pay answer with 502?",
        file: "metrics.txt",
        count: 90,
        text: QuestionText::Among {
            value: "$n",
            odd: "http_errors_total{route=\"/pay\",code=\"502\"} $v",
            other: "http_requests_total{route=\"/r$i\",code=\"200\"} $n",
        },
        find: Find::Line(r#"http_errors_total\{route="/pay",code="502"\} (\d+)"#),
    },
    Question {
        name: "lint",
        prompt: "Where is the error?",
        file: "lint.sh",
        count: 68,
        text: QuestionText::Among {
            value: "src/view/menu.ts:$n:3",
            odd: "$v: error no-floating-promises: Promises must be awaited",
            other: "src/view/part$g.ts:$n:7: warning prefer-const: 'v$i' is never reassigned",
        },
        find: Find::Line(r"(src/\S+:\d+:\d+): error"),
    },
    Question {
        name: "traceback",
        prompt: "Which shelf was not there?",
        file: "pick.sh",
        count: 50,
        text: QuestionText::Among {
            value: "shelf-$n",
            odd: "Traceback (most recent call last):\n  File \"app/pick.py\", line 7, in pick\n    return shelves[name]\nKeyError: '$v'",
            other: "picked order $i: $w",
        },
        find: Find::Line(r"KeyError: '([^']+)'"),
    },
    Question {
        name: "shipments",
        prompt: "Which shipment has another number than was ordered?",
        file: "shipments.csv",
        count: 350,
        text: QuestionText::Made(|random, count| {
            let wrong = random.below(count);
            let text = lines(count, |index| {
                let ordered = random.below(90) + 10;
                let shipped = if index == wrong { ordered + 3 } else { ordered };
                format!("s{index:06},{ordered},{shipped}")
            });
            (
                format!("shipment,ordered,shipped\n{text}"),
                format!("s{wrong:06}"),
            )
        }),
        find: Find::All {
            told: None,
            query: "map(select(.ordered != .shipped)) | .[0].shipment",
        },
    },
];
