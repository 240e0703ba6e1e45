//! A reduction whose messages, calls and reports are JSON text.

use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use offcut::agent::{ChatModel, ModelError, ModelReply, ModelRequest};
use offcut::backend::{self, Backend, Location};
use offcut::format::{
    Format as _, LoopFormat as _, Message, Messages, PartRef, Piece, RequestBody, Spelled,
    WireFormat,
};
use offcut::{
    Body, ErrorChain, Part, Report, Settings, ToolCall, ToolOutput, ToolReduction, Truncated, Turn,
    agent::Tool as _,
};
use offcut_object_store::Objects;
use offcut_state::{
    ApplyError, OriginalsNote, ReduceNode, ReduceNodeError, Reducers, Schema, State,
};
use serde::Serialize;
use serde_json::{Value, json};

/// Types of parts that are texts.
const TEXT_KINDS: [&str; 3] = ["text", "input_text", "output_text"];

/// A reduction over JSON text.
#[derive(Clone)]
pub(crate) struct Engine {
    reduction: ToolReduction,
    /// True once it was said that tools lack the reader, in whatever session.
    has_told: Arc<AtomicBool>,
}

/// A mistake of the caller, or a failure of a store, as text.
#[derive(Debug)]
pub(crate) enum EngineError {
    /// The settings are wrong, or name a store that can't be opened.
    Settings(String),
    /// An argument is wrong.
    Argument(String),
    /// The store failed.
    Store(String),
}

impl EngineError {
    fn settings(error: impl Error) -> Self {
        Self::Settings(ErrorChain(&error).to_string())
    }

    fn argument(error: impl Error) -> Self {
        Self::Argument(ErrorChain(&error).to_string())
    }

    fn store(error: impl Error) -> Self {
        Self::Store(ErrorChain(&error).to_string())
    }
}

/// The text beside a question, or the result of a tool as the caller has it.
#[cfg_attr(feature = "python", derive(pyo3::FromPyObject))]
pub(crate) enum Given {
    Text(String),
    Bytes(Vec<u8>),
    /// The JSON of each part, as the message's format has it.
    Parts(Vec<String>),
}

/// The messages after a pass; `None` if nothing has changed.
#[derive(Default, Serialize)]
struct PassedMessages {
    messages: Option<Vec<KeptMessage>>,
    report: Report,
}

/// A message after a pass.
#[derive(Serialize)]
#[serde(untagged)]
enum KeptMessage {
    /// The message with this index, unchanged.
    At(usize),
    /// The JSON of a new message.
    New(String),
}

/// A new body, or what is shown in place of a result: a text, or parts; `None` if it is as it was.
#[derive(Default, Serialize)]
struct ChangedContent {
    new: Option<Value>,
    report: Report,
}

/// A message that answers a call.
#[derive(Serialize)]
struct AnsweredCall {
    message: Value,
    report: Report,
    is_error: bool,
}

/// Reads settings. Relative directories begin where the process is now: it may go elsewhere before it opens them again.
pub(crate) fn settings(json: &str) -> Result<Settings, EngineError> {
    let settings = Settings::from_json(json).map_err(|mut error| {
        // The packages write them as JSON text of one line, which no user has seen.
        error.line = None;
        EngineError::settings(error)
    });
    let mut settings = settings?;
    let of_tools = settings.tool_config.values_mut();
    let of_tools = of_tools.map(|tool| &mut tool.backend_url);
    for url in of_tools.chain([&mut settings.backend_url]).flatten() {
        let relative = url.directory().filter(|path| path.is_relative());
        let absolute = relative.and_then(|path| std::path::absolute(path).ok());
        if let Some(path) = absolute.as_deref().and_then(Path::to_str) {
            *url = path.into();
        }
    }
    Ok(settings)
}

impl Engine {
    /// Opens the stores that `settings` name.
    pub(crate) fn open(settings: Settings) -> Result<Self, EngineError> {
        let reduction = ToolReduction::builder().settings(settings, open).build();
        Ok(Self {
            reduction: reduction.map_err(EngineError::settings)?,
            has_told: Arc::default(),
        })
    }

