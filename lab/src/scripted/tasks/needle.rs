//! Read many pages, and be asked afterwards for a word on one of them.

use offcut_cli::trials::Random;

use crate::scripted::step::{Step, Thought, answer, lost};
use crate::scripted::task::{Set, filler};
use crate::scripted::view::{RequestView, numbers};

pub(super) fn set_up(count: usize) -> Set {
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

pub(super) fn agent(view: &RequestView) -> Thought {
    let count = numbers(&view.prompt).max().ok_or_else(lost)?;
    let look = |page: usize| format!("cat pages/{page}.txt");
    for page in 1..=count {
        view.run(&look(page))?;
    }
    view.run("cat question")?;
    // Looking at everything in view costs nothing, so it comes first.
    const GATE: &str = r"word at the gate would be (\w+)";
    let mut read = None;
    for page in 1..=count {
        match view.search(&look(page), GATE) {
            Ok(found) => return Ok(answer(&found[1])),
            // A page that was fetched again has been looked at, even if it is gone once more.
            Err(Step::Answer(_)) => {}
            Err(_) if view.times_run(&look(page)) > 1 => {}
            Err(step) => read = read.or(Some(step)),
        }
    }
    read.ok_or_else(lost)
}
