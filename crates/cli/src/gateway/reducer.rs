//! Reduces the conversations of all tenants, each in a session of its own.

use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::sync::{Arc, Mutex};

use http::Method;
use offcut::backend::Memory;
use offcut::format::{
    Call, Format, JsonText, Messages, Piece, RequestBody, Role, Spelled, WireFormat,
};
use offcut::report::{ErrorSource, Outcome as Decided};
use offcut::{ErrorChain, Settings, ToolReduction, Turn};

use crate::gateway::breaker::{NOT_ASKED, Open};
use crate::gateway::naming::{Group, NamingSecret, group};
use crate::gateway::outcome::{Outcome, PassReason};
use crate::gateway::reader::{self, Pages, Tools};
use crate::gateway::settings::{GatewayError, ServeSettings};
use crate::gateway::watch::{Look, Watch};
use crate::lock::locked;

/// Number of bytes of the longest requests that the sessions in memory were used for, each counted as [`LEAST_HELD`] or
/// more. They take at most twice these bytes. All are forgotten at once, and their records are read again.
const HELD: usize = 256 << 20;
const LEAST_HELD: usize = 64 << 10;
/// Number of conversations of which it is remembered that the provider took only the original.
const UNTOUCHED: usize = 65_536;

/// A request whose body holds a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exchange {
    /// The format of the conversation.
    pub(crate) format: WireFormat,
    /// The purpose of the request.
    pub(crate) purpose: Purpose,
}

/// The purpose of a request with a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The model's next turn.
    Turn,
    /// A count of tokens.
    Count,
}

impl Exchange {
    /// The exchange that a method and a path ask for; `None` if the request has no conversation.
    pub(crate) fn of(method: &Method, path: &str) -> Option<Self> {
        if method != Method::POST {
            return None;
        }
        let path = path.split('?').next().unwrap_or_default();
        let mut segments = path.trim_end_matches('/').rsplit('/');
        let (last, before) = (segments.next()?, segments.next().unwrap_or_default());
        let (format, purpose) = match (before, last) {
            ("chat", "completions") => (WireFormat::OpenAiChat, Purpose::Turn),
            ("responses", "input_tokens") => (WireFormat::Responses, Purpose::Count),
            ("messages", "count_tokens") => (WireFormat::Anthropic, Purpose::Count),
            (_, "responses") => (WireFormat::Responses, Purpose::Turn),
            (_, "messages") => (WireFormat::Anthropic, Purpose::Turn),
            (_, model) => match model.rsplit_once(':')?.1 {
                "generateContent" | "streamGenerateContent" => (WireFormat::Gemini, Purpose::Turn),
                "countTokens" => (WireFormat::Gemini, Purpose::Count),
                _ => return None,
            },
        };
        Some(Self { format, purpose })
    }
}

/// The reason for clearing old results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pressure {
    /// The thresholds of the settings.
    Thresholds,
    /// The provider has refused the request as too long.
    TooLong,
}

/// Reduces conversations.
pub(crate) struct ConversationReducer {
    /// A reduction for each reader that hints may name, the one of the settings first.
    variants: Vec<ToolReduction>,
    /// Tells calls that read a store on this machine, where agents share it.
    pages: Option<Pages>,
    cut_without_reader: bool,
    holdout: f64,
    naming: NamingSecret,
    /// The sessions in memory, by the prefix of a conversation's content, each with the bytes of the longest request that
    /// it was used for.
    sessions: Mutex<HashMap<String, (ToolReduction, usize)>>,
    untouched: Mutex<HashSet<String>>,
}

impl ConversationReducer {
    /// Builds the reductions for `settings`, with stores from `open`.
    pub(crate) fn new(
        serve: &ServeSettings,
        settings: &Settings,
        open: &Open<'_>,
    ) -> Result<Self, GatewayError> {
        let pages = Pages::of(serve, settings);
        let builder = match pages.clone() {
            Some(pages) => ToolReduction::builder().trunc_handler(pages),
            None => ToolReduction::builder(),
        };
        let built = builder.settings(settings.clone(), open);
        let own = built.build().map_err(GatewayError::Reduction)?;
        let mut variants = vec![own.clone()];
        for name in [None].into_iter().chain(reader::OPENERS.map(Some)) {
            if name != reader_of(&own) {
                variants.push(own.with_reader(name).map_err(GatewayError::Reduction)?);
            }
        }
        // A store that can't be opened has failed the reductions too. Without one, names last as long as this server.
        let url = settings.backend_url.as_ref();
        let store = url.and_then(|url| open(url.as_str()).ok());
        let store = store.unwrap_or_else(|| Arc::new(Memory::new()));
        Ok(Self {
            variants,
            pages,
            cut_without_reader: serve.cut_without_reader,
            holdout: serve.holdout,
            naming: NamingSecret::new(store),
            sessions: Mutex::default(),
            untouched: Mutex::default(),
        })
    }

