//! Find a failing test, mend it, and see it pass.

use offcut_cli::trials::Random;

use crate::scripted::step::{Step, answer, bash, edit, lost};
use crate::scripted::task::{Set, Task, Work, filler};
use crate::scripted::view::{RequestView, Search};

pub(super) const TASK: Task = Task {
    name: "mend",
    sizes: [20, 300, 2_000, 6_000],
    work: Work::Own { set_up, agent },
};

/// Reads what each module must have and has, and reports as test runners do.
const RUNNER: &str = r#"failed=0
while read -r name expected; do
    found=$expected
    # Modules without a file are as they must be: thousands of processes would only take time.
    if [ -e "src/$name.conf" ]; then found=$(sed -n 's/^value = //p' "src/$name.conf"); fi
    if [ "$found" = "$expected" ]; then
        echo "test modules::$name::keeps_its_value ... ok"
    else
        echo "test modules::$name::keeps_its_value ... FAILED"
        echo "    src/$name.conf: assertion failed: expected $expected, found $found"
        failed=$((failed + 1))
    fi
done < tests.list
echo "test result: $failed failed"
"#;

fn set_up(count: usize) -> Set {
    let mut random = Random::new(count as u64);
    let broken = count * 3 / 4;
    let mut list = String::new();
    let conf = |random: &mut Random, value: usize| {
        let lines: Vec<String> = (0..60).map(|_| format!("# {}", filler(random))).collect();
        format!(
            "{}\nvalue = {value}\n{}\n",
            lines[..30].join("\n"),
            lines[30..].join("\n")
        )
    };
    let (mut files, mut expected) = (Vec::new(), Vec::new());
    for module in 0..count {
        let value = random.below(9_000) + 1_000;
        list += &format!("m{module} {value}\n");
        if module == broken {
            let path = format!("src/m{module}.conf");
            let text = conf(&mut random, value + 7);
            expected.push((
                path.clone(),
                text.replace(
                    &format!("value = {}", value + 7),
                    &format!("value = {value}"),
                ),
            ));
            files.push((path, text));
        }
    }
    files.push(("run-tests".into(), RUNNER.into()));
    files.push(("tests.list".into(), list));
    Set {
        prompt: "`sh run-tests` fails. Mend what it tests.".into(),
        files,
        answer: "0 failed".into(),
        expected,
    }
}

fn agent(view: &RequestView) -> Step {
    const TESTS: &str = "sh run-tests";
    if view.times_run(TESTS) == 0 || view.edits() == 1 && view.times_run(TESTS) == 1 {
        return bash(TESTS);
    }
    if view.edits() > 0 {
        return match view.search(TESTS, r"test result: (.*)") {
            Search::Found(found) => answer(&found[1]),
            Search::Read(step) => step,
            Search::Absent => lost(),
        };
    }
    let (path, right) =
        match view.search(TESTS, r"(src/\S+): assertion failed: expected (\d+), found") {
            Search::Found(found) => (found[1].clone(), found[2].clone()),
            Search::Read(step) => return step,
            Search::Absent => return lost(),
        };
    let look = format!("cat {path}");
    if !view.has_run(&look) {
        return bash(look);
    }
    match view.search(&look, r"^(value = )\d+$") {
        Search::Found(found) => edit(&path, &found[0], &format!("{}{right}", found[1])),
        Search::Read(step) => step,
        Search::Absent => lost(),
    }
}
