//! The model calls of a replay: what each request costs, what the coming turn needs and sees, and what would have to be
//! read back.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use offcut::agent::Tool;
use offcut::backend::Location;
use offcut::format::Message;
use offcut::hint::Hint;
use offcut::{ToolCall, ToolReduction};
use serde_json::json;

use super::replayed::{Miss, Replay};
use super::script::Script;
use super::view::{ReplacedText, position};
use crate::evidence::{Kind, Need, text_of};

/// Texts that have to be read back, with the stored content that holds them; `None` if no hint leads to it. By the
/// newest message whose hint leads there, or else the one that held them, and the location.
type Gone = BTreeMap<(usize, String), (Option<Arc<str>>, Vec<String>)>;

pub(super) struct Player<'s, 't> {
    pub(super) script: &'s Script<'t>,
    /// Reads back what it has stored.
    pub(super) reduction: Option<&'s ToolReduction>,
    /// The messages that another policy has stored, with the number of lines that its reader returns at once; 0 for all.
    pub(super) stored: HashMap<usize, usize>,
    /// Tokens of each message as it is now.
    pub(super) tokens: Vec<u64>,
    /// Number of messages in the last request, and of its leading messages that are unchanged.
    previous: usize,
    pub(super) untouched: usize,
    /// By message of the transcript: results and calls that are not shown whole.
    pub(super) views: HashMap<usize, ReplacedText>,
    /// Messages that a policy has added, which may show anything.
    pub(super) added: Vec<Rc<ReplacedText>>,
    pages: Vec<Page>,
    pub(super) replay: Replay,
}

/// A page that was read back, which stays until the end.
struct Page {
    /// Number of messages before it.
    at: usize,
    tokens: u64,
    view: ReplacedText,
}

impl<'s, 't> Player<'s, 't> {
    pub(super) fn new(script: &'s Script<'t>, reduction: Option<&'s ToolReduction>) -> Self {
        Self {
            script,
            reduction,
            stored: HashMap::new(),
            tokens: Vec::new(),
            previous: 0,
            untouched: 0,
            views: HashMap::new(),
            added: Vec::new(),
            pages: Vec::new(),
            replay: Replay::default(),
        }
    }

    /// Sends the request: charges for it, looks at what the coming turn needs, and reads back what
    /// is gone.
    pub(super) async fn send(&mut self) {
        let total = self.total();
        let cached: u64 = self.tokens[..self.untouched].iter().sum();
        let figures = &mut self.replay.figures;
        figures.model_calls += 1;
        figures.tokens += total;
        figures.fresh += total - cached;
        figures.peak = figures.peak.max(total);
        figures.breaks += u64::from(self.untouched < self.previous);
        for page in &self.pages {
            match page.at <= self.untouched {
                true => figures.pages_cached += page.tokens,
                false => figures.pages_fresh += page.tokens,
            }
        }
        let gone = self.look();
        self.replay.contexts.push(total);
        for ((message, location), (original, texts)) in gone {
            let is_read = match original {
                Some(original) => self.read_back(&location, &original, &texts).await,
                None => false,
            };
            if !is_read {
                // The tool is called once more.
                let text = self.script.text(message).to_owned();
                self.take_page(self.script.tokens[message], text);
            }
        }
        self.previous = self.tokens.len();
        self.untouched = self.previous;
    }

    fn total(&self) -> u64 {
        self.tokens.iter().sum()
    }

    /// Counts what the coming turn needs, and returns what it would have to read back: what was read
    /// before stays in view.
    fn look(&mut self) -> Gone {
        let (script, call) = (self.script, self.replay.contexts.len());
        let (mut gone, mut missed) = (Gone::new(), HashSet::new());
        for need in &script.needs[call] {
            let is_seen = self.any(need, |view, _| view.holds(need));
            let is_cut = !self.any(need, |_, _| false);
            let source = (!is_seen).then(|| self.source(need)).flatten();
            let is_readable = is_seen || source.is_some();
            let is_in_window =
                |view: &ReplacedText, at| script.is_window_in(&view.text, at, &need.text);
            let is_shown = is_seen && need.kind == Kind::Name && self.any(need, is_in_window);
            let newest = need.holders.last().copied().unwrap_or_default();
            if !is_seen && need.kind.is_read_back() && !self.is_on_a_page(need) {
                let message = source.map_or(newest, |(at, _)| at);
                let (location, original) = source.map(|(_, stored)| stored.clone()).unzip();
                let location = location.map_or_else(String::new, |at| at.as_str().to_owned());
                let place = gone.entry((message, location));
                let (_, texts) = place.or_insert_with(|| (original, Vec::new()));
                texts.push(need.text.clone());
            }
            let figures = &mut self.replay.figures;
            figures.seen.note(need.kind, is_cut, is_seen, is_readable);
            figures.shown += u64::from(is_shown);
            if !is_seen && matches!(need.kind, Kind::Name | Kind::Quote) {
                missed.insert(newest);
                self.replay.misses.push(Miss {
                    call,
                    text: need.text.clone(),
                    is_quote: need.kind == Kind::Quote,
                    result: newest,
                    is_reachable: is_readable,
                });
            }
        }
        self.replay.figures.reads += missed.len() as u64;
        gone
    }

