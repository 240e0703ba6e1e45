//! Turns settings, backends and callbacks into a reduction.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use crate::backend::layout::Phase;
use futures_util::future::BoxFuture;

use super::ToolReduction;
use super::checks::{check_locations, check_names, check_opened, policies, roots};
use crate::backend::{Backend, open};
use crate::config::{
    BuildError, Hooks, OnOffloadError, Policy, PreviewLength, Settings, StoredNames, TokenCounter,
    ToolPolicy, options, see,
};
use crate::content::ToolCall;
use crate::format::Conversation;
use crate::guard::Hook;
use crate::handler::{ClearHandler, GenId, HandlerError, PostProcess, TruncHandler};
use crate::hint::{Language, Prose, Sentence};
use crate::preview::{Preview, PreviewOf};
use crate::report::Report;
use crate::session::{OnReport, Session, Shared};
use crate::tokens::{CountTokens, Meter};

/// Sets up a [`ToolReduction`]. Every setter overrides earlier ones; [`build`](Self::build) checks
/// everything.
#[derive(Clone, Debug, Default)]
#[must_use = "nothing happens until `build`"]
pub struct Builder {
    settings: Settings,
    hooks: Hooks,
    /// The options that were set one by one.
    set: HashSet<&'static str>,
    /// The threshold that came with the settings.
    given_threshold: u64,
    /// Stores that the settings name but that could not be opened, by tool; `None` is the one for all tools.
    not_opened: BTreeMap<Option<String>, BuildError>,
    counter: Option<Hook<dyn CountTokens>>,
    gen_ids: [Option<GenId>; 2],
    post_process: Option<PostProcess>,
    on_report: Option<OnReport>,
}

impl ToolReduction {
    /// Returns a builder with the documented defaults, see [`Settings`].
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Returns a builder with the settings that measured best, see [`Settings::recommended`].
    pub fn recommended(backend: impl Backend) -> Builder {
        Builder::default()
            .settings(Settings::recommended(), open)
            .backend(backend)
    }
}

