//! Follow ids through the answers of an API.

use offcut_cli::trials::Random;

use crate::scripted::step::{Thought, answer, bash, lost};
use crate::scripted::task::{Set, filler};
use crate::scripted::view::RequestView;

/// Items of each answer.
const ITEMS: usize = 60;

pub(super) fn set_up(count: usize) -> Set {
    let mut random = Random::new(count as u64);
    let id = |random: &mut Random| format!("{:012x}", random.next_u64() >> 16);
    let first = id(&mut random);
    let mut next = first.clone();
    let (mut keys, mut files) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let chosen = random.below(ITEMS);
        let path = format!("api/{next}.json");
        let mut lines = Vec::new();
        for item in 0..ITEMS {
            let of_item = id(&mut random);
            lines.push(format!(
                "  {{\"key\": \"k{item:02}\", \"id\": \"{of_item}\", \"note\": \"{}\"}}",
                filler(&mut random)
            ));
            if item == chosen {
                next = of_item;
            }
        }
        keys.push(format!("k{chosen:02}"));
        files.push((path, format!("[\n{}\n]\n", lines.join(",\n"))));
    }
    Set {
        prompt: format!(
            "Begin with api/{first}.json. Each answer has ids by key. Follow these keys, and say the last id: {}",
            keys.join(" ")
        ),
        files,
        answer: next,
        expected: Vec::new(),
    }
}

pub(super) fn agent(view: &RequestView) -> Thought {
    let after = |words: &str| Some(view.prompt.split_once(words)?.1);
    let keys = after("say the last id: ").ok_or_else(lost)?;
    let rest = after("api/").ok_or_else(lost)?;
    // The last answer is enough: the agent's own calls tell how far it has come.
    let mut id = rest.split('.').next().unwrap_or_default().to_owned();
    let called = view.commands("cat api/");
    for (step, key) in keys.split(' ').enumerate() {
        let Some(command) = called.get(step) else {
            return Ok(bash(format!("cat api/{id}.json")));
        };
        if let Some(next) = called.get(step + 1) {
            id = next
                .trim_start_matches("cat api/")
                .trim_end_matches(".json")
                .to_owned();
            continue;
        }
        // Context editors may make a table of a list: an id, its key, and the rest.
        let pattern = format!(r#"(?:"key": ?"{key}", ?"id": ?"|^)([0-9a-f]{{12}})(?:"|,{key},)"#);
        id.clone_from(&view.search(command, &pattern)?[1]);
    }
    Ok(answer(id))
}