    /// Reduces a body, in place of a client that can't. Whatever goes wrong, the caller has the
    /// original.
    pub(crate) async fn reduce(
        &self,
        tenant: &str,
        exchange: Exchange,
        pressure: Pressure,
        watch: &Watch,
        body: &mut RequestBody,
        look: &mut Look,
    ) -> Outcome {
        if !fits(exchange.format, body.format()) {
            return Outcome::Passed(PassReason::NotUnderstood);
        }
        let definitions = body.tools();
        let own = reader_of(self.any());
        let tools = Tools::read(&definitions, body.messages(), exchange.format, own);
        if body.messages().is_empty() {
            return Outcome::Unchanged;
        }
        let secret = self.naming.get().await;
        let format = Spelled(exchange.format);
        let named = |whole: &ToolReduction, secret: &[u8], body: &mut RequestBody| {
            let messages = Messages::new(&format, body.messages_mut());
            whole.conversation(tenant, secret, &messages)
        };
        let known: &[u8] = secret.as_deref().unwrap_or_default();
        let conversation = named(self.any(), known, body).prefix().to_owned();
        (look.reads, look.is_reading) = self.reads(&tools, exchange.format, body.messages());
        if conversation.ends_with("/none/") {
            // Before the first call there is nothing to decide, and nothing tells the conversation from others.
            return Outcome::Unchanged;
        }
        let decides = exchange.purpose == Purpose::Turn && !tools.names.is_empty();
        let reader = reader::find(&tools, own, self.shares_machine());
        let has_no_reader = decides && reader.is_none() && !self.cut_without_reader;
        let secret = match secret {
            Ok(secret) => secret,
            Err(_) if has_no_reader => return Outcome::Passed(PassReason::NoReader),
            Err(error) => return failed(&error),
        };
        look.conversation = Some(conversation.clone());
        look.group = group(self.holdout, &conversation);
        if look.group == Some(Group::HeldOut) {
            return Outcome::Passed(PassReason::HeldOut);
        }
        if locked(&self.untouched).contains(&conversation) {
            return Outcome::Passed(PassReason::Untouched);
        }
        if has_no_reader {
            return Outcome::Passed(PassReason::NoReader);
        }
        let reader = decides.then(|| reader.flatten());
        let is_too_long = pressure == Pressure::TooLong;
        let is_cold = !is_too_long && watch.state().is_cold(&conversation, &look.before);
        let bytes = body.messages().iter().map(|one| one.as_str().len()).sum();
        let session = self.session(&conversation, reader, bytes, |whole| {
            let name = conversation.rsplit('/').nth(1);
            let alone = whole.session(tenant).session(name.unwrap_or_default());
            // Pages of any conversation stay whole here, so nothing is lost if a copy of another's hint is taken
            // for a text: its client may have no right to read there, and what it leads to may be swept.
            if self.pages.is_some() && alone.prefix() == conversation {
                alone
            } else {
                named(whole, &secret, body)
            }
        });
        let mut messages = Messages::new(&format, body.messages_mut());
        let mut turn = Turn {
            tools: &definitions,
            is_too_long,
            is_cold,
            repeats_only: !decides,
            ..Turn::new(&mut messages)
        };
        let report = match session.reduce_turn(&mut turn).await {
            Ok(report) => report,
            Err(error) => return failed(&error),
        };
        let decisions = report.decisions.iter();
        let of_store = decisions.filter(|one| one.error_source == Some(ErrorSource::Store));
        let is_lost = of_store.clone().any(|one| one.outcome == Decided::Lost);
        let has_failed =
            report.records_error.is_some() || of_store.clone().any(|one| !one.outcome.is_change());
        if is_lost || has_failed {
            // One that is down gives the same for each result.
            let first = of_store.clone().find_map(|one| one.error.as_deref());
            let error = first.or(report.records_error.as_deref());
            log_failure(error.unwrap_or_default(), is_lost);
        }
        if report.is_change() {
            look.add(&report);
        }
        Outcome::of(report.is_change(), has_failed)
    }

