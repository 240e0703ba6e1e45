//! Look up many records, and be asked afterwards about a few of them.

use offcut_cli::trials::Random;

use crate::scripted::step::{Thought, answer, lost};
use crate::scripted::task::{Set, filler};
use crate::scripted::view::{RequestView, numbers};

/// The beginning of its notes, and of the phones in them.
const NOTED: &str = "Asked for ";
const FOUND: &str = ". Found: ";

pub(super) fn set_up(count: usize) -> Set {
    let mut random = Random::new(count as u64);
    let mut set = Set {
        prompt: format!(
            "Look at the records of customers 1 to {count}, then answer the question in the file `question`."
        ),
        ..Set::default()
    };
    let mut phones = Vec::new();
    for customer in 1..=count {
        let phone = format!(
            "+49 {:03} {:07}",
            random.below(1_000),
            random.below(10_000_000)
        );
        let history: Vec<String> = (0..40)
            .map(|year| format!("    \"{}: {}\"", 1_980 + year, filler(&mut random)))
            .collect();
        let text = format!(
            "{{\n  \"customer\": {customer},\n  \"history\": [\n{}\n  ],\n  \"phone\": \"{phone}\",\n  \"tier\": \"gold\"\n}}\n",
            history.join(",\n")
        );
        set.files.push((format!("records/{customer}.json"), text));
        phones.push(phone);
    }
    let asked = [1, count.div_ceil(2), count];
    set.files.push((
        "question".into(),
        format!(
            "Which phones have customers {}?\n",
            asked.map(|customer| customer.to_string()).join(" ")
        ),
    ));
    set.answer = asked
        .map(|customer| phones[customer - 1].clone())
        .join(", ");
    set
}

pub(super) fn agent(view: &RequestView) -> Thought {
    let count = numbers(&view.prompt).max().ok_or_else(lost)?;
    let look = |customer: usize| format!("cat records/{customer}.json");
    // Its own words keep everything that it has found, whatever becomes of the results.
    let noted = view.note(NOTED).and_then(|note| note.split_once(FOUND));
    if noted.is_none() {
        for customer in 1..=count {
            view.run(&look(customer))?;
        }
        view.run("cat question")?;
    }
    let (asked, mut phones) = match noted {
        Some((asked, phones)) => {
            let phones = phones.split(", ").filter(|phone| !phone.is_empty());
            (asked.to_owned(), phones.map(str::to_owned).collect())
        }
        None => {
            let asked = view.search("cat question", r"customers (.*)\?")?;
            (asked[1].clone(), Vec::new())
        }
    };
    let open: Vec<usize> = numbers(&asked).skip(phones.len()).collect();
    for customer in open {
        let found = view.search(&look(customer), r#""phone": ?"([^"]+)""#);
        let noted = || format!("{NOTED}{asked}{FOUND}{}", phones.join(", "));
        let phone = found.map_err(|step| step.with(noted()))?;
        phones.push(phone[1].clone());
    }
    Ok(answer(phones.join(", ")))
}
