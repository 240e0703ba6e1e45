//! Tool outputs: turns data into parts, some of which imitate earlier parts of the conversation.

use bytes::Bytes;
use futures_util::stream;
use offcut::backend::Location;
use offcut::hint::{Flags, Hint, Kind, Position};
use offcut::{Body as RealBody, Chunk, Part, ToolCall, ToolError, ToolOutput};
use serde_json::{Value, json};

use super::generate::{Args, Body, Forgery, HintKind, Output, PartSpec, Place};
use super::shadow::PartContent;
use super::subject::Subject;
use super::wire::Wire;

/// The parts of the conversation so far that can be imitated.
#[derive(Debug, Default)]
pub(crate) struct Known {
    hints: Vec<String>,
    locations: Vec<String>,
    arguments: Vec<String>,
}

impl Known {
    /// Records the hints in a message.
    pub(crate) fn learn(&mut self, view: &super::shadow::View) {
        for part in view.slots.iter().flatten() {
            let PartContent::Text(text) = part else {
                continue;
            };
            let Some(hints) = Hint::parse_all(text) else {
                continue;
            };
            push_new(&mut self.hints, text);
            for location in hints
                .into_iter()
                .filter(|hint| hint.kind != Kind::Link)
                .filter_map(|hint| hint.location)
            {
                push_new(&mut self.locations, location.as_str());
            }
        }
        for arguments in view
            .arguments
            .iter()
            .filter(|arguments| arguments.contains("[offcut/1 cleared"))
        {
            push_new(&mut self.arguments, arguments);
        }
    }

    fn location(&self, which: usize) -> String {
        pick(&self.locations, which)
            .cloned()
            .unwrap_or_else(|| "nowhere/at/all".to_owned())
    }

    pub(crate) fn arguments(&self, spec: &Args) -> String {
        match spec {
            Args::Empty => String::new(),
            Args::Json(text) => json!({"query": text.render(), "n": 1}).to_string(),
            Args::Strings(texts) => {
                let texts: Vec<_> = texts.iter().map(|text| text.render()).collect();
                json!({"path": "src/a.rs", "edits": texts}).to_string()
            }
            Args::NotJson(text) => text.render(),
            Args::Cleared(which) => pick(&self.arguments, *which)
                .cloned()
                .unwrap_or_else(|| "{}".to_owned()),
        }
    }
}

fn push_new(list: &mut Vec<String>, text: &str) {
    if list.len() < 40 && !list.iter().any(|known| known == text) {
        list.push(text.to_owned());
    }
}

fn pick<T>(list: &[T], which: usize) -> Option<&T> {
    // Newest first, as a program would find them.
    list.iter().rev().nth(which.checked_rem(list.len())?)
}

/// A tool's output, and the parts of it that must never be lost.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) output: ToolOutput,
    pub(crate) originals: Vec<PartContent>,
}

/// Makes `call` name the stored content, which readers need.
pub(crate) fn aim(known: &Known, body: &Body, call: &mut ToolCall) {
    match body {
        Body::Page {
            which,
            offset,
            limit,
            pattern,
        } => {
            "read_file".clone_into(&mut call.name);
            let pattern = pattern.then_some("line 1|内容|[0-9]{2}");
            let path = known.location(*which);
            call.arguments =
                json!({"path": path, "offset": offset, "limit": limit, "pattern": pattern})
                    .to_string();
        }
        Body::Cat { which, .. } => {
            "cat".clone_into(&mut call.name);
            call.arguments =
                json!({"encoding": "utf-8", "path": known.location(*which)}).to_string();
        }
        _ => {}
    }
}

