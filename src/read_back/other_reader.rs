//! Results of other readers that return our stored content.

use crate::preview::text::decoding::is_utf16;
use crate::preview::text::lines::{begins, first_line};
use memchr::memmem;
use serde_json::Value;

use super::page::{PageCutter, room};
use super::{overhead, readable};
use crate::backend::Key;
use crate::backend::content::Stored;
use crate::content::{Part, ToolCall};
use crate::hint::Position;
use crate::session::Session;

/// Minimum room, in bytes, for a page's content beside what its reader says.
const MIN_ROOM: usize = 16;
/// Maximum number of bytes that a reader may add to the content: a header and a footer together.
const MAX_READER_TEXT: usize = 256;
/// Maximum number of bytes that a reader may put before each line: a number and a separator.
const MAX_NUMBER: usize = 16;
/// Bytes of a line that are compared to tell its number from its text; the whole line if it is
/// shorter.
const MAX_LOOK: usize = 1024;
/// Number of lines that a header has, at most.
const MAX_HEADERS: usize = 8;
/// The shortest text that is searched for, in bytes. A shorter one would match everywhere.
const MIN_NEEDLE: usize = 16;
/// Maximum number of words in a call's arguments that are checked for a location.
const MAX_WORDS: usize = 64;
/// The separators of segments in paths of any system.
const SEPARATORS: [char; 2] = ['/', '\\'];
/// The longest arguments of a call that are looked at.
const MAX_ARGUMENTS: usize = 64 * 1024;

/// The page that replaces the `result` of a call that [names](named_in) `stored` content, if the result is one
/// unbroken stretch of that. If the reader said something else, that comes before it in a separate text.
/// `limit` is the room for all of it, in bytes.
///
/// Without this, if a model reads stored content with a tool other than our reader, the result
/// would be stored again, the model would read that, and so on. A page only ever replaces one
/// unbroken stretch of the stored content, so nothing is lost.
pub(crate) async fn page_of_other(
    session: &Session,
    tool: &str,
    stored: &Stored,
    result: &[u8],
    limit: usize,
) -> Option<Vec<Part>> {
    // Content that can't be read can't be compared.
    let whole = stored.whole().await.ok()??;
    let content = if is_utf16(result) {
        whole.as_ref().into()
    } else {
        readable(&whole)
    };
    let found = find(result, &content)?;
    let beside = [&result[..found.header], &result[found.end..]];
    let beside = beside.map(String::from_utf8_lossy).concat();
    let room = room(session, tool)
        .min(limit.checked_sub(beside.len())?)
        .checked_sub(overhead(&stored.location, &session.prose))?;
    if room < MIN_ROOM {
        return None;
    }
    let from = Position::START.after(&content[..found.at]);
    let mut cutter = PageCutter::new(from, None, room);
    cutter.push(&content);
    let page = cutter.finish(content.len() as u64);
    let page = page.hint(whole.len() as u64, stored.location.clone(), &session.prose);
    let mut texts = vec![beside, page.render()];
    texts.retain(|text| !text.is_empty());
    Some(texts.into_iter().map(Part::Text).collect())
}

/// A stretch of stored content in a result.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// Number of bytes before it in the result.
    header: usize,
    /// Its end in the result.
    end: usize,
    /// Its beginning in the content.
    at: usize,
}

/// The stretch of `content` that is all of `result` but for a short header and footer, as short as
/// possible.
fn find(result: &[u8], content: &[u8]) -> Option<Stretch> {
    // Assumes that most of a short result is neither header nor footer.
    let most = MAX_READER_TEXT.min(result.len() / 4);
    if result.len() - 2 * most < MIN_NEEDLE {
        return None;
    }
    let headers = begins(&result[..most]).take(MAX_HEADERS);
    let found = headers.flat_map(|header| {
        let line = number_at(&result[header..]);
        let numbered = || begins(content).nth(usize::try_from(line?.checked_sub(1)?).ok()?);
        let inside = memmem::find(content, &result[header..result.len() - most]);
        // Content that is read from its beginning is recognized whatever it begins with, so that it
        // is never stored again.
        let places = [(Some(0), None), (numbered(), line), (inside, None)];
        let places = places.into_iter();
        places.filter_map(move |(at, line)| stretch(result, content, header, at?, line))
    });
    found.min_by_key(|found| found.header + result.len() - found.end)
}

/// The stretch that begins after `header` bytes of the result and `at` this place of the content, where the reader puts
/// numbers before the lines from `line` on, if it does. `None` if the rest of the result is too long for a footer.
fn stretch(
    result: &[u8],
    content: &[u8],
    header: usize,
    at: usize,
    mut line: Option<u64>,
) -> Option<Stretch> {
    let (mut end, mut there) = (header, at);
    loop {
        let mut text = &result[end..];
        if let Some(line) = line {
            text = first_line(text);
            let Some(number) =
                number_before(&text[..text.len().min(MAX_LOOK)], line, &content[there..])
            else {
                break;
            };
            (end, text) = (end + number, &text[number..]);
        }
        let same = text.iter().zip(&content[there..]);
        let same = same.take_while(|(one, other)| one == other).count();
        (end, there) = (end + same, there + same);
        match &mut line {
            Some(line) if same == text.len() && text.ends_with(b"\n") => *line += 1,
            _ => break,
        }
    }
    if content[at..there].iter().all(|byte| *byte == b'\n') {
        return None;
    }
    let has_room = |end: usize| header + result.len() - end <= MAX_READER_TEXT;
    match &result[end..] {
        // A line feed that a reader adds at the end means nothing.
        b"\n" => end = result.len(),
        [] | [b'\n', ..] => {}
        // The line that a footer stands in belongs to it, in case it happens to begin like the stored one.
        _ => {
            let feed = memchr::memrchr(b'\n', &result[header..end]);
            let line = feed.map_or(header, |feed| header + feed + 1);
            end = if has_room(line) { line } else { end };
        }
    }
    (end > header && has_room(end)).then_some(Stretch { header, end, at })
}

