//! The replacement of a text, and its sizes if it is a gain.

use super::ledger::Put;
use super::{Place, cleared_arguments};
use crate::content::Part;
use crate::report::{Decision, Reason};
use crate::session::Session;

pub(super) fn replacement(place: Place, text: String) -> Put {
    match place {
        Place::Result { .. } => Put::Parts(vec![Part::Text(text)]),
        Place::Arguments { .. } => Put::Arguments(cleared_arguments(&text)),
    }
}

/// The bytes and tokens of what is put there; it has to be fewer bytes and no more tokens than what
/// stands there.
pub(super) fn size(
    session: &Session,
    replacement: &Put,
    decision: &Decision,
) -> Result<(u64, u64), Reason> {
    let text = match replacement {
        Put::Parts(parts) => match &parts[..] {
            [Part::Text(text)] => text,
            _ => return Err(Reason::NoGain),
        },
        Put::Arguments(text) => text,
    };
    let (bytes, tokens) = (text.len() as u64, session.meter().text(text));
    if bytes >= decision.bytes.before || tokens > decision.tokens.map_or(0, |change| change.before)
    {
        return Err(Reason::NoGain);
    }
    Ok((bytes, tokens))
}
