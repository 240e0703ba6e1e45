//! A planted secret, and where it may leak: errors, and what is logged.

use std::error::Error;
use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// Whatever holds this is a leak.
const SECRET: &str = "pLanTeD";

/// Everything that is emitted, of every level.
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
    /// Takes all that this process emits from now on. Once in a process.
    pub(crate) fn install() -> Self {
        let log = Self::default();
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(log.clone()))
            .unwrap();
        log
    }
}

/// All that an error says, in every way that it is said.
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