    /// Counts the calls of a conversation that read stored content, as far as their arguments tell. Returns too whether
    /// the model has called nothing else in its last message.
    fn reads(&self, tools: &Tools, format: WireFormat, messages: &[JsonText]) -> (u64, bool) {
        let reader = reader_of(self.any()).filter(|_| tools.has_our_reader);
        let pages = self.pages.as_ref();
        let is_read = |call: &Call<'_>| {
            let is_page = |pages: &Pages| {
                let arguments = call.arguments.to_string();
                // A scan costs far less than reading them.
                pages.may_be_named_in(&arguments) && pages.are_named_in(&arguments)
            };
            Some(call.name) == reader || pages.is_some_and(is_page)
        };
        let (mut reads, mut is_reading) = (0, false);
        for message in messages {
            let (mut is_models, mut calls) = (false, Vec::new());
            Spelled(format).visit(message, &mut |piece| match piece {
                Piece::Role(role) => is_models |= role == Role::Assistant,
                Piece::Call(call) => calls.push(is_read(&call)),
                _ => {}
            });
            if is_models {
                is_reading = !calls.is_empty() && !calls.contains(&false);
            }
            reads += calls.into_iter().map(u64::from).sum::<u64>();
        }
        (reads, is_reading)
    }

    /// The session of a conversation, whose new hints name this `reader`, if it matters: the one that is held, or a
    /// `new` one.
    fn session(
        &self,
        conversation: &str,
        reader: Option<Option<&str>>,
        bytes: usize,
        new: impl FnOnce(&ToolReduction) -> ToolReduction,
    ) -> ToolReduction {
        let is_right = |one: &&ToolReduction| reader.is_none_or(|name| reader_of(one) == name);
        let mut held = locked(&self.sessions);
        let (known, longest) = held.remove(conversation).unzip();
        let session = known.filter(|one| is_right(&one)).unwrap_or_else(|| {
            let mut variants = self.variants.iter();
            new(variants.find(is_right).unwrap_or(self.any()))
        });
        let bytes = bytes.max(longest.unwrap_or(0)).max(LEAST_HELD);
        if held.values().map(|(_, bytes)| bytes).sum::<usize>() + bytes > HELD {
            held.clear();
        }
        held.insert(conversation.to_owned(), (session.clone(), bytes));
        session
    }

    /// Lets a conversation pass untouched from now on, since a provider took it only as it came. After a restart,
    /// and on every replica, one more refusal tells.
    pub(crate) fn leave(&self, conversation: &str) {
        let mut untouched = locked(&self.untouched);
        if untouched.len() >= UNTOUCHED {
            untouched.clear();
        }
        untouched.insert(conversation.to_owned());
    }

    /// A session that reads what any conversation of `tenant` has stored, and nothing else.
    pub(crate) fn of_tenant(&self, tenant: &str) -> ToolReduction {
        let format = Spelled(WireFormat::OpenAiChat);
        self.any()
            .conversation(tenant, b"", &Messages::new(&format, &mut []))
    }

    /// A session that reads what one conversation of `tenant` has stored, and nothing else.
    pub(crate) fn of_conversation(&self, tenant: &str, name: &str) -> ToolReduction {
        self.any().session(tenant).session(name)
    }

    /// The reader of all conversations, for its definition.
    pub(crate) fn any(&self) -> &ToolReduction {
        &self.variants[0]
    }

    /// Returns true if agents can open all stored content as files.
    pub(crate) fn shares_machine(&self) -> bool {
        self.pages.is_some()
    }
}

/// The reader that a reduction's hints name.
fn reader_of(reduction: &ToolReduction) -> Option<&str> {
    reduction.settings().read_file_tool_name.as_deref()
}

/// The outcome of a request for which the store failed as a whole.
fn failed(error: &dyn Error) -> Outcome {
    log_failure(&ErrorChain(error).to_string(), false);
    Outcome::Passed(PassReason::Store)
}

/// Logs that the store failed for a request: once it is left alone, which was said, only in detail.
fn log_failure(error: &str, is_lost: bool) {
    match error.contains(NOT_ASKED) && !is_lost {
        true => tracing::debug!(error, "the store failed for a request"),
        false => tracing::warn!(error, is_lost, "the store failed for a request"),
    }
}

/// Returns true if the messages that were found are those that the path promises.
fn fits(format: WireFormat, detected: Option<WireFormat>) -> bool {
    let is_chat = |format| matches!(format, WireFormat::OpenAiChat | WireFormat::Anthropic);
    detected.is_none_or(|detected| detected == format || is_chat(detected) && is_chat(format))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversations_are_found_by_their_paths() {
        let of = |path| Exchange::of(&Method::POST, path).map(|it| (it.format, it.purpose));
        let turn = |format| Some((format, Purpose::Turn));
        let count = |format| Some((format, Purpose::Count));
        assert_eq!(of("/v1/chat/completions"), turn(WireFormat::OpenAiChat));
        assert_eq!(of("/v1/responses?x=1"), turn(WireFormat::Responses));
        assert_eq!(
            of("/v1/responses/input_tokens"),
            count(WireFormat::Responses)
        );
        assert_eq!(of("/v1/messages?beta=true"), turn(WireFormat::Anthropic));
        assert_eq!(
            of("/v1/messages/count_tokens"),
            count(WireFormat::Anthropic)
        );
        assert_eq!(
            of("/v1beta/models/m:generateContent"),
            turn(WireFormat::Gemini)
        );
        assert_eq!(
            of("/v1beta/models/m:countTokens"),
            count(WireFormat::Gemini)
        );
        for other in [
            "/v1/completions",
            "/v1/messages/batches",
            "/v1/models",
            "/",
            "/v1beta/models/m:embedContent",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
        assert_eq!(Exchange::of(&Method::GET, "/v1/messages"), None);
    }
}
