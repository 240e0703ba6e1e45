//! Answers to questions about stored content, in jq's language.
//!
//! A query runs on a thread of its own with bounds on its time, memory and depth ([`bounds`]). It
//! sees nothing but the content, which is `.`; `inputs` are its records.

mod bounds;
mod functions;
mod records;
#[cfg(test)]
mod tests;
mod value;

use std::any::Any;
use std::fmt::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use jaq_core::box_iter::box_once;
use jaq_core::data::HasLut;
use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, DataT, Lut, ValT as _, Vars, load};
use jaq_std::input::{HasInputs, Inputs, RcIter};
use tokio::sync::{Semaphore, oneshot};

use self::bounds::step;
use self::value::{Text, Value};
use super::page::{Page, PageCutter};
use super::words::Refusal;
use crate::backend::content::Stored;

/// The longest query, in bytes. Parsing recurses.
const MAX_QUERY: usize = 4 << 10;
/// Longer arrays, in bytes, are shown with an element on each line.
const MAX_ARRAY_LINE: usize = 120;
/// The most bytes of an error's values that are shown.
const MAX_SHOWN: usize = 300;
/// Queries that run at the same time in this process. The others wait.
static RUNNING: Semaphore = Semaphore::const_new(2);

/// Runs `query` over `stored`, and cuts a page out of what it prints.
pub(super) async fn answer(
    stored: &Stored,
    query: String,
    cutter: PageCutter,
) -> Result<Page, Refusal> {
    if query.len() > MAX_QUERY {
        return Err(Refusal::LongQuery);
    }
    // The thread's, which may outlive this call.
    let permit = RUNNING.acquire().await;
    let content = stored.whole().await?.ok_or(Refusal::LongContent)?;
    let (done, result) = oneshot::channel();
    let work = move || {
        let _permit = permit;
        let ran = catch_unwind(AssertUnwindSafe(|| run(&query, &content, cutter)));
        // Anything but a refusal is a panic.
        let refusal = |payload: Box<dyn Any + Send>| {
            payload.downcast().map_or_else(|_| can_not_run(), |it| *it)
        };
        _ = done.send(ran.map_err(refusal).flatten());
    };
    let spawned = thread::Builder::new()
        .name("offcut query".to_owned())
        .stack_size(bounds::STACK)
        .spawn(work);
    if let Err(error) = spawned {
        let problem = format!("no thread could be started: {error}");
        return Err(Refusal::FailedQuery(problem));
    }
    result.await.unwrap_or_else(|_| Err(can_not_run()))
}

fn can_not_run() -> Refusal {
    Refusal::FailedQuery("this query can't be run".to_owned())
}

/// The types of a query: its values, and the data beside them.
struct Kind;

impl DataT for Kind {
    type V<'a> = Value;
    type Data<'a> = Data<'a>;
}

struct Data<'a> {
    lut: &'a Lut<Kind>,
    inputs: Inputs<'a, Value>,
}

impl Clone for Data<'_> {
    /// Evaluating any part of a query clones its data first.
    fn clone(&self) -> Self {
        step();
        Self { ..*self }
    }
}

impl<'a> HasLut<'a, Kind> for Data<'a> {
    fn lut(&self) -> &'a Lut<Kind> {
        self.lut
    }
}

impl<'a> HasInputs<'a, Value> for Data<'a> {
    fn inputs(&self) -> Inputs<'a, Value> {
        self.inputs
    }
}

fn run(query: &str, content: &[u8], cutter: PageCutter) -> Result<Page, Refusal> {
    let filter = compile(query)?;
    bounds::begin(content.len() as u64);
    let texts = super::joined_texts(content).unwrap_or(content);
    let input = records::read(&String::from_utf8_lossy(texts));
    let records: Box<dyn Iterator<Item = _>> = match &input {
        Value::Array(_) => input.clone().values(),
        _ => box_once(Ok(input.clone())),
    };
    let records = records.map(|record| record.map_err(|error| error.to_string()));
    let described = describe(&input);
    let inputs = RcIter::new(Box::new(records) as Box<dyn Iterator<Item = _>>);
    let data = Data {
        lut: &filter.lut,
        inputs: &inputs,
    };
    let mut printed = Output { cutter, length: 0 };
    let context = Ctx::<Kind>::new(data, Vars::new([]));
    for value in filter.id.run((context, input)) {
        match value {
            Ok(value) => _ = printed.value(&value),
            Err(exception) => {
                let stray = |_| "`break` without its label".to_owned();
                let problem = exception
                    .get_err()
                    .map_or_else(stray, |error| shown(&error));
                return Err(Refusal::FailedQuery(format!("{problem}. {described}")));
            }
        }
    }
    if printed.length == 0 {
        _ = writeln!(printed, "The query printed nothing. {described}.");
    }
    Ok(printed.cutter.finish(printed.length))
}