    /// Says once in a report that the tools of a request lack the reader that its hints name.
    fn tell_of_reader(&self, report: &mut Report, tools: &[Value]) {
        let Some(reader) = self.reader_name().filter(|_| report.is_change()) else {
            return;
        };
        // Instructions are counted as texts among the tools.
        let mut defined = tools.iter().filter(|tool| tool.is_object()).peekable();
        if defined.peek().is_some()
            && !defined.any(|tool| is_named(tool, reader))
            && !self.has_told.swap(true, Ordering::Relaxed)
        {
            let notice =
                format!("hints name {reader}, which the tools lack: add `tool(format)` to them");
            report.notice.get_or_insert(notice);
        }
    }

    pub(crate) fn session(&self, id: &str) -> Result<Self, EngineError> {
        if id.is_empty() {
            let problem = "a session needs an id: without one, all conversations would be the same";
            return Err(EngineError::Argument(problem.into()));
        }
        Ok(Self {
            reduction: self.reduction.session(id),
            has_told: self.has_told.clone(),
        })
    }

    /// Returns true if a store is in this process's memory.
    #[cfg(feature = "python")]
    pub(crate) fn is_in_memory(&self) -> bool {
        let settings = self.reduction.settings();
        let of_tools = settings.tool_config.values().map(|tool| &tool.backend_url);
        let mut urls = of_tools.chain([&settings.backend_url]).flatten();
        urls.any(|url| url.to_string().starts_with("memory:"))
    }

    /// The reader's name; `None` if hints name none.
    pub(crate) fn reader_name(&self) -> Option<&str> {
        self.reduction.settings().read_file_tool_name.as_deref()
    }

    /// The reader's definition for a request's `tools`.
    pub(crate) fn tool(&self, format: &str) -> Result<String, EngineError> {
        if self.reader_name().is_none() {
            let problem = "`read_file_tool_name` is false, so there is no reader to define";
            return Err(EngineError::Settings(problem.into()));
        }
        Ok(self.reduction.reader(parse_format(format)?).to_string())
    }

    /// Does what a package asks for by the name of the method, and answers in JSON. `options` are JSON, and `given` is
    /// what would be long in it: messages, a body, a model's answer, arguments, or a result.
    pub(crate) async fn ask(
        &self,
        method: &str,
        format: Option<&str>,
        options: &str,
        given: Option<Given>,
    ) -> Result<String, EngineError> {
        let options = parse(options)?;
        Ok(match (method, given) {
            ("clear", Some(Given::Text(messages))) => {
                text(&self.clear(format, messages, &options).await?)
            }
            ("reduce", Some(Given::Text(body))) => {
                text(&self.reduce(format, body, &options).await?)
            }
            ("condense", None) => self.condense(&options, None).await?.to_string(),
            ("condense", Some(Given::Text(answer))) => {
                self.condense(&options, Some(answer)).await?.to_string()
            }
            ("answer", None) => text(&self.answer(format, options).await?),
            ("message", Some(result)) => text(&self.message(format, &options, result).await?),
            ("truncate", Some(result)) => text(&self.truncate(&options, result).await?),
            ("read", Some(Given::Text(arguments))) => self.read(&arguments).await.to_string(),
            ("check", None) => text(&self.check().await?),
            _ => {
                let problem = format!("`{method}` takes a text, which this is not");
                return Err(EngineError::Argument(problem));
            }
        })
    }

    /// Runs the clear pass. `turn` has `tools`, `last_usage`, `is_too_long` and `is_cold`. With `joins`, the newest
    /// results of parallel calls come to stand in one message where the provider wants that.
    async fn clear(
        &self,
        format: Option<&str>,
        messages: String,
        turn: &Value,
    ) -> Result<PassedMessages, EngineError> {
        let mut body = RequestBody::parse(messages).map_err(EngineError::argument)?;
        let Some(format) = format_of(format, &body)? else {
            return Ok(PassedMessages::default());
        };
        let tools = items(turn["tools"].clone())?;
        let mut first_new = body.messages().len();
        if turn["joins"] == true
            && let Some((start, joined)) = join(format, &body)
        {
            first_new = start;
            body = RequestBody::parse(joined).map_err(EngineError::argument)?;
        }
        let by_text = Spelled(format);
        let mut conversation = Messages::new(&by_text, body.messages_mut());
        let mut turn = Turn {
            tools: &tools,
            last_usage: turn["last_usage"].as_u64(),
            is_too_long: turn["is_too_long"] == true,
            is_cold: turn["is_cold"] == true,
            ..Turn::new(&mut conversation)
        };
        let report = self.reduction.clear_turn(&mut turn).await;
        let mut report = report.map_err(EngineError::store)?;
        self.tell_of_reader(&mut report, &tools);
        let mut has_changed = false;
        let kept = body.originals().zip(body.messages()).enumerate();
        let kept = kept.map(|(nth, (original, message))| {
            if nth < first_new && original == message.as_str() {
                return KeptMessage::At(nth);
            }
            has_changed = true;
            KeptMessage::New(message.as_str().to_owned())
        });
        let kept: Vec<KeptMessage> = kept.collect();
        Ok(PassedMessages {
            messages: has_changed.then_some(kept),
            report,
        })
    }

