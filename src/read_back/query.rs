//! Answers to questions about stored content, in jq's language.
//!
//! A query runs on a thread of its own with bounds on its time, memory and depth ([`bounds`]). It
//! sees nothing but the content. A text of at most [`MAX_HELD`] bytes is `.`, and `inputs` are its
//! records; a longer one is read record by record, through `inputs` alone.

mod bounds;
mod functions;
mod records;
#[cfg(test)]
mod tests;
mod value;

use std::any::Any;
use std::fmt::{self, Write as _};
use std::io::{self, BufReader, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use bytes::Bytes;
use jaq_core::data::HasLut;
use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, DataT, Lut, ValT as _, Vars, load};
use jaq_std::input::{HasInputs, Inputs, RcIter};
use tokio::sync::{Semaphore, mpsc, oneshot};

use self::bounds::step;
use self::records::Records;
use self::value::{Text, Value};
use super::page::{Page, PageCutter};
use super::words::Refusal;
use crate::backend::content::{BLOCK, Stored};

/// The longest query, in bytes. Parsing recurses.
const MAX_QUERY: usize = 4 << 10;
/// A longer text is not held as a whole. Tests need not wait for as much.
const MAX_HELD: u64 = if cfg!(test) { 1 << 20 } else { 32 << 20 };
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
    let total = stored.read(0..1).await?.total;
    // The thread's, which may outlive this call.
    let permit = RUNNING.acquire().await;
    let (ask, mut asked) = mpsc::channel(1);
    let (done, result) = oneshot::channel();
    let work = move || {
        let _permit = permit;
        let content = Content {
            ask,
            at: 0,
            total,
            block: Bytes::new(),
        };
        let ran = catch_unwind(AssertUnwindSafe(|| run(&query, content, cutter)));
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
    while let Some((at, reply)) = asked.recv().await {
        // Without a reply, the thread ends.
        let block = stored.read(at..at + BLOCK).await?;
        // A thread that has given up reads no more.
        _ = reply.send(block.bytes);
    }
    result.await.unwrap_or_else(|_| Err(can_not_run()))
}

fn can_not_run() -> Refusal {
    Refusal::FailedQuery("this query can't be run".to_owned())
}

/// Stored content, read from the query's thread.
struct Content {
    ask: mpsc::Sender<(u64, oneshot::Sender<Bytes>)>,
    at: u64,
    total: u64,
    block: Bytes,
}

impl Read for Content {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        step();
        if self.block.is_empty() && self.at < self.total {
            let (reply, block) = oneshot::channel();
            let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
            let asked = self.ask.blocking_send((self.at, reply));
            asked.map_err(|_| gone())?;
            self.block = block.blocking_recv().map_err(|_| gone())?;
            self.at += self.block.len() as u64;
        }
        let length = self.block.len().min(buffer.len());
        bounds::read(length);
        buffer[..length].copy_from_slice(&self.block.split_to(length));
        Ok(length)
    }
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

fn run(query: &str, mut content: Content, cutter: PageCutter) -> Result<Page, Refusal> {
    let filter = compile(query)?;
    let total = content.total;
    bounds::begin(total);
    let unreadable =
        |error: io::Error| Refusal::FailedQuery(format!("the content can't be read: {error}"));
    let (input, inputs): (_, Records<'_>) = if total <= MAX_HELD {
        let mut bytes = Vec::new();
        content.read_to_end(&mut bytes).map_err(unreadable)?;
        let texts = super::joined_texts(&bytes).unwrap_or(&bytes);
        let text = String::from_utf8_lossy(texts);
        let value = records::read_whole(&text);
        let records: Records<'_> = match &value {
            Value::Array(_) => {
                let records = value.clone().values();
                Box::new(records.map(|record| record.map_err(|error| error.to_string())))
            }
            _ => Box::new(std::iter::once(Ok(value.clone()))),
        };
        (value, records)
    } else {
        let text = BufReader::with_capacity(BLOCK as usize, content);
        let records = records::read_in_order(text)
            .map_err(unreadable)?
            .ok_or(Refusal::LongJson)?;
        if !query.contains("input") {
            return Err(Refusal::NeedsInputs);
        }
        let records = records.inspect(|_| bounds::next_record());
        (Value::Null, Box::new(records))
    };
    let described = describe(&input);
    let inputs = RcIter::new(inputs);
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
        Value::Null => write!(said, "`inputs` are its records"),
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
