//! Shows each preview of three typical tool results, or of a file.
//!
//! ```text
//! cargo run --example previews
//! cargo run --example previews -- FILE BYTES
//! ```
#![allow(clippy::print_stdout, reason = "a program that talks to a person")]

use std::error::Error;

use offcut::preview::Preview;

const STRATEGIES: [(&str, Preview); 4] = [
    ("head_tail", Preview::HeadTail),
    ("lines", Preview::Lines),
    ("index", Preview::Index),
    ("mixed", Preview::Mixed),
];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [] => {
            show("A test run", &test_run(), 420);
            show("Source code", &source(), 420);
            show("JSON in one line", &json(), 360);
        }
        [file, bytes] => {
            let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
            show(file, &text, bytes.parse()?);
        }
        _ => return Err("pass a file and a number of bytes, or nothing".into()),
    }
    Ok(())
}

fn show(what: &str, text: &str, budget: usize) {
    println!(
        "# {what}: {} bytes, {} lines, in {budget} bytes\n",
        text.len(),
        text.lines().count()
    );
    for (name, preview) in STRATEGIES {
        println!("## {name}\n\n{}\n", preview.show(text, budget));
    }
}

fn test_run() -> String {
    let mut log = String::from("$ cargo test\n   Compiling shop v0.3.1 (/home/shop)\n");
    for n in 1..=220 {
        log.push_str(&format!("test cart::tests::adds_item_{n} ... ok\n"));
        if n == 143 {
            log.push_str("test cart::tests::rounds_half_up ... FAILED\n");
        }
    }
    log + "\nfailures:\n\nthread 'cart::tests::rounds_half_up' panicked at src/cart/price.rs:88:9:\n\
           assertion `left == right` failed\n  left: 1199\n right: 1200\n\ntest result: FAILED. 220 passed; 1 failed\n"
}

fn source() -> String {
    let functions = [
        ("load_orders", "store.read_range(from..to)"),
        ("total_of", "order.lines.iter().map(line_price).sum()"),
        ("line_price", "round_half_up(line.price * line.count)"),
        ("round_half_up", "(value + Decimal::HALF).trunc()"),
        ("send_invoice", "mailer.queue(Invoice::of(order))"),
    ];
    let function = |(name, body)| {
        format!(
            "/// What the shop does with an order at this step. It has no side effects but those that\n\
             /// its name says, and it is called from nowhere else than the page of the same step.\n\
             pub fn {name}(order: &Order) -> Result<Amount> {{\n    // Nothing here is as odd as it looks.\n    {body}\n}}\n\n"
        )
    };
    functions.into_iter().map(function).collect()
}

fn json() -> String {
    let order = |n| {
        let state = if n == 41 { "payment_failed" } else { "shipped" };
        format!(
            r#"{{"id":"ord_{:04}","state":"{state}","note":"left at the door","cents":{}}}"#,
            7 * n,
            1_000 + 37 * n
        )
    };
    format!(
        "{{\"orders\":[{}]}}",
        (0..60).map(order).collect::<Vec<_>>().join(",")
    )
}

#[cfg(test)]
mod tests {
    use super::{STRATEGIES, json, source, test_run};

    /// Groups the digits of `number` by threes, as the page does.
    fn grouped(number: usize) -> String {
        let digits = number.to_string();
        match digits.len() {
            0..=3 => digits,
            length => format!("{} {}", &digits[..length - 3], &digits[length - 3..]),
        }
    }

    #[test]
    fn the_page_shows_what_this_program_prints() {
        let page = include_str!("../docs/previews.md");
        let (_, examples) = page.split_once("## Examples").unwrap();
        let (examples, _) = examples.split_once("\n## ").unwrap();
        let texts = [(test_run(), 420), (source(), 420), (json(), 360)];
        let printed: Vec<String> = texts
            .iter()
            .flat_map(|(text, budget)| STRATEGIES.map(|(_, preview)| preview.show(text, *budget)))
            .collect();
        let shown: Vec<&str> = examples
            .split("```text\n")
            .skip(1)
            .map(|rest| rest.split("\n```").next().unwrap())
            .collect();
        assert_eq!(shown.len(), 5);
        for block in shown {
            // The page leaves names out of a long list.
            let (start, end) = block.split_once(" … ").unwrap_or((block, ""));
            let is_it = |output: &String| {
                let output = output.trim_end();
                output == block
                    || !end.is_empty() && output.starts_with(start) && output.ends_with(end)
            };
            assert!(
                printed.iter().any(is_it),
                "the page shows\n{block}\n\nthe program prints\n{}",
                printed.join("\n\n")
            );
        }
        for (text, budget) in &texts {
            let (lines, bytes) = (text.lines().count(), grouped(text.len()));
            let many = format!("of {lines} lines and {bytes} bytes, in {budget} bytes");
            let one = format!("of {bytes} bytes in one line, in {budget} bytes");
            assert!(
                examples.contains(&many) || lines == 1 && examples.contains(&one),
                "the page must say: {many}"
            );
        }
    }
}