    /// Reduces a request's body. `turn` has `is_too_long`, `is_cold` and `repeats_only`.
    async fn reduce(
        &self,
        format: Option<&str>,
        body: String,
        turn: &Value,
    ) -> Result<ChangedContent, EngineError> {
        let mut body = RequestBody::parse(body).map_err(EngineError::argument)?;
        let Some(format) = format_of(format, &body)? else {
            return Ok(ChangedContent::default());
        };
        let (tools, by_text) = (body.tools(), Spelled(format));
        let mut conversation = Messages::new(&by_text, body.messages_mut());
        let mut turn = Turn {
            tools: &tools,
            is_too_long: turn["is_too_long"] == true,
            is_cold: turn["is_cold"] == true,
            repeats_only: turn["repeats_only"] == true,
            ..Turn::new(&mut conversation)
        };
        let report = self.reduction.reduce_turn(&mut turn).await;
        let mut report = report.map_err(EngineError::store)?;
        self.tell_of_reader(&mut report, &tools);
        let is_new = body
            .originals()
            .zip(body.messages())
            .any(|(original, message)| original != message.as_str());
        Ok(ChangedContent {
            new: is_new.then(|| body.to_string().into()),
            report,
        })
    }

    /// Does the work of a `ReduceNode` on the `state` in `asked`. Without the model's `answer`, it stores the inputs
    /// and returns the prompt alone; with it, the output and what was done. The `node` has `prompt_template`,
    /// `input_keys`, `output_key` and `names_originals`.
    async fn condense(&self, asked: &Value, answer: Option<String>) -> Result<Value, EngineError> {
        let options = &asked["node"];
        let Value::Object(mut state) = asked["state"].clone() else {
            return Err(EngineError::Argument("the state must be an object".into()));
        };
        let text_of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let keys = items(options["input_keys"].clone())?;
        let relay = Relay {
            answer,
            prompt: Arc::default(),
        };
        let prompt = relay.prompt.clone();
        let node = ReduceNode::builder(relay, text_of(&options["prompt_template"]))
            .input_keys(keys.iter().map(text_of))
            .output_key(text_of(&options["output_key"]))
            .originals(match options["names_originals"] == false {
                true => OriginalsNote::Unnamed,
                false => OriginalsNote::Named,
            })
            .reduction(self.reduction.clone());
        let node = node.build().map_err(EngineError::argument)?;
        let reduced = node.run(&mut state).await;
        if let Some(prompt) = prompt.get() {
            return Ok(json!({"prompt": prompt}));
        }
        let reduced = reduced.map_err(|error| match error {
            ReduceNodeError::Store { .. } => EngineError::store(error),
            _ => EngineError::argument(error),
        })?;
        let stored = reduced.stored.iter();
        let stored: Vec<_> = stored
            .map(|(key, location)| json!([key, location.as_str()]))
            .collect();
        Ok(json!({
            "output": reduced.output,
            "deleted": reduced.deleted,
            "stored": stored,
            "left_in_place": reduced.left_in_place,
        }))
    }

    /// Answers a call of the reader with a message; `None` if it is for another tool.
    async fn answer(
        &self,
        format: Option<&str>,
        call: Value,
    ) -> Result<Option<AnsweredCall>, EngineError> {
        let call = ReadCall::parse(format, call)?;
        let page = self.reduction.answer(&call.call).await;
        let page = page.map_err(EngineError::store)?;
        Ok(page.map(|page| call.answered(page)))
    }

