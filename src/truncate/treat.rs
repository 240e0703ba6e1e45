//! The default treatment of a whole result.

use futures_util::StreamExt;

use super::run::Run;
use super::truncated::{Truncated, nothing_done};
use crate::content::{Body, Chunk, Parts, ToolCall, ToolOutput};
use crate::error::Error;
use crate::guard::HandlerError;
use crate::hint::Placement;
use crate::session::Session;

/// The default treatment. `problem` is why there is no other.
pub(super) async fn treat(
    session: &Session,
    call: &ToolCall,
    output: ToolOutput,
    problem: Option<HandlerError>,
) -> Result<Truncated, Error> {
    let ToolOutput { body, is_error } = output;
    let Some(mut run) = Run::new(
        session,
        call,
        Placement::First,
        matches!(body, Body::Stream(_)),
    ) else {
        let (parts, interrupted) = ToolOutput { body, is_error }.into_parts().await;
        return Ok(Truncated {
            parts,
            is_error,
            interrupted,
            report: nothing_done(),
        });
    };
    let (mut parts, mut interrupted) = (Parts::default(), None);
    match body {
        Body::Parts(whole) => {
            for part in whole {
                run.feed(Chunk::Part(part))
                    .await?
                    .into_iter()
                    .for_each(|chunk| parts.push(chunk));
            }
        }
        Body::Stream(mut chunks) => {
            while let Some(chunk) = chunks.next().await {
                match chunk {
                    Ok(chunk) => run
                        .feed(chunk)
                        .await?
                        .into_iter()
                        .for_each(|chunk| parts.push(chunk)),
                    Err(error) => {
                        interrupted = Some(error);
                        break;
                    }
                }
            }
        }
    }
    let (rest, report) = run.finish(interrupted.is_some()).await?;
    rest.into_iter().for_each(|chunk| parts.push(chunk));
    Ok(noted(
        Truncated {
            parts: parts.finish(),
            is_error,
            interrupted,
            report,
        },
        problem,
    ))
}

/// What the default treatment of a result says of a handler that failed.
fn noted(mut truncated: Truncated, problem: Option<HandlerError>) -> Truncated {
    if let (Some(problem), Some(decision)) = (problem, truncated.report.decisions.first_mut()) {
        decision.error.get_or_insert(problem.to_string());
    }
    truncated
}