/// Length of the number at the beginning of a result's line, such as `  12→`, `12: ` or `L12|`,
/// where the rest of the line is the beginning of `stored`. Any other number than `number` does not
/// count: it is not the reader's, but content that is nowhere else.
fn number_before(line: &[u8], number: u64, stored: &[u8]) -> Option<usize> {
    let is_right = |length: &usize| {
        let rest = &line[*length..];
        // Readers add a line feed after the last line too.
        let is_last = || rest.strip_suffix(b"\n").is_some_and(|rest| rest == stored);
        number_in(&line[..*length]) == Some(number) && (stored.starts_with(rest) || is_last())
    };
    (1..=line.len().min(MAX_NUMBER)).find(is_right)
}

/// Parses the number in a reader's mark before a line.
fn number_in(mark: &[u8]) -> Option<u64> {
    let mark = std::str::from_utf8(mark).ok()?;
    let is_mark =
        |c: char| c.is_ascii_digit() || c.is_whitespace() && c != '\n' || "L→:|#.[]()-".contains(c);
    let digits: String = mark.chars().filter(char::is_ascii_digit).collect();
    mark.chars().all(is_mark).then(|| digits.parse().ok())?
}

/// The line number that `text` begins with, if it has one.
fn number_at(text: &[u8]) -> Option<u64> {
    let text = &text[..text.len().min(MAX_NUMBER)];
    let start = text.iter().position(u8::is_ascii_digit)?;
    let digits = text[start..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit());
    number_in(&text[..start + digits.count()])
}

/// Stored content of this session that the call's arguments name, as a value or as a word of a
/// command: the first location, or else the first path that ends as a location does. Relative paths,
/// links and home directories have many spellings, but the folder and the name at the end stay; the name
/// alone counts if the folder stands elsewhere, as after `cd`. The result is compared with the content, so a
/// wrong guess does no harm.
pub(crate) async fn named_in(session: &Session, call: &ToolCall) -> Option<Stored> {
    if call.arguments.len() > MAX_ARGUMENTS {
        return None;
    }
    let arguments = arguments_of(call);
    let words = words_of(&arguments);
    if let Some(stored) = words.iter().find_map(|word| session.resolve(word)) {
        return Some(stored);
    }
    let is_folder = |segment: &&str| Key::FOLDERS.contains(segment);
    let elsewhere = words.iter().map(|word| split(word).0).find(is_folder);
    for word in &words {
        let (name, folder) = split(word);
        let folder = match folder {
            None => elsewhere,
            Some(_) => folder.filter(is_folder),
        };
        for stored in folder.map_or_else(Vec::new, |folder| session.named(folder, name)) {
            if stored.read(0..0).await.is_ok() {
                return Some(stored);
            }
        }
    }
    None
}

/// Returns true if the call's arguments name stored content, or any place in one of the stores.
pub(crate) async fn names_a_store(session: &Session, call: &ToolCall) -> bool {
    let arguments = arguments_of(call);
    let stores = session.stores();
    let mut words = words_of(&arguments).into_iter();
    words.any(|word| stores.iter().any(|store| store.resolve(word).is_some()))
        || named_in(session, call).await.is_some()
}

/// A call's arguments. Those of some tools are free text.
fn arguments_of(call: &ToolCall) -> Value {
    serde_json::from_str(&call.arguments).unwrap_or_else(|_| call.arguments.as_str().into())
}

/// The last segment of a path, and the one before it, as in `folder//name` and `folder/./name`.
fn split(path: &str) -> (&str, Option<&str>) {
    let segments = path.rsplit(SEPARATORS);
    let mut segments = segments.filter(|segment| !matches!(*segment, "" | "."));
    (segments.next().unwrap_or_default(), segments.next())
}

/// The strings in a call's arguments in order, each word by word and then whole.
fn words_of(arguments: &Value) -> Vec<&str> {
    let is_between = |c: char| c.is_whitespace() || "\"'`;|&<>()=,".contains(c);
    let (mut values, mut words, mut left) = (vec![arguments], Vec::new(), MAX_WORDS);
    while let Some(value) = values.pop() {
        match value {
            Value::String(text) => {
                let parts = text.split(is_between).filter(|word| !word.is_empty());
                let before = words.len();
                words.extend(parts.take(left));
                left -= words.len() - before;
                words.push(text);
            }
            Value::Array(all) => values.extend(all.iter().rev()),
            Value::Object(fields) => values.extend(fields.values().rev()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    words
}