    /// Truncates the result of the `call` in `asked`, which may be one that `is_error`. Returns the message that
    /// answers it.
    async fn message(
        &self,
        format: Option<&str>,
        asked: &Value,
        result: Given,
    ) -> Result<AnsweredCall, EngineError> {
        let call = ReadCall::parse(format, asked["call"].clone())?;
        let mut output = output(result, asked)?;
        if let Body::Parts(parts) = &mut output.body {
            let all = std::mem::take(parts).into_iter();
            *parts = all.map(|part| medium(part, call.format)).collect();
        }
        let shown = self
            .reduction
            .truncate_for(&call.format, &call.call, output);
        Ok(call.answered(shown.await.map_err(EngineError::store)?))
    }

    /// Truncates the result of the `call` in `asked`, which may be one that `is_error`. Bytes are never shown as they
    /// are.
    async fn truncate(&self, asked: &Value, result: Given) -> Result<ChangedContent, EngineError> {
        let call = ReadCall::parse(Some(WireFormat::OpenAiChat.name()), asked["call"].clone())?;
        let is_bytes = matches!(result, Given::Bytes(_));
        let given = match &result {
            Given::Parts(parts) => Some(values(parts)?),
            _ => None,
        };
        let output = output(result, asked)?;
        let shown = self.reduction.truncate(&call.call, output).await;
        let mut shown = shown.map_err(EngineError::store)?;
        let report = std::mem::take(&mut shown.report);
        let new = (is_bytes || report.is_change()).then(|| match given {
            Some(given) => as_given(&given, shown.into()),
            None => texts(shown.into()).into(),
        });
        Ok(ChangedContent { new, report })
    }

    /// Calls the reader. Returns its page, and true if that tells of a mistake.
    async fn read(&self, arguments: &str) -> Value {
        let reader = self.reduction.read_file_tool();
        let call = ToolCall::new("", reader.definition().name, arguments);
        let (text, is_error) = match reader.call(&call).await {
            Ok(page) => {
                let is_error = page.is_error;
                let (parts, _) = page.into_parts().await;
                match &parts[..] {
                    [Part::Media { mime, .. }] => {
                        let told =
                            format!("{mime}, which a text can't show: `original` has its bytes");
                        (told, true)
                    }
                    _ => (texts(parts), is_error),
                }
            }
            Err(error) => (error.to_string(), true),
        };
        json!({"text": text, "is_error": is_error})
    }

    /// Everything that is stored at `location`.
    pub(crate) async fn original(&self, location: &str) -> Result<Vec<u8>, EngineError> {
        match self.reduction.read_original(&Location::new(location)).await {
            Some(Ok(bytes)) => Ok(bytes.into()),
            Some(Err(error)) => Err(EngineError::store(error)),
            None => Err(EngineError::Argument(format!(
                "nothing that this session stored is at {location:?}: use a location from a hint or a report"
            ))),
        }
    }

    /// Tries out every store.
    async fn check(&self) -> Result<(), EngineError> {
        let checked = self.reduction.check_stores().await;
        checked.map_err(EngineError::store)
    }
}

/// Applies `updates`, a list, to a declared state. Without a `state`, they begin with the schema's defaults. Returns the new
/// state.
pub(crate) fn apply(
    schema: &str,
    state: Option<&str>,
    updates: &str,
) -> Result<String, EngineError> {
    let told = |code, error: &dyn Error| format!("{code}: {}", ErrorChain(error));
    let reducers = Reducers::new();
    let schema = if schema.trim_start().starts_with('{') {
        Schema::from_json(schema, &reducers)
    } else {
        Schema::from_yaml(schema, &reducers)
    };
    let schema = schema.map_err(|error| EngineError::Settings(told(error.code(), &error)))?;
    let wrong = |error: ApplyError| EngineError::Argument(told(error.code(), &error));
    let mut state = match state {
        None => schema.state(),
        Some(state) => State::restore(&schema, parse(state)?).map_err(wrong)?,
    };
    for update in list(updates)? {
        state.apply(update).map_err(wrong)?;
    }
    serde_json::to_string(&state).map_err(|error| EngineError::Argument(error.to_string()))
}

fn open(url: &str) -> Result<Arc<dyn Backend>, Box<dyn Error + Send + Sync>> {
    let is_bucket = url
        .split_once("://")
        .is_some_and(|(scheme, _)| !["memory", "file"].contains(&scheme));
    if is_bucket {
        return Ok(Arc::new(Objects::open(url)?));
    }
    Ok(backend::open(url)?)
}

