//! Hints in your own words and in your users' language.
//!
//! The header of a hint, in brackets, never changes: it is the only part that is parsed. The text
//! after it is yours.
//!
//! ```sh
//! cargo run --example custom_hints
//! ```

use std::error::Error;
use std::io::Write;

use offcut::backend::Memory;
use offcut::hint::Sentence;
use offcut::{Builder, Language, Settings, ToolCall, ToolReduction, backend};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout();
    writeln!(out, "the default\n    {}", first_line(small()?).await?)?;
    writeln!(
        out,
        "in Chinese\n    {}",
        first_line(small()?.language(Language::Chinese)).await?
    )?;

    let own = small()?
        .template(
            Language::English,
            Sentence::Truncated,
            "{tool} said {bytes} bytes; you see the ends of it.",
        )
        .template(
            Language::English,
            Sentence::Reader,
            "Before you guess, call {reader}.",
        );
    writeln!(
        out,
        "with templates of our own\n    {}",
        first_line(own).await?
    )?;

    // The same from a file. There is no French table, so French replaces the English one.
    let french = Settings::from_toml(
        r#"
        max_length_for_trunc = 4_000
        preview_length = 200

        [templates.english]
        truncated = "Enregistré en entier."
        reader = "À lire avec {reader}."
        "#,
    )?;
    let french = ToolReduction::builder()
        .settings(french, backend::open)
        .backend(Memory::named("demo")?);
    writeln!(out, "in French\n    {}", first_line(french).await?)?;

    // A broken template is reported when the reduction is built.
    let wrong = small()?.template(Language::English, Sentence::Reader, "Use {raeder}.");
    if let Err(error) = wrong.build() {
        writeln!(out, "misspelt\n    {error}")?;
    }
    Ok(())
}

fn small() -> Result<Builder, Box<dyn Error>> {
    Ok(ToolReduction::recommended(Memory::named("demo")?)
        .max_length_for_trunc(4_000)
        .preview_length(200))
}

async fn first_line(builder: Builder) -> Result<String, Box<dyn Error>> {
    let call = ToolCall::new("call_1", "search", "{}");
    let shown = builder
        .build()?
        .truncate(&call, "a line of the result\n".repeat(1_000))
        .await?;
    Ok(shown.text().lines().next().unwrap_or_default().to_owned())
}
