//! Servers of `serve` and `wrap`: their settings, their journal, and the file that says they run.

mod journal;
mod running;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use crate::gateway::{Gateway, GatewayError, ServeSettings};
use offcut::Settings;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

pub(crate) use journal::Journal;
pub(crate) use running::Running;

use crate::failure::{Failure, OrFail as _, chain};
use crate::replay::Prices;
use crate::{args, settings};

/// The settings of a server and of its reduction, and the name of the file that they are from.
pub(crate) fn prepared(args: &args::OfUser) -> Result<(ServeSettings, Settings, String), Failure> {
    let (reduction, origin) = settings::named(args, settings::user_store)?;
    Ok((table(&origin)?, reduction, origin))
}

/// A runtime that serves on all cores.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    runtime.or_fail("the async runtime can't be started")
}

/// The address at which this machine reaches a server that listens on `address`.
pub(crate) fn own(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        other => other,
    };
    SocketAddr::new(ip, address.port())
}

/// The card of a server's page.
pub(crate) fn card(prices: &Prices) -> Value {
    let money = prices.money();
    let currency = money.map(|[currency, ..]| currency);
    let source = money.map(|[_, source, date]| format!("{source}, {date}"));
    json!({"cached": prices.cached, "fresh": prices.fresh, "currency": currency, "source": source})
}

/// The table `[serve]` of a settings file; the defaults for a built-in policy.
pub(crate) fn table(origin: &str) -> Result<ServeSettings, Failure> {
    let path = Path::new(origin);
    let text = offcut::config::read_file(path).ok();
    let Some(text) = text.and_then(|text| String::from_utf8(text).ok()) else {
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

/// Checks the table `[serve]` of a settings file. Returns what a server would say at its start, if the table sets
/// anything.
pub(crate) fn check(origin: &str, reduction: &Settings) -> Result<Vec<String>, Failure> {
    let serve = table(origin)?;
    Gateway::check(&serve).map_err(|error| unusable(origin, &error))?;
    Ok(match serve == ServeSettings::default() {
        true => Vec::new(),
        false => Gateway::notes(&serve, reduction),
    })
}

/// A server that can't be set up.
pub(crate) fn unusable(origin: &str, error: &GatewayError) -> Failure {
    let advice = match error {
        GatewayError::Reduction(_) => settings::HELP,
        _ => "docs/serve.md has every option of the table [serve]",
    };
    Failure::usage(format!("{origin}: {}", chain(error)), advice)
}
