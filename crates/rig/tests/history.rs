//! C13: rig passes in the originals each turn; the requests equal those with messages changed in
//! place.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use offcut::backend::Memory;
use offcut::{TokenCounter, ToolReduction};
use offcut_rig::{Reduction, RigMessages};
use rig::message::{
    AssistantContent, AssistantMessage, CallId, Message, ToolCall, ToolFunction, ToolName,
    ToolResultContent, UserContent,
};
use serde_json::json;

fn reduction() -> ToolReduction {
    ToolReduction::recommended(Memory::named("t").unwrap())
        .token_counter(TokenCounter::Estimate)
        .max_tokens_for_clear(3_000)
        .clear_tool_inputs(true)
        .clear_tool_inputs_above(0)
        .build()
        .unwrap()
}

/// A turn with two calls, and the message with both results.
fn round(turn: usize) -> [Message; 2] {
    let calls = ["one", "two"].map(|which| {
        let arguments = json!({"pattern": format!("{which} ").repeat(100)});
        let function = ToolFunction::new(ToolName::new("grep").unwrap(), arguments);
        ToolCall::new(CallId::from_wire(format!("call_{turn}_{which}")), function)
    });
    let results = calls.iter().map(|call| {
        let text = format!("{} in turn {turn}\n", call.id).repeat(60);
        UserContent::ToolResult(call.result(vec![ToolResultContent::text(text)]))
    });
    let results = Message::User {
        content: results.collect(),
    };
    [
        Message::Assistant(AssistantMessage::new(
            calls.map(AssistantContent::ToolCall).into(),
        )),
        results,
    ]
}

#[tokio::test]
async fn c13_originals_are_sent_as_if_they_had_been_changed_in_place() {
    let (over, in_place) = (Reduction::new(reduction()), reduction());
    let mut originals = vec![Message::system("Look around."), Message::user("Go.")];
    let (mut live, mut changes, mut last) = (originals.clone(), 0, Vec::new());
    for turn in 0..20 {
        let (prompt, history) = originals.split_last().unwrap();
        let before = live.clone();
        in_place.clear(RigMessages, &mut live).await.unwrap();
        let sent = over.clear(history, prompt, None).await.unwrap();
        assert_eq!(
            sent.is_none(),
            history == &live[..history.len()],
            "a history that is not changed is not sent"
        );
        let sent = sent.unwrap_or_else(|| history.to_vec());
        assert_eq!(
            (&sent[..], prompt),
            (&live[..history.len()], live.last().unwrap()),
            "turn {turn}"
        );
        // A second call, as after a retry, gives the same.
        assert_eq!(
            over.clear(history, prompt, None)
                .await
                .unwrap()
                .unwrap_or_else(|| history.to_vec()),
            sent
        );
        assert_eq!(before != live, !sent.starts_with(&last), "turn {turn}");
        changes += usize::from(before != live);
        last = sent;
        originals.extend(round(turn));
        live.extend(round(turn));
    }
    assert!((3..15).contains(&changes), "{changes}");
}

#[tokio::test]
async fn a_short_history_is_left_alone() {
    let hook = Reduction::new(reduction());
    let prompt = Message::user("Go.");
    assert_eq!(hook.clear(&[], &prompt, None).await.unwrap(), None);
    assert_eq!(hook.clear(&round(1), &prompt, None).await.unwrap(), None);
    // The provider's own count decides.
    let long = [round(1), round(2), round(3)].concat();
    assert!(
        hook.clear(&long, &prompt, Some(50_000))
            .await
            .unwrap()
            .is_some()
    );
}
