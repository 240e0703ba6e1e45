//! The messages of one client and one server, without I/O.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use offcut::json::{JsonText, Node, View};
use offcut::{ErrorChain, ToolCall, ToolReduction};

use super::known::{KnownServer, Page, reader};
use super::message::{
    INTERNAL_ERROR, MAX_ID, Message, Party, REVISION, error_text, kept, key, may_be_dense, outline,
    own_id, parse,
};
use super::settings::McpGateway;
use super::waiting::{Waiting, WaitingRequests};
use crate::locked::locked;
use crate::reader::{listed_reader, read_back};
use crate::result::{ReduceError, reduce_and_report};

/// The messages that one client and one server exchange.
///
/// It only decides; its owner does the reading and writing. Give it each message of the client in
/// [`from_client`](Self::from_client) and each of the server in [`from_server`](Self::from_server),
/// in the order in which they come.
pub struct Conversation {
    /// The gateway whose settings hold.
    pub(crate) gateway: Arc<McpGateway>,
    server: Arc<Mutex<KnownServer>>,
    requests: Mutex<WaitingRequests>,
    /// Makes the beginnings of names under which results are stored, if nobody is to guess them.
    random_name: Option<fn() -> Option<String>>,
}

/// The destination of a client's message.
#[expect(missing_debug_implementations, reason = "a future has none")]
#[non_exhaustive]
pub enum FromClient {
    /// It goes to the server as it is.
    Pass {
        /// A request of the gateway itself, a whole message, which the server is to get before it.
        first: Option<String>,
    },
    /// It is a call of the reader, and this the answer, a whole message. The server does not see it.
    Answer(Pin<Box<dyn Future<Output = String> + Send>>),
}