fn compile(query: &str) -> Result<jaq_core::Filter<Kind>, Refusal> {
    let (code, path) = (query, ());
    let arena = Arena::default();
    let loader = Loader::new(functions::definitions());
    let loaded = loader.load(&arena, File { code, path }).map_err(|errors| {
        let problem = errors.into_iter().find_map(|(_, error)| match error {
            load::Error::Io(imports) => imports
                .first()
                .map(|(path, _)| format!("{path:?} can't be imported: there are no modules")),
            load::Error::Lex(errors) => errors
                .first()
                .map(|(expected, found)| unexpected(query, expected.as_str(), found)),
            load::Error::Parse(errors) => errors
                .first()
                .map(|(expected, found)| unexpected(query, expected.as_str(), found)),
        });
        Refusal::FailedQuery(problem.unwrap_or_default())
    })?;
    let of_inputs = jaq_std::input::funs().into_vec().into_iter();
    let functions = functions::functions().chain(of_inputs.map(jaq_core::native::run));
    let compiler = Compiler::default().with_funs(functions);
    compiler.compile(loaded).map_err(|errors| {
        let undefined = errors.into_iter().flat_map(|(_, errors)| errors).next();
        Refusal::FailedQuery(undefined.map_or_else(String::new, |(name, kind)| {
            let kind = kind.as_str();
            format!("there is no {kind} `{name}`")
        }))
    })
}

fn unexpected(query: &str, expected: &str, found: &str) -> String {
    let at = load::span(query, found).start;
    let found: String = found.chars().take(20).collect();
    if found.is_empty() {
        return format!("it ends where {expected} is expected");
    }
    format!(
        "at character {}, {expected} is expected, not {found:?}",
        query[..at].chars().count() + 1
    )
}

fn shown(error: &value::Error) -> String {
    let mut shown = Beginning::of(MAX_SHOWN);
    _ = write!(shown, "{error}");
    // A text that `error` was called with is JSON.
    serde_json::from_str(&shown.text).unwrap_or(shown.text)
}

/// The beginning of a text that may be long. Fails once it is longer.
struct Beginning {
    text: String,
    room: usize,
}

impl Beginning {
    fn of(room: usize) -> Self {
        Self {
            text: String::new(),
            room,
        }
    }
}

impl fmt::Write for Beginning {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let shown = &text[..text.floor_char_boundary(self.room.min(text.len()))];
        self.text.push_str(shown);
        if self.room < text.len() {
            self.text.push('…');
            return Err(fmt::Error);
        }
        self.room -= text.len();
        Ok(())
    }
}

/// Says what `.` is: what a query that failed should have known.
fn describe(input: &Value) -> String {
    let mut said = Beginning::of(MAX_SHOWN);
    _ = match input {
        Value::Array(array) => match array.content.first() {
            None => write!(said, "`.` is an array of 0"),
            Some(first) => {
                let length = array.content.len();
                write!(said, "`.` is an array of {length}, the first: {first}")
            }
        },
        Value::Object(object) => {
            let keys: Vec<_> = object.content.keys().map(Text::as_str).collect();
            write!(said, "`.` is an object with the keys {}", keys.join(", "))
        }
        _ => write!(said, "`.` is {input}"),
    };
    said.text
}

/// The output of a query: a text as it is, everything else as JSON, each value on a line.
struct Output {
    cutter: PageCutter,
    length: u64,
}

impl Output {
    fn value(&mut self, value: &Value) -> fmt::Result {
        match value {
            Value::Array(array) if write!(Beginning::of(MAX_ARRAY_LINE), "{value}").is_err() => {
                for (at, item) in array.content.iter().enumerate() {
                    let before = if at == 0 { "[\n" } else { ",\n" };
                    write!(self, "{before}{item}")?;
                }
                self.write_str("\n]\n")
            }
            Value::Text(text) => writeln!(self, "{}", text.as_str()),
            _ => writeln!(self, "{value}"),
        }
    }
}

impl fmt::Write for Output {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.length += text.len() as u64;
        self.cutter.push(text.as_bytes());
        Ok(())
    }
}
