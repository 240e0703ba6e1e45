//! Settings of a server: the settings of commands around agents, and the table `[serve]` beside them.

use std::path::Path;

use offcut::Settings;
use offcut::backend::StoreUrl;
use offcut_agents::layout::Home;
use offcut_gateway::{GatewayError, ServeSettings};

use crate::failure::{Failure, chain};
use crate::settings;

/// The settings of a server and of its reduction, and the name of the file that they are from.
pub(crate) fn prepared(
    config: Option<&str>,
    backend: Option<&StoreUrl>,
) -> Result<(ServeSettings, Settings, String), Failure> {
    let origin = settings::of_user(config, Home::from_env().as_ref());
    let mut reduction = settings::load(&origin)?;
    if backend.is_some() {
        reduction.backend_url = backend.cloned();
    }
    if reduction.backend_url.is_none() {
        reduction.backend_url = Some(settings::user_store()?);
    }
    Ok((table(&origin)?, reduction, origin))
}

/// The table `[serve]` of a settings file; the defaults for a built-in policy.
fn table(origin: &str) -> Result<ServeSettings, Failure> {
    let path = Path::new(origin);
    let Ok(text) = std::fs::read_to_string(path) else {
        return Ok(ServeSettings::default());
    };
    let is_json = path.extension().is_some_and(|ending| ending == "json");
    let settings = if is_json {
        ServeSettings::from_json(&text)
    } else {
        ServeSettings::from_toml(&text)
    };
    settings.map_err(|error| unusable(origin, &error))
}

/// A server that can't be set up.
pub(crate) fn unusable(origin: &str, error: &GatewayError) -> Failure {
    Failure::usage(
        format!("{origin}: {}", chain(error)),
        "docs/serve.md has every option of the table [serve]",
    )
}
