//! The module `offcut._offcut` of Python.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use offcut::Settings;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use tokio::runtime::Runtime;

use crate::engine::{self, Engine, EngineError, Given};
use crate::parts;

create_exception!(
    offcut,
    OffcutError,
    PyException,
    "Offcut can't do what it was asked to."
);
create_exception!(
    offcut,
    SettingsError,
    OffcutError,
    "The settings are wrong, or name a store that can't be opened."
);
create_exception!(
    offcut,
    StoreError,
    OffcutError,
    "The store failed; nothing was changed."
);

impl From<EngineError> for PyErr {
    fn from(failure: EngineError) -> Self {
        match failure {
            EngineError::Settings(text) => SettingsError::new_err(text),
            EngineError::Argument(text) => PyValueError::new_err(text),
            EngineError::Store(text) => StoreError::new_err(text),
        }
    }
}

/// Number of calls that are in here. A fork waits until there are none, so that no lock is held in the child by a
/// thread that it does not have.
static INSIDE: AtomicUsize = AtomicUsize::new(0);
/// Number of threads that are forking.
static FORKING: AtomicUsize = AtomicUsize::new(0);
/// The process's own runtime, and the process.
static RUNTIME: Mutex<Option<(u32, &'static Runtime)>> = Mutex::new(None);

struct Inside;

impl Inside {
    fn enter() -> Self {
        loop {
            INSIDE.fetch_add(1, Ordering::SeqCst);
            if FORKING.load(Ordering::SeqCst) == 0 {
                return Self;
            }
            INSIDE.fetch_sub(1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Before `os.fork`.
#[pyfunction]
fn before_fork(py: Python<'_>) {
    FORKING.fetch_add(1, Ordering::SeqCst);
    py.detach(|| {
        while INSIDE.load(Ordering::SeqCst) > 0 {
            std::thread::sleep(Duration::from_micros(200));
        }
    });
}

/// After `os.fork`, in both processes.
#[pyfunction]
fn after_fork(is_child: bool) {
    if is_child {
        // Its other threads are not there.
        FORKING.store(0, Ordering::SeqCst);
    } else {
        FORKING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Applies updates to a declared state.
#[pyfunction]
#[pyo3(signature = (schema, state, updates))]
fn apply(py: Python<'_>, schema: &str, state: Option<&str>, updates: &str) -> PyResult<String> {
    py.detach(|| engine::apply(schema, state, updates))
        .map_err(EngineError::into)
}

/// Returns true if a list is one of content parts.
#[pyfunction]
fn are_parts(py: Python<'_>, list: &str) -> bool {
    py.detach(|| parts::are_parts(list))
}

fn runtime() -> Result<&'static Runtime, EngineError> {
    let mut runtime = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    match *runtime {
        Some((process, running)) if process == std::process::id() => Ok(running),
        // The threads of the one before are in the parent. It is never dropped: that would wait for them.
        _ => {
            let new = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .thread_name("offcut")
                .enable_all()
                .build();
            let new = new.map_err(|error| {
                EngineError::Store(format!("the system starts no threads for Offcut: {error}"))
            })?;
            let new: &'static Runtime = Box::leak(Box::new(new));
            *runtime = Some((std::process::id(), new));
            Ok(new)
        }
    }
}

/// A reduction: JSON text in, JSON text out. `offcut.Reduction` is made of it.
#[pyclass(frozen, module = "offcut._offcut")]
struct Core {
    settings: Settings,
    sessions: Vec<String>,
    /// The engine, and the process that opened it.
    engine: Mutex<(u32, Engine)>,
}

impl Drop for Core {
    fn drop(&mut self) {
        let kept = self
            .engine
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if kept.0 != std::process::id() {
            // Its connections and threads are the parent's: they stay as they are.
            std::mem::forget(kept.1.clone());
        }
    }
}

impl Core {
    fn opened(settings: &Settings, sessions: &[String]) -> Result<(u32, Engine), EngineError> {
        // Clients of buckets start tasks.
        let _runtime = runtime()?.enter();
        let engine = Engine::open(settings.clone())?;
        let engine = sessions
            .iter()
            .try_fold(engine, |engine, id| engine.session(id))?;
        Ok((std::process::id(), engine))
    }

    /// The engine. After a fork, the stores are opened anew.
    fn engine(&self) -> Result<Engine, EngineError> {
        let mut kept = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.0 != std::process::id() {
            if kept.1.is_in_memory() {
                let problem = "a store in memory does not outlive a fork: make the Reduction in the child, or use a directory";
                return Err(EngineError::Store(problem.into()));
            }
            let opened = Self::opened(&self.settings, &self.sessions)?;
            std::mem::forget(std::mem::replace(&mut *kept, opened));
        }
        Ok(kept.1.clone())
    }

    /// Does work without Python's lock.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl AsyncFnOnce(&Engine) -> Result<T, EngineError> + Send,
    ) -> PyResult<T> {
        py.detach(|| {
            let _inside = Inside::enter();
            let engine = self.engine()?;
            runtime()?.block_on(work(&engine))
        })
        .map_err(EngineError::into)
    }
}

#[pymethods]
impl Core {
    #[new]
    fn new(py: Python<'_>, settings: String) -> PyResult<Self> {
        let (settings, engine) = py.detach(|| {
            let _inside = Inside::enter();
            let settings = engine::settings(&settings)?;
            let engine = Self::opened(&settings, &[])?;
            Ok::<_, EngineError>((settings, engine))
        })?;
        Ok(Self {
            settings,
            sessions: Vec::new(),
            engine: Mutex::new(engine),
        })
    }

    fn session(&self, py: Python<'_>, id: String) -> PyResult<Self> {
        let engine = self.run(py, async |engine| engine.session(&id))?;
        Ok(Self {
            settings: self.settings.clone(),
            sessions: self.sessions.iter().cloned().chain([id]).collect(),
            engine: Mutex::new((std::process::id(), engine)),
        })
    }

    fn reader_name(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.run(py, async |engine| {
            Ok(engine.reader_name().map(str::to_owned))
        })
    }

    fn tool(&self, py: Python<'_>, format: &str) -> PyResult<String> {
        self.run(py, async |engine| engine.tool(format))
    }

    /// Answers in JSON; see [`Engine::ask`].
    #[pyo3(signature = (method, format, options, given))]
    fn ask(
        &self,
        py: Python<'_>,
        method: &str,
        format: Option<&str>,
        options: &str,
        given: Option<Given>,
    ) -> PyResult<String> {
        self.run(py, async |engine| {
            engine.ask(method, format, options, given).await
        })
    }

    fn original(&self, py: Python<'_>, location: &str) -> PyResult<Vec<u8>> {
        self.run(py, async |engine| engine.original(location).await)
    }
}

#[pymodule(gil_used = false)]
mod _offcut {
    #[pymodule_export]
    use super::{
        Core, OffcutError, SettingsError, StoreError, after_fork, apply, are_parts, before_fork,
    };
}
