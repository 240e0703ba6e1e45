//! `offcut read`.

use std::process::ExitCode;

use offcut::agent::Tool;
use offcut::backend::{Key, Location};
use offcut::format::LoopFormat;
use offcut::{Part, ToolCall};
use serde_json::{Value, json};

use crate::evidence::text_of;
use crate::failure::{Failure, OrFail as _, chain};
use crate::{args, output, settings, stores};

pub(crate) fn run(args: &args::Read, json: bool) -> Result<ExitCode, Failure> {
    let runtime = settings::runtime()?;
    let _inside = runtime.enter();
    if let Some(format) = args.definition {
        let of_user = &args.reduction.of_user;
        let (mut settings, origin) = settings::named(of_user, || Ok(settings::MEMORY.into()))?;
        settings::forget_stores(&mut settings);
        let reader = settings::build(&settings, &origin)?.read_file_tool();
        output::write_json(&format.tool(&reader))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut asked: Value = match &args.arguments {
        Some(arguments) => serde_json::from_str(arguments).or_refuse(
            "--arguments is not JSON",
            "pass the arguments of the model's call, such as {\"path\": \"…\"}",
        )?,
        None => json!({
            "path": args.location,
            "offset": args.offset,
            "limit": args.limit,
            "pattern": args.pattern,
            "context": args.context,
            "count": args.count,
            "query": args.query,
        }),
    };
    let named = asked["path"].as_str().unwrap_or_default().to_owned();
    let reduction = settings::reader(args, &named)?;
    let reader = reduction.read_file_tool();
    let stores = reduction.stores();
    let mut meant = stores::meanings(&stores, &named);
    let prefix = reduction.prefix();
    if let Ok(key) = Key::new(format!("{prefix}{named}"))
        && !prefix.is_empty()
    {
        meant.splice(0..0, stores.iter().map(|store| store.locate(&key)));
    }
    if meant.is_empty() {
        // The reader says what is wrong with it.
        meant.push(Location::new(named));
    }
    let mut read = |location: &Location| {
        if let Some(asked) = asked.as_object_mut() {
            asked.insert("path".to_owned(), json!(location.as_str()));
        }
        let call = ToolCall::new("", reader.definition().name, asked.to_string());
        runtime.block_on(reader.call(&call))
    };
    let mut answer = read(&meant[0]);
    for other in &meant[1..] {
        if answer.is_ok() {
            break;
        }
        answer = read(other).or(answer);
    }
    let hint = "change the option that the error names, or use the settings, --backend and --session with which it was stored";
    let output = answer.map_err(|error| Failure::new(chain(&error)).hint(hint))?;
    let (parts, _) = runtime.block_on(output.into_parts());
    match &parts[..] {
        _ if json => output::write_json(&json!({"text": text_of(&parts), "parts": parts}))?,
        [Part::Media { data, .. }] => output::write_media(data)?,
        _ => output::write_stored(&text_of(&parts))?,
    }
    Ok(ExitCode::SUCCESS)
}
