//! Previews that a user's code makes.

use std::fmt;
use std::sync::Arc;

use super::Preview;
use crate::guard::guard;

/// A text to be previewed, and all that a preview may depend on.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PreviewOf<'t> {
    /// The text; invalid bytes are replacement characters.
    pub text: &'t str,
    /// The tool that returned it.
    pub tool: &'t str,
    /// What the tool was asked, as the model wrote it: JSON, most of the time. Empty where a
    /// conversation lacks the call.
    pub arguments: &'t str,
    /// The bytes that the preview may take.
    pub budget: usize,
}

/// Makes previews.
#[derive(Clone)]
pub(crate) struct Custom(Arc<dyn Fn(&PreviewOf<'_>) -> String + Send + Sync>);

impl Custom {
    pub(crate) fn new(show: impl Fn(&PreviewOf<'_>) -> String + Send + Sync + 'static) -> Self {
        Self(Arc::new(show))
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Custom(..)")
    }
}

/// How the results of one call are previewed.
#[derive(Clone, Debug)]
pub(crate) struct Previewer {
    named: Preview,
    custom: Option<Box<(Custom, String, String)>>,
}

impl Previewer {
    pub(crate) fn new(
        named: Preview,
        custom: Option<&Custom>,
        tool: &str,
        arguments: impl FnOnce() -> String,
    ) -> Self {
        Self {
            named,
            custom: custom.map(|custom| Box::new((custom.clone(), tool.to_owned(), arguments()))),
        }
    }

    /// What is shown of `text`, and what the user's code did wrong, if it was to say so: then the
    /// named preview is shown.
    pub(crate) fn show(&self, text: &str, budget: usize) -> (String, Option<String>) {
        match self.own(text, budget) {
            Some(Ok(shown)) => (shown, None),
            Some(Err(problem)) => (self.named.show(text, budget), Some(problem)),
            None => (self.named.show(text, budget), None),
        }
    }

    /// What the user's code shows of `text`; `None` where there is none.
    pub(crate) fn own(&self, text: &str, budget: usize) -> Option<Result<String, String>> {
        let (custom, tool, arguments) = &**self.custom.as_ref()?;
        let shown = guard("the preview", || {
            Ok((custom.0)(&PreviewOf {
                text,
                tool,
                arguments,
                budget,
            }))
        });
        Some(match shown {
            Ok(shown) if shown.len() <= budget => Ok(shown),
            Ok(shown) => Err(format!(
                "the preview took {} bytes, and may take {budget}",
                shown.len()
            )),
            Err(error) => Err(error.to_string()),
        })
    }
}