/// Answers a call of the reader with a whole message. That of a call which its client has cancelled is passed over by
/// the client.
async fn answered(
    reduction: ToolReduction,
    id: String,
    call: ToolCall,
    is_without_session: bool,
) -> String {
    let mut result = read_back(&reduction.read_file_tool(), &call).await;
    // Results of revisions without sessions must have it.
    if is_without_session {
        result["resultType"] = "complete".into();
    }
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

/// The destination of a server's message.
#[derive(Debug)]
#[non_exhaustive]
pub enum FromServer {
    /// It goes to the client as it is.
    Pass,
    /// The client gets this one in its place, with the whitespace that was around it.
    Replace(String),
    /// It answers the gateway; the client does not see it.
    Own,
}

impl McpGateway {
    /// Starts a conversation of one client with one server.
    #[must_use]
    pub fn conversation(self: &Arc<Self>) -> Conversation {
        Conversation {
            gateway: self.clone(),
            server: Arc::new(Mutex::new(KnownServer::new(self))),
            requests: Mutex::default(),
            random_name: None,
        }
    }
}

impl Conversation {
    /// Stores results under names that nobody can guess, for places that clients share. The names must not be
    /// [short](offcut::StoredNames::Short).
    #[cfg(feature = "http")]
    pub(crate) fn with_random_names(mut self, random_name: fn() -> Option<String>) -> Self {
        self.random_name = Some(random_name);
        self
    }

    /// Another conversation with the same server, which shares what is known of its tools. Ids of
    /// requests in one mean nothing in the other.
    #[must_use]
    pub fn beside(&self) -> Self {
        Self {
            gateway: self.gateway.clone(),
            server: self.server.clone(),
            requests: Mutex::default(),
            random_name: self.random_name,
        }
    }

    /// Decides about a message of the client.
    pub fn from_client(&self, message: &[u8]) -> FromClient {
        let pass = FromClient::Pass { first: None };
        let Some(json) = parse(message) else {
            return pass;
        };
        match Message::read(&json) {
            Message::Request { id, .. } if id.range().len() > MAX_ID => pass,
            Message::Request { id, method, params } => match method {
                "tools/call" => self.called(id, params),
                "tools/list" => {
                    locked(&self.server).ask_for_list();
                    let cursor = params.map_or("", |params| params.text("cursor"));
                    let is_first = cursor.is_empty();
                    self.passed(id, Waiting::List { is_first })
                }
                // It is open for as long as both like.
                "subscriptions/listen" => pass,
                _ => self.passed(id, Waiting::Passed),
            },
            Message::Notification {
                method: "notifications/cancelled",
                params,
            } => {
                if let Some(id) = params.and_then(|params| params.get("requestId")) {
                    self.forget(&key(id));
                }
                pass
            }
            _ => pass,
        }
    }

    /// Passes a request of which `waiting` is to be known.
    fn passed(&self, id: Node<'_>, waiting: Waiting) -> FromClient {
        locked(&self.requests).push(key(id), waiting);
        FromClient::Pass { first: None }
    }

    /// Returns true if the client waits for an answer of the server.
    pub(super) fn is_waiting(&self) -> bool {
        locked(&self.requests).has_open()
    }

    fn called(&self, id: Node<'_>, params: Option<Node<'_>>) -> FromClient {
        let pass = || self.passed(id, Waiting::Passed);
        let fields = params.map(|params| params.pick(["name", "arguments", "_meta"]));
        let [name, arguments, meta] = fields.unwrap_or_default();
        let name = name.and_then(View::as_str);
        let Some(name) = name.filter(|name| name.len() <= MAX_ID) else {
            return pass();
        };
        let given = meta.and_then(|meta| meta.get("claudecode/toolUseId")?.as_str());
        let given = given.filter(|given| given.len() <= MAX_ID);
        let id_of_call = given.or_else(|| id.as_str());
        let id_of_call = id_of_call.map_or_else(|| id.json().to_string(), str::to_owned);
        let call = |arguments: Option<Node<'_>>| {
            let arguments = arguments.map_or_else(|| "{}".to_owned(), |all| all.json().to_string());
            ToolCall::new(id_of_call, name, arguments)
        };

        let Some(reduction) = locked(&self.server).reduction.clone() else {
            return pass();
        };
        if reader(&reduction) == Some(name) {
            let (id, call) = (id.json().to_string(), call(arguments));
            let is_without_session = meta.is_some_and(|meta| meta.has(REVISION));
            let answer = answered(reduction, id, call, is_without_session);
            return FromClient::Answer(Box::pin(answer));
        }
        if !reduction.truncates(name) {
            return pass();
        }
        // A call may wait for long, and its client may have gone.
        let mut call = call(arguments.filter(|all| all.range().len() <= MAX_ARGUMENTS));
        if let Some(random_name) = self.random_name {
            let Some(random) = random_name() else {
                return pass();
            };
            call.id = format!("{random}-{}", call.id);
        }
        let is_first = locked(&self.server).ask_for_list();
        let mut requests = locked(&self.requests);
        requests.push(key(id), Waiting::Call(call));
        FromClient::Pass {
            first: is_first.then(|| ask_for_tools(&mut requests, kept(meta))),
        }
    }

    /// Decides about a message of the server.
    pub async fn from_server(&self, message: &[u8]) -> FromServer {
        if locked(&self.requests).is_empty() {
            return FromServer::Pass;
        }
        let Some(json) = parse(message) else {
            if may_be_dense(message) {
                (self.gateway.log)(
                    "a message of the server has too many values, and passes unread",
                );
                if let Some(json) = outline(message)
                    && let Message::Response { id, .. } = Message::read(&json)
                    && let Some(waiting) = locked(&self.requests).take(&key(id))
                {
                    return self.refused(&waiting);
                }
            }
            return FromServer::Pass;
        };
        let Message::Response { id, result } = Message::read(&json) else {
            return FromServer::Pass;
        };
        let waiting = locked(&self.requests).take(&key(id));
        let (waiting, result) = match (waiting, result) {
            (None | Some(Waiting::Passed), _) => return FromServer::Pass,
            (Some(waiting), Some(result)) => (waiting, result),
            (Some(waiting), None) => return self.refused(&waiting),
        };
        let (range, result) = (result.range(), result.to_text());
        let new = match waiting {
            Waiting::Call(call) => self.reduced(call, result).await,
            Waiting::List { is_first } => self.listed(result, is_first),
            Waiting::OwnList => {
                if let Some(page) = self.page(result) {
                    locked(&self.server).learn(&page, &self.gateway);
                }
                return FromServer::Own;
            }
            Waiting::Passed => None,
        };
        new.map_or(FromServer::Pass, |new| {
            let mut message = json.into_string();
            message.replace_range(range, &new);
            FromServer::Replace(message)
        })
    }

    async fn reduced(&self, call: ToolCall, result: JsonText) -> Option<String> {
        let (reduction, schema) = {
            let server = locked(&self.server);
            (server.reduction.clone()?, server.schema(&call.name))
        };
        match reduce_and_report(&reduction, &call, result.into_string(), &schema).await {
            Ok((new, report)) => {
                let decisions = report.iter().flat_map(|report| &report.decisions);
                for problem in decisions.filter_map(|decision| decision.error.as_deref()) {
                    self.note(&call, problem);
                }
                new
            }
            Err(ReduceError::Offload(error)) => {
                self.note(&call, &ErrorChain(&error).to_string());
                let text = crate::blocks::text_block(&format!("offcut: {error}"));
                Some(format!(r#"{{"content":[{text}],"isError":true}}"#))
            }
            Err(error) => {
                self.note(&call, &error.to_string());
                None
            }
        }
    }

    /// The destination of an answer to a request that is an error, or not read.
    fn refused(&self, waiting: &Waiting) -> FromServer {
        if matches!(waiting, Waiting::List { .. } | Waiting::OwnList) {
            self.list_failed();
        }
        match waiting {
            Waiting::OwnList => FromServer::Own,
            _ => FromServer::Pass,
        }
    }

    /// Has the next call ask for the list of tools again.
    fn list_failed(&self) {
        locked(&self.server).list_failed();
    }

    /// Expects no answer to the gateway's own request for the list any more, and has the next call ask again.
    #[cfg(feature = "http")]
    pub(crate) fn own_list_failed(&self) {
        locked(&self.requests).forget_own();
        self.list_failed();
    }

    /// Expects no answer to the request with this key any more. Returns true if one was expected.
    pub(crate) fn forget(&self, key: &str) -> bool {
        let waiting = locked(&self.requests).take(key);
        if let Some(waiting) = &waiting {
            self.refused(waiting);
        }
        waiting.is_some()
    }

    /// Gives up a message that is over the maximum. Returns an error and who gets it: the sender of a request, or the one
    /// whose request it answers. `None` if nobody waits, or it does not name its id at one of its ends.
    pub(super) fn give_up(&self, message: &[u8], sender: Party) -> Option<(Party, String)> {
        let beginning = message.trim_ascii_start();
        let is_message = beginning.starts_with(b"{") || beginning.starts_with(b"[{");
        if sender == Party::Server && !is_message {
            self.gateway.note_other(message);
            return None;
        }
        self.gateway.note_long(match sender {
            Party::Client => "the client",
            Party::Server => "the server",
        });
        let json = outline(message)?;
        let (waits, id) = match (Message::read(&json), sender) {
            (Message::Request { id, .. }, sender) => (sender, id),
            (Message::Response { id, .. }, Party::Client) => (Party::Server, id),
            (Message::Response { id, .. }, Party::Server) => {
                match locked(&self.requests).take(&key(id))? {
                    Waiting::OwnList => return None,
                    _ => (Party::Client, id),
                }
            }
            _ => return None,
        };
        let problem = format!("the message is {}", self.gateway.too_long());
        let id = id.json().to_string();
        Some((waits, error_text(INTERNAL_ERROR, &problem, Some(&id))))
    }

    fn note(&self, call: &ToolCall, problem: &str) {
        (self.gateway.log)(&format!("the result of {:?}: {problem}", call.name));
    }

    /// Reads a page of the tool list. One that is none is a failure.
    fn page(&self, result: JsonText) -> Option<Page> {
        let page = Page::new(result);
        if page.is_none() {
            self.list_failed();
        }
        page
    }

    fn listed(&self, result: JsonText, is_first: bool) -> Option<String> {
        let page = self.page(result)?;
        let mut server = locked(&self.server);
        server.learn(&page, &self.gateway);
        // There may be no last page.
        let reduction = server.reduction.as_ref().filter(|_| is_first)?;
        reader(reduction)?;
        Some(page.with(listed_reader(&reduction.read_file_tool())))
    }
}

/// A request for the first page of the tool list, with this `_meta`.
fn ask_for_tools(requests: &mut WaitingRequests, meta: Option<String>) -> String {
    let id = own_id();
    let params = meta.map_or_else(String::new, |meta| format!(r#""_meta":{meta}"#));
    requests.push(format!("\"{id}"), Waiting::OwnList);
    format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"tools/list","params":{{{params}}}}}"#)
}

/// Maximum number of bytes of a call's arguments that are kept while it waits.
const MAX_ARGUMENTS: usize = 4 * 1024;

impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversation")
            .field("gateway", &self.gateway)
            .finish_non_exhaustive()
    }
}
