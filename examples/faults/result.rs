//! What every part of the program returns.

use std::error::Error;

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;
