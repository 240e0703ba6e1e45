//! Read many pages, and be asked afterwards for a word on one of them.

use offcut_cli::trials::Random;

use crate::scripted::step::{Step, answer, bash, lost};
use crate::scripted::task::{Set, Task, Work, filler};
use crate::scripted::view::{RequestView, Search, numbers};

pub(super) const TASK: Task = Task {
    name: "needle",
    sizes: [3, 12, 50, 160],
    work: Work::Own { set_up, agent },
};

fn set_up(count: usize) -> Set {
    let mut random = Random::new(count as u64);
    let mut set = Set {
        prompt: format!(
            "Read pages 1 to {count}, then answer the question in the file `question`."
        ),
        ..Set::default()
    };
    let hidden = count.div_ceil(3);
    for page in 1..=count {
        let mut lines: Vec<String> = (0..70).map(|_| filler(&mut random)).collect();
        if page == hidden {
            let word = format!("w{:05}", random.below(100_000));
            lines[41] =
                format!("they agreed that the word at the gate would be {word} until the spring");
            set.answer = word;
        }
        set.files
            .push((format!("pages/{page}.txt"), lines.join("\n") + "\n"));
    }
    set.files.push((
        "question".into(),
        "Which word was to be said at the gate?\n".into(),
    ));
    set
}

fn agent(view: &RequestView) -> Step {
    let Some(count) = numbers(&view.prompt).max() else {
        return lost();
    };
    let look = |page: usize| format!("cat pages/{page}.txt");
    if let Some(next) = (1..=count).find(|page| !view.has_run(&look(*page))) {
        return bash(look(next));
    }
    if !view.has_run("cat question") {
        return bash("cat question");
    }
    // Looking at everything in view costs nothing, so it comes first.
    const GATE: &str = r"word at the gate would be (\w+)";
    // A page that was fetched again has been looked at, even if it is gone once more.
    let searches: Vec<Search> = (1..=count)
        .map(|page| match view.search(&look(page), GATE) {
            Search::Read(_) if view.times_run(&look(page)) > 1 => Search::Absent,
            found => found,
        })
        .collect();
    let mut read = None;
    for search in searches {
        match search {
            Search::Found(found) => return answer(&found[1]),
            Search::Read(step) => read = read.or(Some(step)),
            Search::Absent => {}
        }
    }
    read.unwrap_or_else(lost)
}
