//! Messages that must stay unchanged: those with two meanings, and results in invalid Unicode.

use offcut::backend::Memory;
use offcut::format::{Format, JsonText, Messages, NewPiece, Piece, Spelled, WireFormat};
use offcut::report::{Outcome, Reason, Subject};
use offcut::{Report, ToolReduction, Turn};

fn is_fixed(format: WireFormat, message: &JsonText) -> Vec<bool> {
    let mut all = Vec::new();
    Spelled(format).visit(message, &mut |piece| match piece {
        Piece::Result(head) => all.push(head.is_fixed),
        Piece::Call(call) => all.push(call.is_fixed),
        _ => {}
    });
    all
}

#[test]
fn l5_a_message_with_a_duplicate_key_is_left_alone() {
    use WireFormat::{Anthropic, Gemini, OpenAiChat, Responses};
    for (format, text, fixed) in [
        (
            OpenAiChat,
            r#"{"role":"tool","content":"a","content":"b","tool_call_id":"1"}"#,
            vec![true],
        ),
        (
            OpenAiChat,
            r#"{"role":"tool","role":"user","content":"a"}"#,
            vec![],
        ),
        (
            OpenAiChat,
            r#"{"role":"user","role":"tool","content":"a"}"#,
            vec![true],
        ),
        (
            OpenAiChat,
            r#"{"role":"tool","content":"a","x":1,"x":{"content":1,"content":2}}"#,
            vec![true],
        ),
        (
            OpenAiChat,
            r#"{"role":"tool","content":[{"type":"text","text":"a","te\u0078t":"b"}]}"#,
            vec![true],
        ),
        (
            OpenAiChat,
            r#"{"role":"assistant","tool_calls":[{"function":{"arguments":"1","arguments":"2"}},{}]}"#,
            vec![true; 2],
        ),
        (
            Responses,
            r#"{"type":"function_call_output","call_id":"1","call_id":"2","output":"a"}"#,
            vec![true],
        ),
        (
            Anthropic,
            r#"{"role":"user","content":[{"type":"tool_result","content":"a"},{"type":"tool_result","type":"text"}]}"#,
            vec![true],
        ),
        (
            Anthropic,
            r#"{"role":"assistant","content":[{"type":"tool_use","input":{"a":1,"a":2}}]}"#,
            vec![true],
        ),
        (
            OpenAiChat,
            r#"{"role":"tool","content":[{"type":"text","text":"a","x":1,"x":2}]}"#,
            vec![true],
        ),
        (
            OpenAiChat,
            r#"{"role":"tool","content":[{"type":"new","cache_control":1,"cache_c\u006fntrol":2}]}"#,
            vec![true],
        ),
        (
            OpenAiChat,
            r#"{"role":"tool","content":[{"type":"new","x":1,"x":2}]}"#,
            vec![true],
        ),
        (
            Gemini,
            r#"{"parts":[{"functionResponse":{"response":{"output":"a","output":"b"}}}]}"#,
            vec![true],
        ),
        (
            Gemini,
            r#"{"parts":[{"functionResponse":{"response":{"rows":[{"output":1,"output":2}]}}}]}"#,
            vec![true],
        ),
    ] {
        let message = JsonText::parse(text).unwrap();
        assert_eq!(is_fixed(format, &message), fixed, "{text}");
        let mut changed = message.clone();
        for nth in 0..2 {
            Spelled(format).replace(&mut changed, nth, NewPiece::Result(vec!["x".into()]));
            Spelled(format).replace(&mut changed, nth, NewPiece::Arguments("{}".into()));
        }
        assert_eq!(
            changed == message,
            fixed.iter().all(|fixed| *fixed),
            "{text}"
        );
    }
}

#[test]
fn l5_a_message_of_invalid_unicode_is_left_alone() {
    for (text, fixed) in [
        (
            r#"[{"type":"tool_result","content":"\ud83d"},{"type":"tool_result","content":"x"}]"#,
            [true; 2],
        ),
        (
            r#"[{"type":"tool_result","content":"\ud83d\ude00"},{"type":"tool_result","content":"x"}]"#,
            [false; 2],
        ),
        (
            r#"[{"type":"tool_result","content":"x"},{"type":"tool_result","content":[{"\ud83d":1}]}]"#,
            [true; 2],
        ),
    ] {
        let text = format!(r#"{{"role":"user","content":{text}}}"#);
        let message = JsonText::parse(text).unwrap();
        assert_eq!(is_fixed(WireFormat::Anthropic, &message), fixed);
    }
}

/// Makes three rounds; `fields` are the other fields of each result.
fn rounds(fields: [&str; 3]) -> Vec<JsonText> {
    let long = "words and more words ".repeat(400);
    let round = |(nth, field): (usize, &str)| {
        let call = format!(
            r#"{{"id":"c{nth}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}"#
        );
        [
            format!(r#"{{"role":"assistant","tool_calls":[{call}]}}"#),
            format!(r#"{{"role":"tool","tool_call_id":"c{nth}","content":"{long}"{field}}}"#),
        ]
    };
    let rounds = fields.into_iter().enumerate().flat_map(round);
    rounds.map(|text| JsonText::parse(text).unwrap()).collect()
}

fn reduction() -> ToolReduction {
    let reduction = ToolReduction::recommended(Memory::new())
        .max_tokens_for_clear(500)
        .clear_retention_suffix_limit(1);
    reduction.build().unwrap()
}

fn outcomes(report: &Report) -> Vec<Outcome> {
    report
        .decisions
        .iter()
        .filter(|decision| decision.subject != Subject::Arguments)
        .map(|decision| decision.outcome)
        .collect()
}

#[tokio::test]
async fn l12_a_pass_reports_results_that_it_left_alone() {
    let mut messages = rounds([r#","content":"2""#, r#","n":1.00"#, ""]);
    let (format, before) = (Spelled(WireFormat::OpenAiChat), messages.clone());
    let mut conversation = Messages::new(&format, &mut messages);
    let report = reduction()
        .clear_turn(&mut Turn::new(&mut conversation))
        .await
        .unwrap();
    let expected = [
        Outcome::Kept(Reason::Ambiguous),
        Outcome::Cleared,
        Outcome::Kept(Reason::Unanswered),
    ];
    assert_eq!(outcomes(&report), expected);
    assert_eq!(messages[..3], before[..3]);
    assert!(
        messages[3].as_str().contains("[offcut/1 cleared")
            && messages[3].as_str().ends_with(r#","n":1.00}"#)
    );
}