fn text(answer: &impl Serialize) -> String {
    // It has only JSON, texts and numbers.
    serde_json::to_string(answer).unwrap_or_default()
}

fn parse(json: &str) -> Result<Value, EngineError> {
    serde_json::from_str(json).map_err(|error| EngineError::Argument(error.to_string()))
}

fn list(json: &str) -> Result<Vec<Value>, EngineError> {
    items(parse(json)?)
}

fn items(list: Value) -> Result<Vec<Value>, EngineError> {
    match list {
        Value::Array(items) => Ok(items),
        Value::Null => Ok(Vec::new()),
        _ => Err(EngineError::Argument(
            "tools, updates and keys must be lists".into(),
        )),
    }
}

fn parse_format(name: &str) -> Result<WireFormat, EngineError> {
    name.parse().map_err(|_| {
        let all = WireFormat::ALL.map(|format| format!("{:?}", format.name()));
        EngineError::Argument(format!(
            "unknown format {name:?}: use one of {}",
            all.join(", ")
        ))
    })
}

/// The format that was named, or that the messages have; `None` if there are none.
fn format_of(named: Option<&str>, body: &RequestBody) -> Result<Option<WireFormat>, EngineError> {
    if let Some(foreign) = body.foreign_format() {
        let problem = format!(
            "these are {foreign}, which no format reads: use the adapter of their framework, or pass messages as the provider takes them"
        );
        return Err(EngineError::Argument(problem));
    }
    if let Some(name) = named {
        let format = parse_format(name)?;
        let other = body.format().filter(|other| *other != format);
        let other = other.filter(|other| has_calls(*other, body) && !has_calls(format, body));
        return match other {
            None => Ok(Some(format)),
            Some(other) => Err(EngineError::Argument(format!(
                "these messages have calls of {other}, and `format` is {name}: name the other, or leave it out"
            ))),
        };
    }
    if body.format().is_none() && !body.messages().is_empty() {
        let problem = "no known format fits these messages: pass them as the provider takes them, or name the `format`";
        return Err(EngineError::Argument(problem.into()));
    }
    Ok(body.format())
}

/// Returns true if a definition, in whatever a provider puts around it, has this name.
fn is_named(tool: &Value, name: &str) -> bool {
    match tool {
        Value::Object(fields) => {
            let inner = [
                "function",
                "functionDeclarations",
                "function_declarations",
                "tools",
            ];
            fields.get("name").is_some_and(|own| own == name)
                || inner.iter().any(|field| is_named(&tool[*field], name))
        }
        Value::Array(tools) => tools.iter().any(|tool| is_named(tool, name)),
        _ => false,
    }
}

/// Returns true if the messages have calls or results in this format.
fn has_calls(format: WireFormat, body: &RequestBody) -> bool {
    let mut is_there = false;
    for message in body.messages() {
        Spelled(format).visit(message, &mut |piece| {
            is_there |= matches!(piece, Piece::Call(_) | Piece::Result(_));
        });
    }
    is_there
}

/// A model that gives an answer which is there, or keeps what it is asked.
struct Relay {
    answer: Option<String>,
    prompt: Arc<OnceLock<String>>,
}

#[async_trait]
impl ChatModel for Relay {
    async fn complete(&self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        if let Some(answer) = &self.answer {
            return Ok(ModelReply {
                message: Message::assistant(answer.as_str()),
                input_tokens: None,
            });
        }
        let mut asked = request.messages.iter();
        let prompt = asked.find_map(|message| match message {
            Message::User { content } => content.iter().find_map(|part| match part {
                Part::Text(text) => Some(text.clone()),
                _ => None,
            }),
            _ => None,
        });
        _ = self.prompt.set(prompt.unwrap_or_default());
        Err(ModelError::new("the caller asks its model"))
    }
}

