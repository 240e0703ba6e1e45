//! Checks that a configuration must pass to become a reduction (O2, L11).

use std::collections::{BTreeMap, HashMap};

use crate::backend::layout::{is_reserved, longest_session};

use crate::backend::content::{Roots, longest_key};
use crate::backend::{Key, Location};
use crate::config::{BuildError, Hooks, Policy, Settings};
use crate::handler::GenId;
use crate::hint::{Draft, Flags, Kind, MAX_NAME, Prose};
use crate::read_back::{MIN_PAGE, overhead};

/// Bounds of `root_dir`, which a session, a phase and a name follow.
const MAX_ROOT_SEGMENTS: usize = 8;
const MAX_ROOT: usize = 400;

pub(super) fn roots(settings: &Settings) -> Result<Roots, BuildError> {
    if settings.root_dir.is_empty() {
        return Ok(Roots::default());
    }
    let root = Key::new(settings.root_dir.as_str()).map_err(|source| BuildError::RootDir {
        source: Some(source),
    })?;
    let mut segments = root.as_str().split('/');
    if segments.clone().count() > MAX_ROOT_SEGMENTS
        || root.as_str().len() > MAX_ROOT
        || segments.any(is_reserved)
    {
        return Err(BuildError::RootDir { source: None });
    }
    Ok(Roots::of(&root))
}

/// Rejects names of tools that are meant as patterns: they would match nothing.
pub(super) fn check_names(settings: &Settings) -> Result<(), BuildError> {
    let (trunc, clear) = (&settings.trunc_exclude_tools, &settings.clear_exclude_tools);
    let is_pattern = |tool: &&String| tool.contains('*');
    let found = [
        ("tool_config", settings.tool_config.keys().find(is_pattern)),
        ("trunc_exclude_tools", trunc.iter().find(is_pattern)),
        ("clear_exclude_tools", clear.iter().find(is_pattern)),
    ];
    for (option, tool) in found {
        if let Some(tool) = tool.cloned() {
            return Err(BuildError::ToolPattern { option, tool });
        }
    }
    Ok(())
}

/// Rejects stores named by policies that were set without settings: nothing opens them.
pub(super) fn check_opened(settings: &Settings) -> Result<(), BuildError> {
    for (tool, policy) in &settings.tool_config {
        if let (Some(url), None) = (&policy.backend_url, &policy.hooks.backend) {
            return Err(BuildError::NotOpened {
                tool: tool.clone(),
                url: url.clone(),
            });
        }
    }
    Ok(())
}

/// Rejects two stores with the same locations: they must be one store.
pub(super) fn check_locations<'p>(
    policies: impl Iterator<Item = &'p Policy>,
    roots: &Roots,
) -> Result<(), BuildError> {
    let probe = longest_key(roots, false);
    let mut known = HashMap::new();
    for store in policies.filter_map(|policy| policy.backend()) {
        let store_id = store.store_id();
        if *known.entry(store.locate(&probe)).or_insert(store_id) != store_id {
            return Err(BuildError::SameLocations);
        }
    }
    Ok(())
}

/// The policy for all tools, and those of the tools that the settings name.
pub(super) fn policies(
    settings: &Settings,
    hooks: &Hooks,
    prose: &Prose,
    gen_ids: &[Option<GenId>],
) -> Result<(Policy, BTreeMap<String, Policy>), BuildError> {
    if settings.read_file_tool_name.as_deref() == Some("") {
        return Err(BuildError::NamelessReader);
    }
    // Sessions made from this reduction must fit too, whatever their id.
    let roots = roots(settings)?.session(&longest_session());
    let policy = |tool: Option<String>| {
        let mut policy = settings.policy_of(tool.as_deref(), hooks);
        for (field, length) in [
            ("preview_length", policy.preview_length),
            ("stub_length", policy.stub_length),
        ] {
            if !length.is_valid() {
                return Err(BuildError::InvalidCurve { field, tool });
            }
        }
        if !policy.truncates() {
            return Ok(policy);
        }
        let Some(backend) = policy.backend() else {
            return Err(BuildError::NoBackend { tool });
        };
        let has_given_ids = gen_ids.iter().any(Option::is_some) || policy.hooks.has_handler();
        let location = backend.locate(&longest_key(&roots, has_given_ids));
        let reader = settings.read_file_tool_name.as_deref();
        let longest_hint = longest_hint(prose, reader, location.clone());
        let limit = policy.max_length_for_trunc;
        let at_least = longest_hint.max(overhead(&location, prose)) + MIN_PAGE;
        if limit < at_least {
            return Err(BuildError::LimitTooSmall {
                tool,
                limit,
                at_least,
            });
        }
        policy.preview_length = policy.preview_length.capped(limit - longest_hint);
        Ok(policy)
    };
    let (default, mut policies) = (policy(None)?, BTreeMap::new());
    let excluded = [&settings.trunc_exclude_tools, &settings.clear_exclude_tools];
    let excluded = excluded.into_iter().flatten();
    for name in settings.tool_config.keys().chain(excluded) {
        policies.insert(name.clone(), policy(Some(name.clone()))?);
    }
    Ok((default, policies))
}

/// Maximum length of a truncation's hint, without its preview.
fn longest_hint(prose: &Prose, reader: Option<&str>, location: Location) -> usize {
    let tool = "x".repeat(MAX_NAME);
    let mut draft = Draft::new(Kind::Truncated, 999_999_999_999, &tool, String::new());
    draft.parts = 999_999;
    draft.hint.lines = Some(999_999_999_999);
    draft.hint.flags = Flags {
        interrupted: true,
        not_utf8: true,
        joined: true,
    };
    let hint = prose.complete(draft, Some(location), reader);
    // The header also holds the preview's length, and a line feed comes before the preview.
    hint.render().len() + "+999999999\n".len()
}