pub(crate) async fn make<F: Wire, S: Subject<F>>(
    subject: &S,
    known: &Known,
    call: &ToolCall,
    spec: &Output,
) -> Made {
    let mut output = match &spec.body {
        Body::Parts(parts) => ToolOutput::parts(
            F::default().can_hold(parts.iter().map(|part| make_part(known, part)).collect()),
        ),
        Body::Bytes(text) => {
            let mut bytes = text.render().into_bytes();
            bytes.splice(bytes.len() / 2..bytes.len() / 2, [0xff, 0xfe, b'\n', 0x80]);
            return Made {
                output: ToolOutput {
                    is_error: spec.is_error,
                    ..ToolOutput::bytes(bytes.clone())
                },
                originals: vec![PartContent::Raw(bytes.into())],
            };
        }
        Body::Broken(text) => {
            let text = text.render();
            let chunks = [
                Ok(Chunk::Bytes(text.clone().into())),
                Err(ToolError::new("the pipe broke")),
            ];
            return Made {
                output: ToolOutput {
                    is_error: spec.is_error,
                    ..ToolOutput::stream(stream::iter(chunks))
                },
                originals: [text, "the pipe broke".into()]
                    .into_iter()
                    .filter(|text| !text.is_empty())
                    .map(PartContent::Text)
                    .collect(),
            };
        }
        Body::Page { .. } => subject
            .page(call)
            .await
            .unwrap_or_else(|| "no reader".into()),
        Body::Cat {
            which,
            numbers,
            header,
            skip,
            without,
        } => {
            let content = subject
                .read(&known.location(*which))
                .await
                .unwrap_or_default();
            cat(
                &String::from_utf8_lossy(&content),
                *numbers,
                *header,
                *skip,
                *without,
            )
            .into()
        }
    };
    output.is_error |= spec.is_error;
    let RealBody::Parts(parts) = &output.body else {
        unreachable!("whole results")
    };
    let originals = parts.iter().map(PartContent::from).collect();
    Made { output, originals }
}

/// Imitates the output of tools such as `cat -n`, `sed`, `grep -v` or an editor's viewer.
fn cat(content: &str, numbers: bool, header: bool, skip: usize, without: usize) -> String {
    let mut out = if header {
        "<file> 1 of 1\n".to_owned()
    } else {
        String::new()
    };
    for (line, number) in content.lines().zip(1..).skip(skip) {
        if without > 0 && number % without == 0 {
            continue;
        }
        if numbers {
            out.push_str(&format!("{number:>6}\t"));
        }
        out.push_str(line);
        out.push('\n');
    }
    out
}

fn make_part(known: &Known, spec: &PartSpec) -> Part {
    match spec {
        PartSpec::Text(text) => Part::Text(text.render()),
        PartSpec::Json(text) => {
            Part::Json(json!({"z": text.render(), "a": [1, -2.5, null], "é": {}}))
        }
        PartSpec::Media { mime, length, seed } => {
            let data: Bytes = (0..*length).map(|n| (n * 7) as u8 ^ seed).collect();
            Part::Media {
                mime: mime.text().into(),
                data,
            }
        }
        PartSpec::Link(length) => Part::Link {
            mime: None,
            url: format!("https://example.org/{}", "x".repeat(*length)),
        },
        PartSpec::Opaque(text) => {
            Part::Opaque(json!({"type": "blob", "x": [text.render()], "a": Value::Null}))
        }
        PartSpec::Copy { which, more } => {
            let hint = pick(&known.hints, *which)
                .cloned()
                .unwrap_or_else(|| "no hint yet".to_owned());
            Part::Text(hint + &more.map(super::text::Text::render).unwrap_or_default())
        }
        PartSpec::Forged(forgery) => Part::Text(forge(known, forgery)),
    }
}

fn forge(known: &Known, forgery: &Forgery) -> String {
    let like = forgery
        .like
        .and_then(|which| pick(&known.hints, which))
        .and_then(|text| Hint::parse_all(text)?.pop());
    let mut hint = like.unwrap_or_else(|| Hint::new(Kind::Truncated, 1_000));
    if let Some(kind) = forgery.kind {
        hint.kind = match kind {
            HintKind::Truncated => Kind::Truncated,
            HintKind::Cleared => Kind::Cleared,
            HintKind::Link => Kind::Link,
            HintKind::Matches => Kind::Matches,
            HintKind::Page(line, byte) => Kind::Page {
                from: Position { line, byte },
            },
        };
    }
    match forgery.place {
        Place::Same => {}
        Place::Known(which) => hint.location = Some(Location::new(known.location(which))),
        Place::Invented => {
            let known = known.location(0);
            let folder = known.rsplit_once('/').map_or("", |(folder, _)| folder);
            hint.location = Some(Location::new(format!("{folder}/never-stored")));
        }
        Place::Foreign => hint.location = Some(Location::new("/etc/passwd")),
        Place::Nowhere => hint.location = None,
    }
    if let Some(prose) = forgery.prose {
        hint.prose = prose.render();
    }
    if let Some(preview) = forgery.preview {
        hint.preview = preview.render();
    }
    let [interrupted, not_utf8, joined] = forgery.notes;
    if forgery.notes != [false; 3] {
        hint.flags = Flags::default();
        (
            hint.flags.interrupted,
            hint.flags.not_utf8,
            hint.flags.joined,
        ) = (interrupted, not_utf8, joined);
    }
    hint.bytes = forgery.bytes.unwrap_or(hint.bytes);
    hint.render()
}
