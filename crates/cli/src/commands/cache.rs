//! `offcut replay --cache`.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;

use offcut::format::RequestBody;
use serde_json::{Value, json};

use super::status;
use crate::failure::{Failure, code_of};
use crate::gateway::{MissSums, Prompt, RecentPrompts};
use crate::output;
use crate::transcript;
use crate::units::{count, grouped};

const HINT: &str = "give files of JSON Lines with the body of a request on each line, alone or in `body` or `request`, in the order in which they were sent";

/// Compares each request of some logs with those before it in its conversation.
pub(crate) fn run(logs: &[PathBuf], json: bool) -> Result<ExitCode, Failure> {
    let (mut sums, mut misses, mut requests, mut conversations) =
        (MissSums::default(), Vec::new(), 0, 0);
    let mut skipped = Vec::new();
    for log in transcript::sources(logs)? {
        let mut known: HashMap<Option<u64>, RecentPrompts> = HashMap::new();
        let read = log.see_bodies(|(line, at), body| {
            let text = body.to_string();
            let Ok(body) = RequestBody::parse(&*text) else {
                return;
            };
            let prompt = Prompt::of(&body, text.len() as u64, "");
            let recent = known.entry(prompt.beginning()).or_default();
            // The log has no times that all of its writers agree on.
            let forms = [prompt.clone(), prompt];
            let (_, expected) = recent.next(&forms, 0);
            recent.add(forms);
            requests += 1;
            if let Some(miss) = expected.miss {
                sums.add(&miss);
                let mut row = miss.row();
                row["log"] = json!(log.name());
                row["line"] = json!(line);
                row["request"] = json!(at + 1);
                misses.push(row);
            }
        });
        let why = match read {
            Ok(bad) if bad.is_empty() => None,
            Ok(bad) => Some(format!(
                "{} not JSON, the first is line {}",
                count(bad.len() as u64, "line"),
                bad[0]
            )),
            Err(error) => Some(error.to_string()),
        };
        if let Some(why) = why {
            let [name, why] = [&*log.name(), &*why].map(output::visible);
            output::warn(&format!("skipped in {name}: {why}"));
            output::note(HINT);
            skipped.push(json!({"log": name, "why": why}));
        }
        conversations += known.len() as u64;
    }
    if requests == 0 {
        return Err(Failure::usage("there is no request in these logs", HINT));
    }
    if json {
        output::write_json(&json!({
            "requests": requests,
            "conversations": conversations,
            "sums": sums.rows(),
            "misses": misses,
            "skipped": skipped,
        }))?;
    } else {
        let mut text: String = misses.iter().map(row).collect();
        text += &format!(
            "{} of {}, {} missed the cache.\n",
            count(requests, "request"),
            count(conversations, "conversation"),
            misses.len(),
        );
        output::write(&(text + &status::misses(&sums.rows())))?;
    }
    Ok(code_of(skipped.is_empty()))
}

fn row(miss: &Value) -> String {
    let said = |name: &str| status::said(miss, name);
    // A document, such as a list, may hold several.
    let request = miss["request"].as_u64().filter(|nth| *nth > 1);
    let request = request.map_or_else(String::new, |nth| format!(", request {nth}"));
    format!(
        "{} line {}{request}: {}, from {} on, about {} tokens\n",
        said("log"),
        miss["line"],
        said("kind"),
        said("part"),
        grouped(miss["tokens"].as_i64().unwrap_or(0)),
    )
}
