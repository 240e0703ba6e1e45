//! Requests that another policy has made of a transcript: a file of JSON Lines, one for each.

use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

use offcut::format::Message;
use serde::Deserialize;
use serde_json::Value;

use super::script::Script;
use super::view::ReplacedText;
use crate::failure::Failure;
use crate::transcript;

/// A request as a line of the file says it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    /// Number of leading messages that are those of the request before.
    #[serde(default)]
    keep: usize,
    /// The messages after them: the number of a message of the transcript, or one in full.
    messages: Vec<Value>,
    /// Messages that the policy's own reader returns from now on, with the number of lines that it
    /// returns at once; 0 for all.
    #[serde(default)]
    stored: HashMap<usize, usize>,
    /// True for a request of the policy's own, such as one for a summary.
    #[serde(default)]
    own: bool,
}

/// A request.
#[derive(Debug)]
pub(super) struct RecordedRequest {
    /// Its messages. Equal ones are one.
    pub(super) entries: Vec<Rc<Entry>>,
    pub(super) stored: HashMap<usize, usize>,
    /// Tokens of the requests that the policy has made for itself before this one.
    pub(super) own_tokens: u64,
}

/// A message of a request.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) tokens: u64,
    /// The message of the transcript in whose place it is; `None` if it was added.
    pub(super) at: Option<usize>,
    /// `None` if it is that message, unchanged.
    pub(super) view: Option<Rc<ReplacedText>>,
}

const HINT: &str = "write a file for each transcript, named as it is, with the ending .jsonl and a line for each model call; docs/peers.md has the format";

/// Reads the requests made of a transcript from the file that is named after it.
pub(super) fn read(
    folder: &Path,
    name: &str,
    script: &Script<'_>,
) -> Result<Vec<RecordedRequest>, Failure> {
    // A source with several transcripts has a number at the end of each name.
    let numbered = name.rsplit_once('#');
    let numbered = numbered.filter(|(_, number)| number.parse::<usize>().is_ok());
    let (path, number) = numbered.unwrap_or((name, ""));
    let stem = Path::new(path).file_stem().unwrap_or_default();
    let mut stem = stem.to_string_lossy().into_owned();
    if !number.is_empty() {
        stem += &format!("#{number}");
    }
    let file = folder.join(stem + ".jsonl");
    let failed = |why: String| Failure::usage(format!("{}: {why}", file.display()), HINT);
    let text = std::fs::read_to_string(&file).map_err(|error| failed(error.to_string()))?;
    parse(&text, script).map_err(failed)
}

/// Reads the lines of a file.
fn parse(text: &str, script: &Script<'_>) -> Result<Vec<RecordedRequest>, String> {
    let turns = &script.turns;
    let mut known: HashMap<String, Rc<Entry>> = HashMap::new();
    let (mut requests, mut own_tokens) = (Vec::<RecordedRequest>::new(), 0);
    for (index, text) in text.lines().enumerate() {
        let at = |why: String| format!("line {}: {why}", index + 1);
        let line: Line = serde_json::from_str(text).map_err(|error| at(error.to_string()))?;
        let Some(turn) = turns.get(requests.len()) else {
            return Err(at(format!(
                "the transcript has only {} model calls",
                turns.len()
            )));
        };
        let before: &[Rc<Entry>] = requests.last().map_or(&[], |last| &last.entries);
        let Some(kept) = before.get(..line.keep) else {
            return Err(at(format!(
                "it keeps {} messages of the {} in the request before",
                line.keep,
                before.len()
            )));
        };
        let mut entries = kept.to_vec();
        for message in &line.messages {
            let spelled = message.to_string();
            let entry = match known.get(&spelled) {
                Some(entry) => Rc::clone(entry),
                None => Rc::new(entry(message, script).map_err(at)?),
            };
            if let Some(number) = entry.at.filter(|number| number >= turn) {
                return Err(at(format!("message {number} is not known at this call")));
            }
            known.insert(spelled, Rc::clone(&entry));
            entries.push(entry);
        }
        if line.own {
            own_tokens += entries.iter().map(|entry| entry.tokens).sum::<u64>();
            continue;
        }
        if let Some(number) = line.stored.keys().find(|number| **number >= *turn) {
            return Err(at(format!("message {number} is not known at this call")));
        }
        requests.push(RecordedRequest {
            entries,
            stored: line.stored,
            own_tokens: std::mem::take(&mut own_tokens),
        });
    }
    if requests.len() < turns.len() {
        return Err(format!(
            "it has {} requests, and the transcript {} model calls",
            requests.len(),
            turns.len()
        ));
    }
    Ok(requests)
}

fn entry(message: &Value, script: &Script<'_>) -> Result<Entry, String> {
    let number = message
        .as_u64()
        .or_else(|| message.get("instead_of")?.as_u64())
        .map(|number| usize::try_from(number).unwrap_or(usize::MAX));
    let find = |number: usize| {
        let original = script.messages.get(number);
        original.ok_or_else(|| format!("the transcript has no message {number}"))
    };
    let original = number.map(find).transpose()?;
    if let (Some(number), true) = (number, message.is_u64()) {
        return Ok(Entry {
            tokens: script.tokens[number],
            at: Some(number),
            view: None,
        });
    }
    let mut read = transcript::chat_message(message)
        .ok_or("a message is neither a number nor a message of chat completions")?;
    // Names and ids that the transcript has and the line may lack.
    if let (
        Message::Tool { call_id, name, .. },
        Some(Message::Tool {
            call_id: id,
            name: known,
            ..
        }),
    ) = (&mut read, original)
    {
        call_id.clone_from(id);
        name.clone_from(known);
    }
    Ok(Entry {
        tokens: script.ruler.tokens(&mut read),
        at: number,
        view: Some(Rc::new(ReplacedText::of_message(&read))),
    })
}
