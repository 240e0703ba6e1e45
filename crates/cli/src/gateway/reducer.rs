//! Reduces the conversations of all tenants, each in a session of its own.

use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::sync::{Arc, Mutex};

use offcut::backend::Memory;
use offcut::format::{
    Call, Format, JsonText, Messages, Piece, RequestBody, Role, Spelled, WireFormat,
};
use offcut::report::{ErrorSource, Outcome as Decided};
use offcut::{ErrorChain, Report, Settings, ToolReduction, Turn};

use crate::gateway::breaker::{NOT_ASKED, Open};
use crate::gateway::error::GatewayError;
use crate::gateway::exchange::{Exchange, Purpose};
use crate::gateway::holdout::{Group, group};
use crate::gateway::naming::NamingSecret;
use crate::gateway::outcome::{Outcome, PassReason};
use crate::gateway::reader::{self, Tools};
use crate::gateway::settings::ServeSettings;
use crate::gateway::stored::Pages;
use crate::gateway::tenant::Tenant;
use crate::gateway::watch::{Look, Watch};
use crate::lock::locked;

/// Number of sessions in a generation, and of bytes of the longest request that each was used for. Two generations are
/// held in memory, each of which takes at most twice these bytes.
const HELD: usize = 2048;
const HELD_BYTES: usize = 128 << 20;
/// Number of conversations of which it is remembered that the provider took only the original.
const UNTOUCHED: usize = 65_536;

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
    sessions: Mutex<HeldSessions>,
    untouched: Mutex<HashSet<String>>,
}

/// The sessions in memory, by the prefix of a conversation's content, and by variant. Of the others, the records are
/// read again.
#[derive(Default)]
struct HeldSessions {
    /// Each with the bytes of the longest request that it was used for.
    newer: HashMap<(String, usize), (ToolReduction, usize)>,
    /// Those that were not used since `newer` was begun.
    older: HashMap<(String, usize), (ToolReduction, usize)>,
    /// Sum of the bytes of the newer ones.
    bytes: usize,
}

impl ConversationReducer {
    /// Builds the reductions for `settings`, with stores from `open`.
    pub(crate) fn new(
        serve: &ServeSettings,
        settings: &Settings,
        open: &Open<'_>,
    ) -> Result<Self, GatewayError> {
        let pages = serve.is_local().then(|| Pages::of(settings)).flatten();
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
        tenant: &Tenant,
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
            whole.conversation(tenant.name(), secret, &messages)
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
        let reader = reader.flatten();
        let is_too_long = pressure == Pressure::TooLong;
        let is_cold = !is_too_long && watch.state().is_cold(&conversation, &look.would);
        let bytes = body.messages().iter().map(|one| one.as_str().len()).sum();
        let mut has_failed = false;
        for (variant, whole) in self.variants.iter().enumerate() {
            if decides && reader_of(whole) != reader {
                continue;
            }
            let session = self.session(&conversation, variant, bytes, || {
                let name = conversation.rsplit('/').nth(1);
                let alone = whole
                    .session(tenant.name())
                    .session(name.unwrap_or_default());
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
            let reduced = session.reduce_turn(&mut turn).await;
            match reduced {
                Ok(report) => {
                    let is_lost = report
                        .decisions
                        .iter()
                        .any(|one| one.outcome == Decided::Lost);
                    let fails = has_store_failed(&report);
                    if is_lost || fails && !has_failed {
                        let error = store_error(&report);
                        log_failure(error, is_lost);
                    }
                    has_failed |= fails;
                    if report.is_change() {
                        look.add(&report);
                        return match has_failed {
                            true => Outcome::Partly(PassReason::Store),
                            false => Outcome::Reduced,
                        };
                    }
                }
                Err(error) if decides => return failed(&error),
                Err(_) => {}
            }
        }
        match has_failed {
            true => Outcome::Passed(PassReason::Store),
            false => Outcome::Unchanged,
        }
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

    /// The session of a conversation: the one that is held, or a `new` one.
    fn session(
        &self,
        conversation: &str,
        variant: usize,
        bytes: usize,
        new: impl FnOnce() -> ToolReduction,
    ) -> ToolReduction {
        let mut held = locked(&self.sessions);
        let key = (conversation.to_owned(), variant);
        let known = held.newer.remove(&key);
        held.bytes -= known.as_ref().map_or(0, |(_, bytes)| *bytes);
        let known = known.or_else(|| held.older.remove(&key));
        let (session, longest) = known.unwrap_or_else(|| (new(), 0));
        let bytes = bytes.max(longest);
        if held.newer.len() >= HELD || held.bytes + bytes > HELD_BYTES {
            held.older = std::mem::take(&mut held.newer);
            held.bytes = 0;
        }
        held.bytes += bytes;
        held.newer.insert(key, (session.clone(), bytes));
        session
    }

    /// Lets a conversation pass untouched from now on, since a provider took it only as it came. After a restart,
    /// and on every replica, one more refusal tells.
    pub(crate) fn leave(&self, conversation: String) {
        let mut untouched = locked(&self.untouched);
        if untouched.len() >= UNTOUCHED {
            untouched.clear();
        }
        untouched.insert(conversation);
    }

    /// A session that reads what any conversation of `tenant` has stored, and nothing else.
    pub(crate) fn of_tenant(&self, tenant: &Tenant) -> ToolReduction {
        let format = Spelled(WireFormat::OpenAiChat);
        self.any()
            .conversation(tenant.name(), b"", &Messages::new(&format, &mut []))
    }

    /// A session that reads what one conversation of `tenant` has stored, and nothing else.
    pub(crate) fn of_conversation(&self, tenant: &Tenant, name: &str) -> ToolReduction {
        self.any().session(tenant.name()).session(name)
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

/// The first of the store's errors: one that is down gives the same for each result.
fn store_error(report: &Report) -> &str {
    let decisions = report.decisions.iter();
    let mut of_store = decisions.filter(|one| one.error_source == Some(ErrorSource::Store));
    let error = of_store.find_map(|one| one.error.as_deref());
    error
        .or(report.records_error.as_deref())
        .unwrap_or_default()
}

/// Returns true if something stayed because the store failed.
fn has_store_failed(report: &Report) -> bool {
    let mut kept = report
        .decisions
        .iter()
        .filter(|decision| !decision.outcome.is_change());
    report.records_error.is_some()
        || kept.any(|decision| decision.error_source == Some(ErrorSource::Store))
}
