//! The reducers under test: this crate, and some that are broken on purpose.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use offcut::agent::Tool;
use offcut::backend::{ErrorKind, Location};
use offcut::format::Messages;
use offcut::{Part, Report, ToolCall, ToolOutput, ToolReduction};
use offcut_testkit::Fault;

use super::wire::Wire;
use super::world::World;

/// The shown form of a result.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) parts: Vec<Part>,
    pub(crate) is_error: bool,
    pub(crate) report: Option<Report>,
}

/// A reduction as the laws see it. Errors are texts, because no law is about them.
pub(crate) trait Subject<F: Wire>: Sized {
    async fn truncate(&self, call: &ToolCall, output: ToolOutput) -> Result<Shown, String>;

    async fn clear(&self, messages: &mut Vec<F::Message>) -> Result<Option<Report>, String>;

    /// Reads the content at a location, which is written as in hints.
    async fn read(&self, location: &str) -> Option<Bytes>;

    /// Lists everything stored, by name.
    async fn stored(&self) -> BTreeMap<String, Bytes>;

    /// Number of writes so far, including those that failed.
    fn writes(&self) -> u64;

    fn count(&self, message: &F::Message) -> u64;

    /// Opens the same store in another process.
    fn restarted(&self) -> Self;

    /// Makes the `nth` write from now on fail, after it took effect if `is_done`.
    fn fault(&self, nth: u64, is_done: bool);

    /// Cancels the planned fault.
    fn heal(&self);

    /// Tells whether the settings allow content to be lost.
    fn may_lose(&self) -> bool {
        false
    }

    /// Tells whether results of the tool can be truncated.
    fn truncates(&self, tool: &str) -> bool {
        let _ = tool;
        true
    }

    /// Answers a call of the reader.
    async fn page(&self, call: &ToolCall) -> Option<ToolOutput> {
        let _ = call;
        None
    }

    /// Checks the stored content in ways that only this subject can.
    fn check_places(&self) -> Result<(), super::Violation> {
        Ok(())
    }
}

/// This crate.
pub(crate) struct OffcutSubject {
    pub(crate) world: Arc<World>,
    pub(crate) reduction: ToolReduction,
}

impl OffcutSubject {
    pub(crate) fn new(world: World) -> Self {
        Self {
            reduction: world.reduction(),
            world: Arc::new(world),
        }
    }
}

impl<F: Wire> Subject<F> for OffcutSubject {
    async fn truncate(&self, call: &ToolCall, output: ToolOutput) -> Result<Shown, String> {
        let shown = self
            .reduction
            .truncate(call, output)
            .await
            .map_err(|error| error.to_string())?;
        let (is_error, report) = (shown.is_error, Some(shown.report.clone()));
        Ok(Shown {
            parts: shown.into(),
            is_error,
            report,
        })
    }

    async fn clear(&self, messages: &mut Vec<F::Message>) -> Result<Option<Report>, String> {
        let format = F::default();
        let report = self.reduction.clear(&format, messages).await;
        let report = report.map_err(|error| error.to_string())?;
        Ok(Some(report))
    }

    async fn read(&self, location: &str) -> Option<Bytes> {
        self.reduction
            .read_original(&Location::new(location))
            .await?
            .ok()
    }

    async fn stored(&self) -> BTreeMap<String, Bytes> {
        self.world.stored().await
    }

    fn writes(&self) -> u64 {
        self.world
            .stores
            .iter()
            .map(|store| store.writes() + store.chunks())
            .sum()
    }

    fn count(&self, message: &F::Message) -> u64 {
        self.reduction
            .count_tokens(&Messages::new(&F::default(), &mut [message.clone()]), &[])
    }

    fn restarted(&self) -> Self {
        Self {
            reduction: self.world.reduction(),
            world: self.world.clone(),
        }
    }

    fn fault(&self, nth: u64, is_done: bool) {
        for store in &self.world.stores {
            let fault = if is_done {
                Fault::ApplyThenFail
            } else {
                Fault::Fail(ErrorKind::Full)
            };
            store.fault_on_write(store.writes() + nth, fault);
        }
        self.world.home.fault(nth, is_done);
    }

    fn heal(&self) {
        for store in &self.world.stores {
            store.heal();
        }
        self.world.home.heal();
    }

    fn may_lose(&self) -> bool {
        self.world.setup.mode == offcut::OnOffloadError::PreviewOnly
    }

    fn truncates(&self, tool: &str) -> bool {
        !(tool == "shell" && self.world.setup.tools.shell_whole)
    }

    async fn page(&self, call: &ToolCall) -> Option<ToolOutput> {
        Some(self.reduction.read_file_tool().call(call).await.into())
    }

    fn check_places(&self) -> Result<(), super::Violation> {
        super::names::check_paths(&self.world)
    }
}
