//! Find a failing test, mend it, and see it pass.

use offcut_cli::trials::Random;

use crate::scripted::step::{Thought, answer, bash, edit};
use crate::scripted::task::{Set, filler};
use crate::scripted::view::RequestView;

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

pub(super) fn set_up(count: usize) -> Set {
    let mut random = Random::new(count as u64);
    let broken = count * 3 / 4;
    let mut list = String::new();
    let (mut files, mut expected) = (Vec::new(), Vec::new());
    for module in 0..count {
        let value = random.below(9_000) + 1_000;
        list += &format!("m{module} {value}\n");
        if module == broken {
            let lines: Vec<String> = (0..60)
                .map(|_| format!("# {}", filler(&mut random)))
                .collect();
            let [above, below] = [&lines[..30], &lines[30..]].map(|lines| lines.join("\n"));
            let conf = |value: usize| format!("{above}\nvalue = {value}\n{below}\n");
            let path = format!("src/m{module}.conf");
            files.push((path.clone(), conf(value + 7)));
            expected.push((path, conf(value)));
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

pub(super) fn agent(view: &RequestView) -> Thought {
    const TESTS: &str = "sh run-tests";
    if view.times_run(TESTS) == 0 || view.edits() == 1 && view.times_run(TESTS) == 1 {
        return Ok(bash(TESTS));
    }
    if view.edits() > 0 {
        let found = view.search(TESTS, r"test result: (.*)")?;
        return Ok(answer(&found[1]));
    }
    let failed = view.search(TESTS, r"(src/\S+): assertion failed: expected (\d+), found")?;
    let (path, right) = (&failed[1], &failed[2]);
    let look = format!("cat {path}");
    view.run(&look)?;
    let found = view.search(&look, r"^(value = )\d+$")?;
    Ok(edit(path, &found[0], &format!("{}{right}", found[1])))
}
