//! The clause about the call that a result answers, checked over all messages together.

use std::collections::BTreeSet;

use offcut::format::{Format, Piece};
use offcut::rounds::pair_results;

/// Checks that the pieces show which call a result answers.
pub(super) fn results_have_calls<F: Format>(format: &F, messages: &[F::Message]) {
    let (mut calls, mut results) = (BTreeSet::new(), BTreeSet::new());
    let (mut has_named_result, mut has_parallel_calls) = (false, false);
    for message in messages {
        let mut count = 0;
        format.visit(message, &mut |piece| match piece {
            Piece::Call(call) => {
                count += 1;
                calls.insert(call.id.to_owned());
            }
            Piece::Result(head) => {
                results.insert(head.id.to_owned());
                has_named_result |= head.name.is_some_and(|name| !name.is_empty());
            }
            _ => {}
        });
        // Order alone is a guess then.
        has_parallel_calls |= count > 1;
    }
    let has_ids = calls.union(&results).any(|id| !id.is_empty());
    let do_ids_agree = calls.intersection(&results).any(|id| !id.is_empty());
    let is_paired = pair_results(format, messages)
        .iter()
        .any(|result| result.call.is_some());
    if has_ids && !do_ids_agree {
        fail_clause(
            "it shows ids, and no result among the messages has the id of a call; show both alike, numbers as the same text",
        );
    }
    if !has_ids && !has_named_result && has_parallel_calls {
        fail_clause(
            "it shows no ids and no names of results, so with several calls in a message nothing says which one a result answers; \
             show `Call::id` and `ResultHead::id`, numbers as text, or `ResultHead::name` where there are no ids",
        );
    }
    if !is_paired {
        fail_clause(
            "no result among the messages answers a call before it; add a call with its result, and show the same id of both",
        );
    }
}

#[track_caller]
fn fail_clause(what: &str) -> ! {
    panic!(
        "the format breaks the contract, clause `a result leads to its call`, with the messages together: {what}"
    )
}