/// Joins the newest results of parallel calls. Returns all messages, and the index of the first that has changed; `None`
/// if none has.
fn join(format: WireFormat, body: &RequestBody) -> Option<(usize, String)> {
    if !matches!(format, WireFormat::Anthropic | WireFormat::Gemini) {
        return None;
    }
    let all = body.messages();
    let is_models = |message: &Value| message["role"] == "assistant" || message["role"] == "model";
    let mut newest = Vec::new();
    for message in all.iter().rev() {
        let message: Value = serde_json::from_str(message.as_str()).ok()?;
        if is_models(&message) {
            break;
        }
        newest.insert(0, message);
    }
    let (count, start) = (newest.len(), all.len() - newest.len());
    format.join_results(&mut newest);
    if newest.len() == count {
        return None;
    }
    let before = all[..start]
        .iter()
        .map(|message| message.as_str().to_owned());
    let joined: Vec<String> = before.chain(newest.iter().map(Value::to_string)).collect();
    Some((start, format!("[{}]", joined.join(","))))
}

/// A call, and the format of its answer.
struct ReadCall {
    format: WireFormat,
    call: ToolCall,
    /// True if its arguments are free text: Responses then has another type of answer.
    is_custom: bool,
}

impl ReadCall {
    /// Reads a call as a provider writes it, or as `{"id", "name", "arguments"}`.
    fn parse(format: Option<&str>, value: Value) -> Result<Self, EngineError> {
        let format = format.map(parse_format).transpose()?;
        let kind = value["type"].as_str().unwrap_or_default();
        let is_custom = kind == "custom_tool_call";
        let written = if value["function"].is_object() || value["custom"].is_object() {
            let message = json!({"role": "assistant", "tool_calls": [value]});
            Some((WireFormat::OpenAiChat, message))
        } else if kind == "tool_use" {
            let message = json!({"role": "assistant", "content": [value]});
            Some((WireFormat::Anthropic, message))
        } else if kind.ends_with("_call") && kind != "tool_call" {
            Some((WireFormat::Responses, value.clone()))
        } else if value["functionCall"].is_object() || value["function_call"].is_object() {
            let message = json!({"role": "model", "parts": [value]});
            Some((WireFormat::Gemini, message))
        } else if kind.is_empty() && value["args"].is_object() && value["name"].is_string() {
            // Google's SDKs list them without what is around them in a message.
            let part = json!({"functionCall": value});
            Some((
                WireFormat::Gemini,
                json!({"role": "model", "parts": [part]}),
            ))
        } else {
            None
        };
        if let Some((own, message)) = written {
            let call = own.tool_calls(&message).into_iter().next();
            let no_call =
                || EngineError::Argument(format!("no call that {own} answers with a result"));
            return Ok(Self {
                format: format.unwrap_or(own),
                call: call.ok_or_else(no_call)?,
                is_custom,
            });
        }
        let Some(name) = value["name"].as_str() else {
            let problem = "a call must be as the provider writes it, or have \"id\", \"name\" and \"arguments\"";
            return Err(EngineError::Argument(problem.into()));
        };
        let no_format = "the call does not tell the provider: name the `format` of the message";
        let arguments = ["arguments", "args", "input"];
        let arguments = match arguments.iter().find_map(|key| value.get(key)) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => "{}".to_owned(),
            Some(other) => other.to_string(),
        };
        let id = ["id", "call_id"].iter().find_map(|key| value[key].as_str());
        let format = format.ok_or_else(|| EngineError::Argument(no_format.into()))?;
        if id.is_none() && format != WireFormat::Gemini {
            let problem = "the call has no `id` of text, by which the provider finds its result";
            return Err(EngineError::Argument(problem.into()));
        }
        Ok(Self {
            format,
            call: ToolCall::new(id.unwrap_or_default(), name, arguments),
            is_custom,
        })
    }

    /// The message that answers the call.
    fn answered(&self, mut shown: Truncated) -> AnsweredCall {
        let is_error = shown.is_error || shown.interrupted.is_some();
        let report = std::mem::take(&mut shown.report);
        let parts = shown
            .for_message(|part| self.format.takes(part))
            .into_iter();
        let parts = parts.map(|part| medium(part, self.format)).collect();
        let mut message = self.format.tool_message(&self.call, parts, is_error);
        if self.is_custom && self.format == WireFormat::Responses {
            message["type"] = "custom_tool_call_output".into();
        }
        AnsweredCall {
            message,
            report,
            is_error,
        }
    }
}

