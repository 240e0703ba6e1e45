//! Add up a column of a table.

use offcut_cli::trials::Random;

use crate::scripted::step::{Thought, answer};
use crate::scripted::task::Set;
use crate::scripted::view::RequestView;

pub(super) fn set_up(count: usize) -> Set {
    let mut random = Random::new(count as u64);
    let mut text = String::from("order,region,amount\n");
    let mut sum = 0;
    for order in 0..count {
        let region = ["north", "east", "south", "west"][random.below(4)];
        let amount = random.below(9_000) + 1_000;
        if region == "north" {
            sum += amount;
        }
        text += &format!("o{order:06},{region},{amount}\n");
    }
    Set {
        prompt: "Which sum have the orders of the north in `orders.csv`?".into(),
        files: vec![("orders.csv".into(), text)],
        answer: sum.to_string(),
        expected: Vec::new(),
    }
}

pub(super) fn agent(view: &RequestView) -> Thought {
    const TABLE: &str = "cat orders.csv";
    view.run(TABLE)?;
    let add = |notes: &str, lines: &mut dyn Iterator<Item = &str>| {
        let amounts = lines.filter_map(|line| line.rsplit(',').next()?.parse::<usize>().ok());
        (notes.parse().unwrap_or(0) + amounts.sum::<usize>()).to_string()
    };
    Ok(answer(view.all_lines(TABLE, r",north,\d+$", add)?))
}
