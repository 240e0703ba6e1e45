//! A store of your own: tool results of a machine in one SQLite database.
//!
//! ```sh
//! cargo run -p offcut-examples --features services --example sqlite -- results.db
//! ```
//!
//! - `store.rs` is the contract: names, and the effect of each call.
//! - `connection.rs` runs work on a thread that may block, and turns SQLite's errors into ours.
//! - `writer.rs` is content that arrives in chunks.
//! - `database.rs` is the SQL: the tables, and the atomic steps on them.
//! - `contract.rs` tests it, by the suite that every store has to pass.

#![allow(clippy::print_stdout, reason = "a program that talks to a person")]

mod connection;
#[cfg(test)]
mod contract;
mod database;
mod store;
mod writer;

use std::error::Error;

use offcut::{Part, ToolCall, ToolReduction};

use store::Sqlite;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args()
        .nth(1)
        .ok_or("sqlite FILE: which database?")?;
    let reduction = ToolReduction::recommended(Sqlite::open(file)?).build()?;
    let call = ToolCall::new("call_1", "grep", r#"{"pattern":"alloc"}"#);
    let result: String = (1..=3_000)
        .map(|line| format!("src/pool.rs:{line}: alloc\n"))
        .collect();
    let shown = reduction.truncate(&call, result).await?;
    for part in shown.parts {
        if let Part::Text(text) = part {
            println!("{text}");
        }
    }
    Ok(())
}
