//! The arguments of `read`.

use offcut::ReadFileTool;
use offcut::format::WireFormat;
use offcut::hint::Position;
use regex::bytes::RegexBuilder;

use super::Reduction;

/// Arguments of the reader as options.
const ASKED: [&str; 7] = [
    "location", "offset", "limit", "pattern", "context", "count", "query",
];

/// Read stored content one page at a time, as the model's reader does.
///
/// Without --config, --backend and --session, the location may be of any conversation in the user's store.
#[derive(Debug, clap::Args)]
pub(crate) struct Read {
    #[command(flatten)]
    pub(crate) reduction: Reduction,
    /// The location: as in a hint or in the output of `store ls`, as a relative path, or as its key,
    /// such as trunc/call_1.
    #[arg(required_unless_present_any = ["definition", "arguments"])]
    pub(crate) location: Option<String>,
    /// The model's call of the reader, as JSON, in place of the location and the options below.
    #[arg(long, value_name = "JSON", conflicts_with_all = ASKED)]
    pub(crate) arguments: Option<String>,
    /// Print the reader's definition for a request's `tools` instead of reading: openai-chat,
    /// openai-responses, anthropic or gemini.
    #[arg(long, value_name = "FORMAT", conflicts_with_all = ASKED, conflicts_with = "arguments")]
    pub(crate) definition: Option<WireFormat>,
    /// The first line, from 1; a negative number counts from the end; 12+4000 is byte 4000 of line
    /// 12.
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = offset)]
    pub(crate) offset: Option<String>,
    /// Maximum number of lines.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,
    /// A regular expression: print only lines that match it.
    #[arg(long, value_name = "RE", value_parser = pattern)]
    pub(crate) pattern: Option<String>,
    /// Number of lines to print before and after each match.
    #[arg(long, value_name = "N", requires = "pattern")]
    pub(crate) context: Option<u64>,
    /// Print only how many lines match, and the matches if there are more.
    #[arg(long, requires = "pattern")]
    pub(crate) count: bool,
    /// A jq filter: print what it makes of JSON, JSON Lines, a table or lines.
    #[arg(long, value_name = "JQ", conflicts_with = "pattern")]
    pub(crate) query: Option<String>,
}

/// Parses an offset as the reader takes it.
fn offset(text: &str) -> Result<String, String> {
    let text = text.trim();
    let is_offset = match text.strip_prefix('-') {
        Some(lines) => lines.parse::<u64>().is_ok_and(|lines| lines > 0),
        None => text == "0" || Position::parse(text).is_some(),
    };
    is_offset
        .then(|| text.to_owned())
        .ok_or_else(|| "write a line from 1, a negative number, or LINE+BYTE".to_owned())
}

fn pattern(text: &str) -> Result<String, String> {
    // Compiled as the reader does.
    RegexBuilder::new(text)
        .size_limit(ReadFileTool::MAX_PATTERN)
        .build()
        .map_err(|error| error.to_string())?;
    Ok(text.to_owned())
}
