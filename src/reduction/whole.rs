//! Whole histories in one call.

use super::{Report, ToolReduction};
use crate::error::OffloadError;
use crate::format::{Conversation, Format, Messages, RequestBody, Spelled};
use crate::history;
use crate::middleware::Turn;

impl ToolReduction {
    /// Reduces a whole history before a model call, in one step: every result is truncated as it
    /// would have been when it arrived, and then the clear pass runs. For programs that get the
    /// history at each call, with the originals or with what was sent before: a proxy, a hook, a
    /// framework that calls you before the model.
    ///
    /// Decisions are repeated byte for byte, also by another process with the same settings, store
    /// and session. Each call that decides something writes a small record to the
    /// store, after the content and before any message changes. If that fails, the call decides
    /// nothing new. Messages may be inserted, removed and rewritten between calls: decisions belong
    /// to results, and are found by their ids, tools and contents.
    ///
    /// A [session](Self::session) is one conversation here too. The report gives
    /// tokens only for what the pass decided.
    ///
    /// ```
    /// # use offcut::{ToolCall, ToolReduction, backend::Memory, format::{Message, Plain}};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let call = ToolCall::new("call_1", "grep", "{}");
    /// let history = [
    ///     Message::calls(vec![call.clone()]),
    ///     Message::tool(&call, vec!["a line that matches\n".repeat(1_000).into()], false),
    /// ];
    /// let store = Memory::new();
    /// let mut sent = Vec::new();
    /// for _ in 0..2 {
    ///     // Another process, as far as it can be seen.
    ///     let reduction = ToolReduction::recommended(store.clone()).build()?.session("chat-42");
    ///     let mut messages = history.clone();
    ///     reduction.reduce(Plain, &mut messages).await?;
    ///     sent.push(messages);
    /// }
    /// assert_ne!(sent[0], history);
    /// assert_eq!(sent[0], sent[1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`OffloadError`] if the store failed and `on_offload_error` is `Fail`. The messages are then
    /// unchanged.
    pub async fn reduce<F: Format>(
        &self,
        format: F,
        messages: &mut [F::Message],
    ) -> Result<Report, OffloadError> {
        let mut conversation = Messages::new(format, messages);
        self.reduce_turn(&mut Turn::new(&mut conversation)).await
    }

    /// Makes a session for a conversation that has no name, from its beginning: `<root>/<tenant>/<name>/`.
    /// Every process gives a history the same name, whatever was changed before its first call: system
    /// messages, reminders, cache marks. A fork goes on with what was decided before it. A
    /// compacted history has another beginning, and so another name, but its reader still reads
    /// everything that its tenant stored. Before the first call there is nothing to decide, and the name is `none`.
    ///
    /// You choose `tenant`: a name for everyone who may read all of these conversations, such as a
    /// digest of a credential. `secret` is the same in every process, and known to nobody who may not read the store: others
    /// could compute the name of a conversation whose first call they know. Keep the session, by its [`prefix`](Self::prefix), as long as the conversation goes
    /// on: a new one reads all records again.
    ///
    /// ```
    /// # use offcut::{ToolCall, ToolReduction, backend::Memory, format::{Message, Messages, Plain}};
    /// # let reduction = ToolReduction::recommended(Memory::new()).build()?;
    /// let call = ToolCall::new("call_8Zk1v0QbWm3d", "grep", "{}");
    /// let mut history = [Message::user("go"), Message::calls(vec![call])];
    /// let session = reduction.conversation("team-7", b"a secret", &Messages::new(Plain, &mut history));
    /// assert!(session.prefix().starts_with("team-7/c-"));
    /// # Ok::<(), offcut::BuildError>(())
    /// ```
    #[must_use]
    pub fn conversation(
        &self,
        tenant: &str,
        secret: &[u8],
        conversation: &dyn Conversation,
    ) -> Self {
        let name = history::beginning(secret, conversation);
        let name = name.as_deref().unwrap_or("none");
        let roots = self.session.roots.conversation(tenant, name);
        Self::over(self.session.at(roots))
    }

    /// Like [`reduce`](Self::reduce), with everything that is known about the request.
    /// [`last_usage`](Turn::last_usage) is not looked at, since no request carries it.
    ///
    /// # Errors
    ///
    /// The same as for [`reduce`](Self::reduce).
    pub async fn reduce_turn(&self, turn: &mut Turn<'_>) -> Result<Report, OffloadError> {
        let report = history::reduce(&self.session, &self.history, turn).await?;
        Ok(self.after_pass(turn, report).await)
    }

    /// Like [`reduce`](Self::reduce), over a request's body as text, in the format that its messages
    /// look like. Every byte that is not replaced stays. A body in which no format is recognized, or
    /// that has no messages, stays whole.
    ///
    /// ```
    /// # use offcut::{ToolReduction, backend::Memory, format::RequestBody};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let reduction = ToolReduction::recommended(Memory::named("demo")?).build()?;
    /// let long = "a line\\n".repeat(2_000);
    /// let text = format!(r#"{{"model": "m", "messages": [{{"role": "tool", "tool_call_id": "call_1", "content": "{long}"}} ]}}"#);
    /// let mut body = RequestBody::parse(text)?;
    /// let report = reduction.reduce_body(&mut body).await?;
    /// assert!(body.to_string().starts_with(r#"{"model": "m", "messages": [{"role": "tool", "tool_call_id": "call_1", "content": "[offcut/1 "#));
    /// assert_eq!(report.decisions[0].locations[0].as_str(), "memory://demo/trunc/call_1");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The same as for [`reduce`](Self::reduce). The body is then unchanged.
    pub async fn reduce_body(&self, body: &mut RequestBody) -> Result<Report, OffloadError> {
        let Some(format) = body.format() else {
            return Ok(Report::default());
        };
        let (tools, format) = (body.tools(), Spelled(format));
        let mut conversation = Messages::new(&format, body.messages_mut());
        let mut turn = Turn {
            tools: &tools,
            ..Turn::new(&mut conversation)
        };
        self.reduce_turn(&mut turn).await
    }
}
