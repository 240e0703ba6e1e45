//! The bill of a provider for the requests of a session, and the end of its cache.

use offcut::format::{Format, PartRef, Piece, WireFormat};
use offcut::hint::{Hint, Kind};
use serde_json::Value;

/// The sums of a session, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bill {
    /// The lengths of all requests' messages.
    pub bytes: f64,
    /// The same sum with the messages that were in the request before at a tenth, and the rest at 1.25.
    pub weighted: f64,
    /// Requests that do not begin with the whole request before.
    pub breaks: usize,
    /// Those of them that a pass over old results explains.
    pub passes: usize,
}

/// The messages of a request, as the provider reads them.
fn messages(format: WireFormat, body: &str) -> Vec<Value> {
    let body: Value = serde_json::from_str(body).unwrap();
    let field = match format {
        WireFormat::Gemini => "contents",
        WireFormat::Responses => "input",
        _ => "messages",
    };
    body[field].as_array().unwrap().clone()
}

impl Bill {
    /// The bill of requests, one after the other.
    pub fn of(format: WireFormat, bodies: &[&str]) -> Self {
        let (mut bill, mut before) = (Self::default(), Vec::<Value>::new());
        for body in bodies {
            let now = messages(format, body);
            if now == before {
                // Sent again after a failure.
                continue;
            }
            let length = |messages: &[Value]| -> f64 {
                let lengths = messages.iter().map(|message| message.to_string().len());
                lengths.sum::<usize>() as f64
            };
            let same = before.iter().zip(&now).take_while(|(a, b)| a == b).count();
            let (cached, all) = (length(&now[..same]), length(&now));
            bill.bytes += all;
            bill.weighted += 0.1 * cached + 1.25 * (all - cached);
            if same < before.len() {
                bill.breaks += 1;
                let is_pass = cleared(format, &now) > cleared(format, &before);
                bill.passes += usize::from(is_pass);
            }
            before = now;
        }
        bill
    }
}

/// The number of results that a pass has cleared.
fn cleared(format: WireFormat, messages: &[Value]) -> usize {
    let mut count = 0;
    for message in messages {
        format.visit(message, &mut |piece| {
            if let Piece::Content(PartRef::Text(text)) = piece {
                let hint = Hint::parse(text);
                count += usize::from(hint.is_some_and(|hint| hint.kind == Kind::Cleared));
            }
        });
    }
    count
}

/// Asserts that `sent` is `asked` but for hints, each of which leads to the text that it stands for. Returns the number
/// of hints.
pub fn differ_by_hints(asked: &str, sent: &str) -> usize {
    let mut hints = Vec::new();
    texts(&serde_json::from_str(sent).unwrap(), &mut |text| {
        hints.extend(Hint::parse(text).map(|hint| (text.to_owned(), hint)));
    });
    let count = hints.len();
    let mut restored = sent.to_owned();
    for (text, hint) in hints {
        let path = hint.location.expect("stored").to_string();
        let original = std::fs::read_to_string(&path).expect("what was stored");
        let [text, original] = [text, original].map(|text| Value::String(text).to_string());
        assert!(
            restored.contains(&text),
            "a hint that is spelled in another way"
        );
        restored = restored.replace(&text, &original);
    }
    // Clients spell these texts, which are ASCII, as serde does.
    assert!(restored == asked, "{}", first_difference(&restored, asked));
    count
}

fn texts(value: &Value, see: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => see(text),
        Value::Array(items) => items.iter().for_each(|item| texts(item, see)),
        Value::Object(fields) => fields.values().for_each(|field| texts(field, see)),
        _ => {}
    }
}

fn first_difference(a: &str, b: &str) -> String {
    let at = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let near = |text: &str| {
        let bytes = text.as_bytes();
        let range = at.saturating_sub(80)..bytes.len().min(at + 80);
        String::from_utf8_lossy(&bytes[range]).into_owned()
    };
    format!("at {at}: {} / {}", near(a), near(b))
}