    /// Returns true if one of the messages that hold `need` is whole, or its view or an added
    /// message `shows` it.
    fn any(&self, need: &Need, shows: impl Fn(&ReplacedText, usize) -> bool) -> bool {
        need.holders.iter().any(|at| {
            self.views.get(at).is_none_or(|view| shows(view, *at))
                || self.added.iter().any(|added| shows(added, *at))
        })
    }

    /// The newest message whose hint leads to `need`, and what is stored there.
    fn source(&self, need: &Need) -> Option<(usize, &(Location, Arc<str>))> {
        let mut holders = need.holders.iter().rev();
        holders.find_map(|at| Some((*at, self.views.get(at)?.source_of(&need.text)?)))
    }

    fn is_on_a_page(&self, need: &Need) -> bool {
        self.pages.iter().any(|page| match need.kind {
            Kind::Name | Kind::Quote => page.view.has_words(&need.text),
            _ => page.view.holds(need),
        })
    }

    /// Reads `texts` where they are stored: one page for each stretch that no earlier one shows. Returns true if the pages
    /// hold all of them.
    async fn read_back(&mut self, location: &str, original: &str, texts: &[String]) -> bool {
        let mut wanted: Vec<(usize, &str)> = texts
            .iter()
            .filter_map(|text| Some((position(original, text)?, text.as_str())))
            .collect();
        wanted.sort_unstable();
        let mut shown = Vec::<String>::new();
        let mut is_read = true;
        for (at, text) in wanted {
            if shown.iter().any(|page| position(page, text).is_some()) {
                continue;
            }
            let Some((tokens, page)) = self.page(location, original, at).await else {
                is_read = false;
                continue;
            };
            is_read &= position(&page, text).is_some();
            self.take_page(tokens, page.clone());
            shown.push(page);
        }
        is_read
    }

    /// Charges for one more call, over a cached context, and for its page.
    fn take_page(&mut self, tokens: u64, text: String) {
        let before: u64 = self.pages.iter().map(|page| page.tokens).sum();
        let total = self.total();
        let figures = &mut self.replay.figures;
        figures.pages += 1;
        figures.pages_cached += total + before;
        figures.pages_fresh += tokens;
        self.pages.push(Page {
            at: self.tokens.len(),
            tokens,
            view: ReplacedText::of_text(text),
        });
    }

    /// A page as the reader returns it: its tokens as a message, and the stored text in it.
    async fn page(&self, location: &str, original: &str, at: usize) -> Option<(u64, String)> {
        let (call, text, shown) = match self.reduction {
            Some(reduction) => {
                let reader = reduction.read_file_tool();
                let name = reader.definition().name;
                let arguments = json!({"path": location, "offset": offset(original, at)});
                let call = ToolCall::new("page", name, arguments.to_string());
                let output = reader.call(&call).await.ok()?;
                let (parts, _) = output.into_parts().await;
                let text = text_of(&parts);
                let hints = Hint::parse_all(&text).unwrap_or_default();
                let shown = hints.into_iter().map(|hint| hint.preview).collect();
                (call, text, shown)
            }
            None => {
                let lines = *self.stored.get(&location.parse().ok()?)?;
                let text = lines_from(original, at, lines).to_owned();
                (ToolCall::new("page", "", ""), text.clone(), text)
            }
        };
        let mut message = Message::tool(&call, vec![text.into()], false);
        Some((self.script.ruler.tokens(&mut message), shown))
    }
}

/// Length in bytes from which a line is read from the middle.
const LONG_LINE: usize = 400;

/// The reader's offset for a byte of `original`: its line, or the place in a long line.
fn offset(original: &str, at: usize) -> String {
    let before = &original[..at];
    let start = before.rfind('\n').map_or(0, |feed| feed + 1);
    let line = before.matches('\n').count() + 1;
    if at - start > LONG_LINE {
        format!("{line}+{}", at - start)
    } else {
        line.to_string()
    }
}

/// `count` lines of `original` from the one that holds the byte `at`; all of it for 0.
fn lines_from(original: &str, at: usize, count: usize) -> &str {
    if count == 0 {
        return original;
    }
    let start = original[..at].rfind('\n').map_or(0, |feed| feed + 1);
    let rest = &original[start..];
    let end = rest.match_indices('\n').nth(count - 1);
    end.map_or(rest, |(feed, _)| &rest[..feed])
}
