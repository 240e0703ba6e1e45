//! A planted secret, and the places where it may leak: errors and logs.

use std::error::Error;
use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// Any text that contains this is a leak.
const SECRET: &str = "pLanTeD";

/// Captures every event, of every level.
#[derive(Clone, Default)]
pub(crate) struct Log(pub(crate) Arc<Mutex<String>>);

impl Visit for Log {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        writeln!(self.0.lock().unwrap(), "{}={value:?}", field.name()).unwrap();
    }
}

impl<S: Subscriber> Layer<S> for Log {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        event.record(&mut self.clone());
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        attributes.record(&mut self.clone());
    }

    fn on_record(&self, _: &Id, values: &Record<'_>, _: Context<'_, S>) {
        values.record(&mut self.clone());
    }
}

impl Log {
    /// Captures every event of this process from now on. Call once in a process.
    pub(crate) fn install() -> Self {
        let log = Self::default();
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(log.clone()))
            .unwrap();
        log
    }
}

/// The text of an error in all its forms.
pub(crate) fn said(error: &dyn Error) -> String {
    let mut text = format!("{error}\n{error:?}\n{error:#?}\n");
    let mut next = error.source();
    while let Some(error) = next {
        writeln!(text, "{error}\n{error:?}").unwrap();
        next = error.source();
    }
    text
}

#[track_caller]
pub(crate) fn holds_no_secret(what: &str, text: &str) {
    assert!(!text.contains(SECRET), "{what}: {text}");
    assert!(!text.is_empty(), "{what} says nothing");
}
