//! Questions about one result each: the agent runs a command, and finds what it was asked for in what it is shown, or asks
//! the reader.

use offcut_cli::trials::Random;

use crate::scripted::step::{Step, answer, bash, lost};
use crate::scripted::task::{Asked, Set, filler};
use crate::scripted::view::{RequestView, Search};

/// A question about the output of a command.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) name: &'static str,
    prompt: &'static str,
    /// `cat` prints a file; a name that ends with `.sh` is a program that prints it and fails.
    file: &'static str,
    /// Lines or records in 5 kB.
    pub(crate) count: usize,
    /// The text of so many, and the answer.
    text: fn(&mut Random, usize) -> (String, String),
    find: Find,
}

#[derive(Debug)]
enum Find {
    /// The first group of a regular expression, in one line.
    Line(&'static str),
    /// A finding that no single line tells.
    All {
        /// Computes it from the whole text.
        by_eye: fn(&str) -> Option<String>,
        /// The first group of a regular expression, if a preview can say it.
        told: Option<&'static str>,
        /// The question to the reader, in jq's language.
        query: &'static str,
    },
}

impl Asked for Question {
    fn set_up(&self, count: usize) -> Set {
        let (text, answer) = (self.text)(&mut Random::new(count as u64), count);
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

    fn agent(&self, view: &RequestView) -> Step {
        let program = if self.file.ends_with(".sh") {
            "sh"
        } else {
            "cat"
        };
        let command = format!("{program} {}", self.file);
        if !view.has_run(&command) {
            return bash(command);
        }
        let search = match self.find {
            Find::Line(pattern) => view.search(&command, pattern),
            Find::All {
                by_eye,
                told,
                query,
            } => view.ask(&command, by_eye, told, query),
        };
        match search {
            Search::Found(found) => answer(found.last().map_or("", String::as_str)),
            Search::Read(step) => step,
            Search::Absent => lost(),
        }
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

/// A cell of the line whose number in a column is the greatest.
fn greatest(text: &str, column: usize, cell: usize) -> Option<String> {
    let cells = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let number = |cells: &Vec<&str>| cells.get(column)?.parse::<usize>().ok();
    let line = cells
        .filter(|cells| number(cells).is_some())
        .max_by_key(number)?;
    Some((*line.get(cell)?).to_owned())
}

pub(crate) static ALL: [Question; 20] = [
    Question {
        name: "pytest",
        prompt: "Which value does the failing test find?",
        file: "pytest.sh",
        count: 75,
        text: |random, count| {
            let value = random.below(9_000).to_string();
            let failed =
                format!("E       assert {value} == 120\n\ntests/test_rates.py:88: AssertionError");
            let passed = |index| {
                format!(
                    "tests/test_rates.py::test_case_{index} PASSED [{:3}%]",
                    index * 100 / count
                )
            };
            (among(&failed, count, passed), value)
        },
        find: Find::Line(r"assert (\d+) == 120"),
    },
    Question {
        name: "build",
        prompt: "Where does the build fail?",
        file: "build.sh",
        count: 28,
        text: |random, count| {
            let place = format!("src/wire/frame.c:{}", random.below(900));
            let error = format!("{place}:17: error: 'struct frame' has no member named 'lenght'");
            let warning = |index| {
                format!(
                    "src/mod{}.c:{}:9: warning: unused variable 'tmp{index}' [-Wunused-variable]\n     int tmp{index} = 0;\n         ^~~~",
                    index % 40,
                    random.below(900)
                )
            };
            (among(&error, count, warning), place)
        },
        find: Find::Line(r"(src/\S+\.c:\d+):\d+: error"),
    },
    Question {
        name: "grep",
        prompt: "Which value has RETRY_LIMIT, where it is defined?",
        file: "matches.txt",
        count: 60,
        text: |random, count| {
            let value = (random.below(80) + 11).to_string();
            let defined = format!("src/limits.rs:7:pub const RETRY_LIMIT: u32 = {value};");
            let used = |index| {
                format!(
                    "src/jobs/job_{}.rs:{}:    if attempts > RETRY_LIMIT {{ give_up({index}); }}",
                    index / 9,
                    index % 9 * 40
                )
            };
            (among(&defined, count, used), value)
        },
        find: Find::Line(r"RETRY_LIMIT: u32 = (\d+)"),
    },
    Question {
        name: "flights",
        prompt: "Which flight is the cheapest?",
        file: "flights.json",
        count: 50,
        text: |random, count| {
            let best = random.below(count);
            let flights: Vec<String> = (0..count).map(|index| {
                let price = if index == best { 61 } else { random.below(700) + 90 };
                format!("{{\"id\":\"F{index:05}\",\"airline\":\"{}\",\"departure\":\"2026-05-{:02}T09:40\",\"stops\":{},\"price\":{price},\"seats\":{}}}", ["Alba", "Boreal", "Cirro"][random.below(3)], random.below(28) + 1, random.below(3), random.below(200))
            }).collect();
            (
                format!("{{\"flights\":[{}]}}\n", flights.join(",")),
                format!("F{best:05}"),
            )
        },
        find: Find::All {
            by_eye: |text| {
                let price = |flight: &&str| {
                    flight
                        .split("\"price\":")
                        .nth(1)?
                        .split(',')
                        .next()?
                        .parse::<usize>()
                        .ok()
                };
                let best = text.split("{\"id\":\"").skip(1).min_by_key(price)?;
                Some(best[..6].to_owned())
            },
            told: Some(r"(?s)price: 61….*\|(F\d{5})\|[^\n]*\|61\|"),
            query: ".flights | min_by(.price) | .id",
        },
    },
    Question {
        name: "tickets",
        prompt: "How many tickets are open and of high priority?",
        file: "tickets.jsonl",
        count: 30,
        text: |random, count| {
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
        },
        find: Find::All {
            by_eye: |text| {
                Some(
                    text.matches("\"state\":\"open\",\"priority\":\"high\"")
                        .count()
                        .to_string(),
                )
            },
            told: None,
            query: "map(select(.state == \"open\" and .priority == \"high\")) | length",
        },
    },
    Question {
        name: "log",
        prompt: "Which worker lost its lease?",
        file: "server.log",
        count: 75,
        text: |random, count| {
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
        },
        find: Find::Line(r"ERROR (worker-\d+) lost its lease"),
    },
    Question {
        name: "handbook",
        prompt: "How many days of notice do contractors give?",
        file: "handbook.md",
        count: 10,
        text: |random, count| {
            let days = (random.below(60) + 31).to_string();
            let notice = format!("## Notice\n\nContractors give {days} days of notice.\n");
            let chapter = |index| {
                format!(
                    "## Chapter {index}\n\n{}",
                    lines(5, |_| filler(random) + ".")
                )
            };
            (among(&notice, count, chapter), days)
        },
        find: Find::Line(r"Contractors give (\d+) days"),
    },
    Question {
        name: "orders",
        prompt: "Which sum have the orders of customer 3?",
        file: "orders.csv",
        count: 350,
        text: |random, count| {
            let mut sum = 0;
            let text = lines(count, |index| {
                let (customer, amount) = (random.below(5), random.below(900) + 100);
                sum += if customer == 3 { amount } else { 0 };
                format!("o{index:06},{customer},{amount}")
            });
            (format!("order,customer,amount\n{text}"), sum.to_string())
        },
        find: Find::All {
            by_eye: |text| {
                let amounts = text
                    .lines()
                    .filter_map(|line| line.split_once(",3,")?.1.parse::<usize>().ok());
                Some(amounts.sum::<usize>().to_string())
            },
            told: None,
            query: "map(select(.customer == 3) | .amount) | add",
        },
    },
    Question {
        name: "API answer",
        prompt: "Which commit is the head of the pull request?",
        file: "pull.json",
        count: 32,
        text: |random, count| {
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
        },
        find: Find::All {
            by_eye: |text| Some(text.split("\"sha\":\"").nth(1)?[..40].to_owned()),
            told: Some(r#"sha"?: ?"?([0-9a-f]{40})"#),
            query: ".head.sha",
        },
    },
    Question {
        name: "listing",
        prompt: "Which file is the largest?",
        file: "ls.txt",
        count: 85,
        text: |random, count| {
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
        },
        find: Find::All {
            by_eye: |text| greatest(text, 4, 8),
            told: Some(r"[ |]99123456[ |].*[ |](part-\d+\.bin)"),
            query: r#"map([splits(" +")] | select(length > 8)) | max_by(.[4] | tonumber) | .[8]"#,
        },
    },
    Question {
        name: "history",
        prompt: "Which commit raised the limit of open files?",
        file: "commits.txt",
        count: 60,
        text: |random, count| {
            let hash = format!("{:016x}", random.next_u64());
            let commit = format!("{hash} Raise the limit of open files");
            (
                among(&commit, count, |_| {
                    format!("{:016x} {}", random.next_u64(), filler(random))
                }),
                hash,
            )
        },
        find: Find::Line(r"([0-9a-f]{16}) Raise the limit of open files"),
    },
    Question {
        name: "diff",
        prompt: "Which value gets MAX_OPEN?",
        file: "changes.diff",
        count: 18,
        text: |random, count| {
            let value = (random.below(800) + 100).to_string();
            let change = |index: usize, lines: &str| {
                format!(
                    "diff --git a/src/m{index}.rs b/src/m{index}.rs\nindex 1a2b3c..4d5e6f 100644\n--- a/src/m{index}.rs\n+++ b/src/m{index}.rs\n@@ -10,3 +10,3 @@\n fn run() {{\n{lines}\n }}"
                )
            };
            let wanted = change(
                count * 3 / 5,
                &format!("-const MAX_OPEN: usize = 64;\n+const MAX_OPEN: usize = {value};"),
            );
            let other = |index| {
                change(
                    index,
                    &format!("-    log({index});\n+    trace({:?});", filler(random)),
                )
            };
            (among(&wanted, count, other), value)
        },
        find: Find::Line(r"\+const MAX_OPEN: usize = (\d+)"),
    },
    Question {
        name: "web page",
        prompt: "How many EUR does the Larkspur lamp cost?",
        file: "page.md",
        count: 27,
        text: |random, count| {
            let price = format!("{}.50", random.below(90) + 10);
            let lamp = format!("The Larkspur lamp costs {price} EUR until the end of the year.");
            let other = |index| {
                format!(
                    "[{}](https://shop.example.com/p/{index}) {}",
                    filler(random),
                    filler(random)
                )
            };
            (among(&lamp, count, other), price)
        },
        find: Find::Line(r"Larkspur lamp costs (\S+) EUR"),
    },
    Question {
        name: "lock file",
        prompt: "Which version has left-margin?",
        file: "app.lock",
        count: 32,
        text: |random, count| {
            let version = format!("4.{}.{}", random.below(90), random.below(9));
            let package = |name: &str, version: &str, sum: u64| {
                format!(
                    "[[package]]\nname = \"{name}\"\nversion = \"{version}\"\nchecksum = \"{sum:064x}\"\n"
                )
            };
            let wanted = package("left-margin", &version, 7);
            (
                among(&wanted, count, |index| {
                    package(
                        &format!("crate-{index}"),
                        &format!("1.{}.0", index % 40),
                        random.next_u64(),
                    )
                }),
                version,
            )
        },
        // A model asks for the name with the line after it.
        find: Find::All {
            by_eye: |text| {
                Some(
                    text.split("\"left-margin\"\nversion = \"")
                        .nth(1)?
                        .split('"')
                        .next()?
                        .to_owned(),
                )
            },
            told: Some(r#""left-margin"\nversion = "([^"]+)"#),
            query: r#"join("\n") | capture("\"left-margin\"\nversion = \"(?<v>[^\"]+)").v"#,
        },
    },
    Question {
        name: "SQL table",
        prompt: "Which account is frozen?",
        file: "accounts.txt",
        count: 135,
        text: |random, count| {
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
        },
        find: Find::Line(r"(\d{5})[ |].*frozen"),
    },
    Question {
        name: "processes",
        prompt: "Which PID uses most memory?",
        file: "ps.txt",
        count: 95,
        text: |random, count| {
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
        },
        find: Find::All {
            by_eye: |text| greatest(text, 2, 0),
            told: Some(r"\b(\d{4,7})[ |]+\d+[ |]+987654321"),
            query: "max_by(.RSS) | .PID",
        },
    },
    Question {
        name: "metrics",
        prompt: "How many times did /pay answer with 502?",
        file: "metrics.txt",
        count: 90,
        text: |random, count| {
            let value = (random.below(90_000) + 10_000).to_string();
            let wanted = format!("http_errors_total{{route=\"/pay\",code=\"502\"}} {value}");
            (
                among(&wanted, count, |index| {
                    format!(
                        "http_requests_total{{route=\"/r{index}\",code=\"200\"}} {}",
                        random.below(1_000_000)
                    )
                }),
                value,
            )
        },
        find: Find::Line(r#"http_errors_total\{route="/pay",code="502"\} (\d+)"#),
    },
    Question {
        name: "lint",
        prompt: "Where is the error?",
        file: "lint.sh",
        count: 68,
        text: |random, count| {
            let place = format!("src/view/menu.ts:{}:3", random.below(900));
            let error = format!("{place}: error no-floating-promises: Promises must be awaited");
            let warning = |index| {
                format!(
                    "src/view/part{}.ts:{}:7: warning prefer-const: 'v{index}' is never reassigned",
                    index % 30,
                    random.below(900)
                )
            };
            (
                format!("{}{count} problems\n", among(&error, count, warning)),
                place,
            )
        },
        find: Find::Line(r"(src/\S+:\d+:\d+): error"),
    },
    Question {
        name: "traceback",
        prompt: "Which shelf was not there?",
        file: "pick.sh",
        count: 50,
        text: |random, count| {
            let shelf = format!("shelf-{}", random.below(10_000));
            let error = format!(
                "Traceback (most recent call last):\n  File \"app/pick.py\", line 7, in pick\n    return shelves[name]\nKeyError: '{shelf}'"
            );
            (
                among(&error, count, |index| {
                    format!("picked order {index}: {}", filler(random))
                }),
                shelf,
            )
        },
        find: Find::Line(r"KeyError: '([^']+)'"),
    },
    Question {
        name: "shipments",
        prompt: "Which shipment has another number than was ordered?",
        file: "shipments.csv",
        count: 350,
        text: |random, count| {
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
        },
        find: Find::All {
            by_eye: |text| {
                text.lines().skip(1).find_map(|line| {
                    let (shipment, numbers) = line.split_once(',')?;
                    let (ordered, shipped) = numbers.split_once(',')?;
                    (ordered != shipped).then(|| shipment.to_owned())
                })
            },
            told: None,
            query: "map(select(.ordered != .shipped)) | .[0].shipment",
        },
    },
];
