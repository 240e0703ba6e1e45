//! Change one constant in a large file.

use offcut_cli::trials::Random;

use crate::scripted::step::{Thought, answer, edit};
use crate::scripted::task::Set;
use crate::scripted::view::RequestView;

const PATH: &str = "src/handlers.rs";

pub(super) fn set_up(count: usize) -> Set {
    let mut random = Random::new(count as u64);
    let (mut before, mut after) = (String::new(), String::new());
    let handler = count * 3 / 5;
    for number in 0..count {
        let limit = random.below(900) + 100;
        let function = |limit: usize| {
            format!(
                "/// Handles event {number}.\npub fn handler_{number}(event: &Event) -> Result<Reply, Failure> {{\n    \
                 let limit_{number} = {limit};\n    event.within(limit_{number})?.dispatch(Route::Number({number}))\n}}\n\n"
            )
        };
        before += &function(limit);
        let raise = if number == handler { 1_000 } else { 0 };
        after += &function(limit + raise);
    }
    Set {
        prompt: format!("In {PATH}, raise the limit of handler_{handler} by 1000."),
        files: vec![(PATH.into(), before)],
        answer: "Done.".into(),
        expected: vec![(PATH.into(), after)],
    }
}

pub(super) fn agent(view: &RequestView) -> Thought {
    let command = format!("cat {PATH}");
    view.run(&command)?;
    if view.edits() > 0 {
        return Ok(answer("Done."));
    }
    let handler = view
        .prompt
        .split("handler_")
        .nth(1)
        .and_then(|rest| rest.split(' ').next())
        .unwrap_or_default();
    let found = view.search(&command, &format!(r"let limit_{handler} = (\d+);"))?;
    let limit: usize = found[1].parse().unwrap_or(0);
    let name = format!("let limit_{handler} = ");
    Ok(edit(
        PATH,
        &format!("{name}{limit};"),
        &format!("{name}{};", limit + 1_000),
    ))
}