impl Builder {
    /// Replaces all settings at once. Keeps only callbacks, your own counter and, if the settings
    /// name no backend, the backend. `open` opens the backends that the settings name, each URL
    /// once: [`backend::open`] opens `memory:` and directories, `Objects::open` of
    /// `offcut-object-store` opens buckets. If that fails, so does [`build`](Self::build).
    ///
    /// ```
    /// use offcut::{Settings, ToolReduction, backend};
    ///
    /// let settings = Settings::from_json(r#"{"backend": "memory:all", "tool_config": {"grep": {"backend": "memory:grep"}}}"#)?;
    /// let reduction = ToolReduction::builder().settings(settings, backend::open).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// [`backend::open`]: crate::backend::open
    pub fn settings<B, E>(
        mut self,
        settings: Settings,
        mut open: impl FnMut(&str) -> Result<B, E>,
    ) -> Self
    where
        B: Backend,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.settings = settings;
        self.set.clear();
        self.given_threshold = self.settings.max_tokens_for_clear;
        self.not_opened.clear();
        let mut places = vec![(None, &self.settings.backend_url, &mut self.hooks.backend)];
        for (tool, policy) in &mut self.settings.tool_config {
            let backend = &mut policy.hooks.backend;
            if backend.is_none() {
                places.push((Some(tool.clone()), &policy.backend_url, backend));
            }
        }
        let mut tried = HashMap::new();
        for (tool, url, backend) in places {
            let Some(url) = url.clone() else { continue };
            let opened = tried
                .entry(url.clone())
                .or_insert_with(|| match open(url.as_str()) {
                    Ok(backend) => Ok(Hook::<dyn Backend>(Arc::new(backend))),
                    Err(error) => Err(Arc::from(error.into())),
                });
            match opened {
                Ok(opened) => *backend = Some(opened.clone()),
                Err(cause) => {
                    let (key, cause) = (tool.clone(), Arc::clone(cause));
                    self.not_opened
                        .insert(key, BuildError::Open { tool, url, cause });
                }
            }
        }
        self
    }

    /// Sets the store for content. Required unless truncation is skipped; without one, cleared
    /// content is lost.
    pub fn backend(mut self, backend: impl Backend) -> Self {
        self.hooks.backend = Some(Hook(Arc::new(backend)));
        self.not_opened.remove(&None);
        self
    }

    /// Sets a handler that decides about each result when it returns, instead of the limit: see
    /// [`TruncHandler`]. A tool's own handler takes precedence.
    pub fn trunc_handler(mut self, handler: impl TruncHandler) -> Self {
        self.hooks.trunc_handler = Some(Hook(Arc::new(handler)));
        self
    }

    /// Sets a handler that decides about each old result of a pass, instead of hints: see
    /// [`ClearHandler`]. A tool's own handler takes precedence.
    pub fn clear_handler(mut self, handler: impl ClearHandler) -> Self {
        self.hooks.clear_handler = Some(Hook(Arc::new(handler)));
        self
    }

    /// Counts tokens with your own counter, instead of [`Settings::token_counter`].
    pub fn count_tokens_with(mut self, counter: impl CountTokens) -> Self {
        self.counter = Some(Hook(Arc::new(counter)));
        self
    }

    /// Calls `observer` with every report of a truncation or a pass, once its changes are made.
    pub fn on_report(mut self, observer: impl Fn(&Report) + Send + Sync + 'static) -> Self {
        self.on_report = Some(Hook(Arc::new(observer)));
        self
    }

    /// Chooses the id under which a truncation stores, `<root>/trunc/<id>`, instead of the call's
    /// id: one segment of up to 200 ASCII letters, digits, `.`, `_` and `-`. If the callback fails,
    /// panics or returns another kind of name, the call's id is used and the report says so. If the
    /// name is taken by other content, a digest is appended. The callback must be pure.
    ///
    /// ```
    /// # use offcut::{backend::Memory, ToolCall, ToolReduction};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let reduction = ToolReduction::recommended(Memory::named("demo")?)
    ///     .trunc_id_with(|call| Ok(format!("{}-{}", call.name, call.id)))
    ///     .build()?;
    /// let shown = reduction.truncate(&ToolCall::new("call_1", "grep", "{}"), "x".repeat(10_000)).await?;
    /// assert_eq!(shown.report.decisions[0].locations[0].as_str(), "memory://demo/trunc/grep-call_1");
    /// # Ok(()) }
    /// ```
    pub fn trunc_id_with(
        mut self,
        name: impl Fn(&ToolCall) -> Result<String, HandlerError> + Send + Sync + 'static,
    ) -> Self {
        self.gen_ids[Phase::Truncate as usize] = Some(Hook(Arc::new(name)));
        self
    }

    /// Like [`trunc_id_with`](Self::trunc_id_with), for content that a clear pass stores:
    /// `<root>/clear/<id>`.
    pub fn clear_id_with(
        mut self,
        name: impl Fn(&ToolCall) -> Result<String, HandlerError> + Send + Sync + 'static,
    ) -> Self {
        self.gen_ids[Phase::Clear as usize] = Some(Hook(Arc::new(name)));
        self
    }

    /// Runs `callback` after each pass that changed something, with the changed conversation and the report. If it fails or panics, the report says so and the changes of
    /// the pass remain. There is no timeout.
    ///
    /// ```
    /// # use offcut::{backend::Memory, ToolReduction};
    /// # async fn save(_: usize, _: usize) -> Result<(), std::io::Error> { Ok(()) }
    /// let builder = ToolReduction::recommended(Memory::new()).clear_post_process(|conversation, report| {
    ///     Box::pin(async move {
    ///         save(report.cleared_tool_uses(), conversation.len()).await?;
    ///         Ok(())
    ///     })
    /// });
    /// # let _ = builder;
    /// ```
    pub fn clear_post_process<C>(mut self, callback: C) -> Self
    where
        C: for<'a> Fn(
                &'a mut dyn Conversation,
                &'a Report,
            ) -> BoxFuture<'a, Result<(), HandlerError>>
            + Send
            + Sync
            + 'static,
    {
        self.post_process = Some(Hook(Arc::new(callback)));
        self
    }

    /// Overrides options for the tool `name`.
    pub fn tool(mut self, name: impl Into<String>, policy: ToolPolicy) -> Self {
        let name = name.into();
        self.not_opened.remove(&Some(name.clone()));
        self.settings.tool_config.insert(name, policy);
        self
    }

    /// Previews texts with your own code, instead of [`Settings::preview`]. It gets the text, the
    /// tool, its arguments and the number of bytes for the preview. It must be pure, as it is
    /// called more than once. If it panics or returns too much, the named preview is shown and the
    /// report says so. It sees whole texts: streams are held for it up to 64 MiB. Longer texts, and
    /// texts that are stored as one, get the named preview.
    ///
    /// ```
    /// # use offcut::{backend::Memory, ToolCall, ToolReduction};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let reduction = ToolReduction::recommended(Memory::named("demo")?)
    ///     .preview_with(|of| of.text.lines().take(1).map(|line| format!("{}: {line}", of.tool)).collect())
    ///     .build()?;
    /// let shown = reduction.truncate(&ToolCall::new("call_1", "query", "{}"), "812 rows\n".repeat(5_000)).await?;
    /// assert!(shown.text().ends_with("\nquery: 812 rows"));
    /// # Ok(()) }
    /// ```
    pub fn preview_with(
        mut self,
        show: impl Fn(&PreviewOf<'_>) -> String + Send + Sync + 'static,
    ) -> Self {
        self.hooks.preview = Some(Hook(Arc::new(show)));
        self
    }

    /// See [`Settings::read_file_tool_name`].
    pub fn read_file_tool_name<'n>(mut self, name: impl Into<Option<&'n str>>) -> Self {
        self.settings.read_file_tool_name = name.into().map(str::to_owned);
        self
    }

    /// See [`Settings::trunc_exclude_tools`].
    pub fn trunc_exclude_tools<S: Into<String>>(
        mut self,
        tools: impl IntoIterator<Item = S>,
    ) -> Self {
        self.settings.trunc_exclude_tools = tools.into_iter().map(Into::into).collect();
        self
    }

    /// See [`Settings::clear_exclude_tools`].
    pub fn clear_exclude_tools<S: Into<String>>(
        mut self,
        tools: impl IntoIterator<Item = S>,
    ) -> Self {
        self.settings.clear_exclude_tools = tools.into_iter().map(Into::into).collect();
        self
    }

    /// Replaces a sentence of hints in one language: see [`Settings::templates`].
    pub fn template(
        mut self,
        language: Language,
        sentence: Sentence,
        template: impl Into<String>,
    ) -> Self {
        self.settings
            .templates
            .entry(language)
            .or_default()
            .insert(sentence, template.into());
        self
    }

    /// Checks the configuration and makes the reduction.
    ///
    /// # Errors
    ///
    /// A [`BuildError`] that names the field and says what to do.
    pub fn build(self) -> Result<ToolReduction, BuildError> {
        if let Some(failed) = self.not_opened.into_values().next() {
            return Err(failed);
        }
        let mut settings = self.settings;
        settings.settle(self.given_threshold, |option| self.set.contains(option));
        let counter = match self.counter {
            Some(Hook(counter)) => counter,
            None => settings.token_counter.build()?,
        };
        let roots = roots(&settings)?;
        check_names(&settings)?;
        check_opened(&settings)?;
        let mut prose = Prose::of(settings.language);
        for (language, templates) in &settings.templates {
            let own = Prose::with(*language, templates)?;
            if *language == settings.language {
                prose = own;
            }
        }
        let (default, policies) = policies(&settings, &self.hooks, &prose, &self.gen_ids)?;
        let all = || std::iter::once(&default).chain(policies.values());
        check_locations(all(), &roots)?;
        if settings.max_tokens_for_clear == 0 && all().any(Policy::clears) {
            return Err(BuildError::ZeroThreshold);
        }
        settings.preview_length = default.preview_length;
        let shared = Shared {
            settings,
            prose,
            default,
            policies,
            gen_ids: self.gen_ids,
            post_process: self.post_process,
            on_report: self.on_report,
            marks: Arc::default(),
        };
        Ok(ToolReduction::over(Session {
            shared: Arc::new(shared),
            roots,
            meter: Meter::new(counter),
        }))
    }
}

/// Declares the setters of options that are plain data.
macro_rules! setters {
    ($(
        $(#[$meta:meta])*
        $option:ident: $type:ty = $default:expr
            $(, set($argument:ty) $(in place of $($code:ident).+)?)?
            $(, tool($own_argument:ty): $own:ty $(, in place of $($own_code:ident).+)? $(, read by $read:literal)?)?
            $(, elsewhere($($name:literal),*))?;
    )*) => {
        impl Builder {
            $($(
                #[doc = see!($option)]
                pub fn $option(mut self, $option: $argument) -> Self {
                    self.settings.$option = $option.into();
                    self.set.insert(stringify!($option));
                    $(self.$($code).+ = None;)?
                    self
                }
            )?)*
        }
    };
}

options!(setters);
