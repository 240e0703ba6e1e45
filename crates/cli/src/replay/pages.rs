//! Pages that are read back, through the real reader.

use offcut::ToolCall;
use offcut::agent::Tool;
use offcut::format::Message;
use offcut::hint::Hint;
use serde_json::json;

use super::call::{Gone, Reader, Request};
use super::figures::Figures;
use super::view::{ReplacedText, position};
use crate::evidence::{Kind, Need, parts, text_of};

/// The pages that have been read, which stay until the end.
#[derive(Default)]
pub(super) struct Pages {
    /// Number of messages before each page, and its tokens.
    costs: Vec<(usize, u64)>,
    views: Vec<ReplacedText>,
}

impl Pages {
    /// Returns true if a page shows `need`.
    pub(super) fn show(&self, need: &Need) -> bool {
        self.views.iter().any(|view| match need.kind {
            Kind::Name | Kind::Quote => view.has_words(&need.text),
            _ => view.holds(need),
        })
    }

    /// Charges the pages so far for a further call. `untouched` is the number of messages that the
    /// cache still has.
    pub(super) fn pay_again(&self, untouched: usize, figures: &mut Figures) {
        for (at, tokens) in &self.costs {
            if *at <= untouched {
                figures.pages_cached += tokens;
            } else {
                figures.pages_fresh += tokens;
            }
        }
    }

    /// Reads what is `gone`: one page for each stretch that no earlier page shows.
    pub(super) async fn read(
        &mut self,
        request: &Request<'_, '_>,
        gone: Gone,
        figures: &mut Figures,
    ) {
        for ((message, location), (original, texts)) in gone {
            let is_read = match original {
                Some(original) => {
                    self.read_back(request, &location, &original, &texts, figures)
                        .await
                }
                None => false,
            };
            if !is_read {
                self.call_again(request, message, figures);
            }
        }
    }

    /// Calls the tool once more, because its result was not stored, or the reader does not return it.
    fn call_again(&mut self, request: &Request<'_, '_>, message: usize, figures: &mut Figures) {
        let tokens = request.script.tokens[message];
        let text = text_of_message(&request.script.messages[message]);
        self.take(request, tokens, ReplacedText::of_text(text), figures);
    }

    /// Reads `texts` where they are stored. Returns true if the pages hold all of them.
    async fn read_back(
        &mut self,
        request: &Request<'_, '_>,
        location: &str,
        original: &str,
        texts: &[String],
        figures: &mut Figures,
    ) -> bool {
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
            let Some((tokens, page)) = page(request, location, original, at).await else {
                is_read = false;
                continue;
            };
            is_read &= position(&page, text).is_some();
            shown.push(page.clone());
            self.take(request, tokens, ReplacedText::of_text(page), figures);
        }
        is_read
    }

    fn take(
        &mut self,
        request: &Request<'_, '_>,
        tokens: u64,
        view: ReplacedText,
        figures: &mut Figures,
    ) {
        let before: u64 = self.costs.iter().map(|(_, tokens)| tokens).sum();
        figures.pages += 1;
        figures.pages_cached += request.total() + before;
        figures.pages_fresh += tokens;
        self.costs.push((request.tokens.len(), tokens));
        self.views.push(view);
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

/// A page as the reader returns it: its tokens as a message, and the stored text in it.
async fn page(
    request: &Request<'_, '_>,
    location: &str,
    original: &str,
    at: usize,
) -> Option<(u64, String)> {
    let (call, text, shown) = match request.reader {
        Reader::None => return None,
        Reader::Offcut(reduction) => {
            let reader = reduction.read_file_tool();
            let name = reader.definition().name;
            let arguments = json!({"path": location, "offset": offset(original, at)}).to_string();
            let call = ToolCall::new("page", name, arguments);
            let output = reader.call(&call).await.ok()?;
            let (parts, _) = output.into_parts().await;
            let text = text_of(&parts);
            let shown = Hint::parse_all(&text).map_or_else(String::new, |hints| {
                hints.into_iter().map(|hint| hint.preview).collect()
            });
            (call, text, shown)
        }
        Reader::Lines(pages) => {
            let lines = *pages.get(&location.parse().ok()?)?;
            let text = lines_from(original, at, lines).to_owned();
            (ToolCall::new("page", "", ""), text.clone(), text)
        }
    };
    let mut message = Message::tool(&call, vec![text.into()], false);
    Some((request.script.ruler.tokens(&mut message), shown))
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

pub(super) fn text_of_message(message: &Message) -> String {
    let (content, calls) = parts(message);
    let arguments: Vec<&str> = calls.iter().map(|call| &*call.arguments).collect();
    text_of(content) + &arguments.join("\n")
}
