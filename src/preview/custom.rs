//! Previews by custom code.

use crate::preview::Preview;

use crate::guard::{Hook, guard};

/// A text to preview, with everything that the preview may depend on.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PreviewOf<'t> {
    /// The text; replacement characters stand for invalid bytes.
    pub text: &'t str,
    /// The tool that returned it.
    pub tool: &'t str,
    /// The call's arguments as the model wrote them, usually JSON. Empty if the conversation lacks
    /// the call.
    pub arguments: &'t str,
    /// Maximum length of the preview in bytes.
    pub budget: usize,
}

/// A user's function that makes previews.
pub(crate) type CustomPreview = Hook<dyn Fn(&PreviewOf<'_>) -> String + Send + Sync>;

/// Makes previews of the results of one call.
#[derive(Clone, Debug)]
pub(crate) struct Previewer {
    named: Preview,
    custom: Option<Box<(CustomPreview, String, String)>>,
}

impl Previewer {
    pub(crate) fn new(
        named: Preview,
        custom: Option<&CustomPreview>,
        tool: &str,
        arguments: impl FnOnce() -> String,
    ) -> Self {
        Self {
            named,
            custom: custom.map(|custom| Box::new((custom.clone(), tool.to_owned(), arguments()))),
        }
    }

    /// Returns the preview of `text`, which is of `stored` bytes, and the error of the custom code, if any. After an
    /// error, the preview is by the built-in method.
    pub(crate) fn show(
        &self,
        text: &str,
        stored: usize,
        budget: usize,
    ) -> (String, Option<String>) {
        match self.own(text, budget) {
            Some(Ok(shown)) => (shown, None),
            failed => {
                let shown = self.named.show_decoded(text, stored, budget);
                (shown, failed.and_then(Result::err))
            }
        }
    }

    /// Returns the custom code's preview of `text`; `None` if there is no custom code.
    pub(crate) fn own(&self, text: &str, budget: usize) -> Option<Result<String, String>> {
        let (custom, tool, arguments) = &**self.custom.as_ref()?;
        let shown = guard("the preview", || {
            Ok(custom(&PreviewOf {
                text,
                tool,
                arguments,
                budget,
            }))
        });
        let shown = shown.map_err(|error| error.to_string());
        Some(shown.and_then(|shown| match shown.len() {
            bytes if bytes <= budget => Ok(shown),
            bytes => Err(format!(
                "the preview has {bytes} bytes, over its limit of {budget}"
            )),
        }))
    }
}
