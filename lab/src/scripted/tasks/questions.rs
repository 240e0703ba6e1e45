//! Questions about one result each: the agent runs a command, and finds what it was asked for in what it is shown, or asks
//! the reader.

use std::sync::LazyLock;

use offcut_cli::trials::Random;
use serde::Deserialize;

use crate::scripted::step::{Thought, answer};
use crate::scripted::task::{Set, Work, filler};
use crate::scripted::view::RequestView;

/// A question about the output of a command, as the file of questions explains it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Question {
    pub(crate) name: String,
    prompt: String,
    file: String,
    pub(crate) count: usize,
    #[serde(default)]
    before: String,
    /// Each line ends with a line feed unless this is set.
    between: Option<String>,
    #[serde(default)]
    after: String,
    #[serde(default)]
    value: String,
    every: Option<usize>,
    odd: Option<String>,
    other: String,
    #[serde(default)]
    pattern: String,
    query: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Questions {
    question: Vec<Question>,
}

#[expect(clippy::expect_used, reason = "a constant file, read by every test")]
pub(crate) static ALL: LazyLock<Vec<Question>> = LazyLock::new(|| {
    let questions: Questions =
        toml::from_str(include_str!("questions.toml")).expect("a file of questions");
    questions.question
});

impl Work for Question {
    fn set_up(&self, count: usize) -> Set {
        let random = &mut Random::new(count as u64);
        let place = count * 3 / 5;
        let value = filled(&self.value, random, place, "");
        let mut odd = 0;
        let lines: Vec<String> = (0..count)
            .map(|index| {
                let is_odd = self
                    .every
                    .map_or(index == place, |every| index % every == 0);
                odd += usize::from(is_odd);
                let line = self.odd.as_ref().filter(|_| is_odd).unwrap_or(&self.other);
                filled(line, random, index, &value)
            })
            .collect();
        let lines = match &self.between {
            Some(between) => lines.join(between),
            None => lines.join("\n") + "\n",
        };
        let after = filled(&self.after, random, count, &value);
        let mut text = [&*self.before, &lines, &after].concat();
        if self.file.ends_with(".sh") {
            text = format!("cat <<'END_OF_OUTPUT'\n{text}END_OF_OUTPUT\nexit 1\n");
        }
        Set {
            prompt: format!("{} See `{}`.", self.prompt, self.file),
            files: vec![(self.file.clone(), text)],
            answer: self.every.map_or(value, |_| odd.to_string()),
            expected: Vec::new(),
        }
    }

    fn act(&self, view: &RequestView, set: &Set) -> Thought {
        let program = match self.file.ends_with(".sh") {
            true => "sh",
            false => "cat",
        };
        let command = format!("{program} {}", self.file);
        view.run(&command)?;
        Ok(answer(match &self.query {
            None => view.search(&command, &self.pattern)?.remove(1),
            Some(query) => {
                let whole = (&*set.files[0].1, &*set.answer);
                view.ask(&command, whole, &self.pattern, query)?
            }
        }))
    }
}

/// Fills the places of a template.
fn filled(template: &str, random: &mut Random, index: usize, value: &str) -> String {
    let mut parts = template.split('$');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (place, rest) = part.split_at(1);
        text += &match place {
            "i" => index.to_string(),
            "p" => format!("{index:05}"),
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