/// The part as `format` writes it in its own words, if it is a medium in those of MCP or of another provider.
fn medium(part: Part, format: WireFormat) -> Part {
    let Part::Opaque(value) = &part else {
        return part;
    };
    // No provider has the resources of MCP, nor links to them.
    let resource = value.get("resource");
    let text = resource.and_then(|resource| resource["text"].as_str());
    if let Some(text) = text {
        let uri = value["resource"]["uri"].as_str().unwrap_or_default();
        return Part::Text(format!("{uri}\n{text}"));
    }
    if value["type"] == "resource_link" {
        return Part::Json(value.clone());
    }
    let inline = value.get("inlineData").or(value.get("inline_data"));
    let inline = inline.or(resource).unwrap_or(value);
    let mime = inline.get("mimeType").or(inline.get("mime_type"));
    let data = inline.get("data").or(inline.get("blob"));
    if let (Some(mime), Some(data)) = (mime, data.and_then(Value::as_str)) {
        // Google's SDK for Python writes base64 in the alphabet of URLs.
        let data = data.replace('-', "+").replace('_', "/");
        let medium = json!({"type": "media", "value": {"mime": mime, "data": data}});
        return serde_json::from_value(medium).unwrap_or(part);
    }
    let read_as = |format: WireFormat| {
        let field = match format {
            WireFormat::Gemini => "parts",
            _ => "content",
        };
        let mut medium = None;
        format.visit(&json!({"role": "user", field: [value]}), &mut |piece| {
            if let Piece::Content(it @ (PartRef::Media { .. } | PartRef::Link { .. })) = piece {
                medium = Some(Part::from(it));
            }
        });
        medium
    };
    // A format's own part stays as it is spelled, but Gemini has its media beside the content.
    if format != WireFormat::Gemini && read_as(format).is_some() {
        return part;
    }
    let is_file = value["type"] == "input_file" || value["type"] == "document";
    let is_image = |mime: Option<&str>| mime.map_or(!is_file, |mime| mime.starts_with("image/"));
    match WireFormat::ALL.into_iter().find_map(read_as) {
        // Chat completions link to images alone.
        Some(Part::Link { mime, .. })
            if format == WireFormat::OpenAiChat && !is_image(mime.as_deref()) =>
        {
            Part::Json(value.clone())
        }
        medium => medium.unwrap_or(part),
    }
}

/// The texts among parts, joined.
fn texts(parts: Vec<Part>) -> String {
    let texts = parts.into_iter().filter_map(|part| match part {
        Part::Text(text) => Some(text),
        _ => None,
    });
    texts.collect()
}

/// The parts to show, as the caller has them: of a text that was cut, all but the text stays.
fn as_given(given: &[Value], shown: Vec<Part>) -> Value {
    let mut rest = given;
    let parts = shown.into_iter().map(|part| {
        let text = match part {
            Part::Text(text) => text,
            Part::Opaque(value) | Part::Json(value) => return value,
            other => return json!(other),
        };
        // A hint stands where the first of the texts did that it is for.
        let whole = rest.iter().position(|one| text_in(one) == Some(&text));
        let own = whole.or_else(|| rest.iter().position(|one| text_in(one).is_some()));
        let like = || given.iter().rfind(|one| text_in(one).is_some()).cloned();
        let part = own.map(|own| rest[own].clone()).or_else(like);
        let mut part = part.unwrap_or(json!({"type": "text"}));
        rest = own.map_or(rest, |own| &rest[own + 1..]);
        part["text"] = text.into();
        part
    });
    parts.collect()
}

/// The text of a part that may be cut; none if it is another part.
fn text_in(part: &Value) -> Option<&str> {
    let kind = &part["type"];
    let is_text = kind.is_null() || TEXT_KINDS.iter().any(|text| kind == text);
    part["text"].as_str().filter(|_| is_text)
}

fn values(parts: &[String]) -> Result<Vec<Value>, EngineError> {
    parts.iter().map(|part| parse(part)).collect()
}

/// The result as the engine takes it. Texts in it may be cut; other parts stay.
fn output(result: Given, asked: &Value) -> Result<ToolOutput, EngineError> {
    let mut output = match result {
        Given::Text(text) => ToolOutput::from(text),
        Given::Bytes(bytes) => ToolOutput::bytes(bytes),
        Given::Parts(parts) => {
            let parts = values(&parts)?.into_iter().map(|part| {
                let text = text_in(&part).map(|text| Part::Text(text.to_owned()));
                text.unwrap_or(Part::Opaque(part))
            });
            ToolOutput::parts(parts.collect())
        }
    };
    output.is_error = asked["is_error"] == true;
    Ok(output)
}
