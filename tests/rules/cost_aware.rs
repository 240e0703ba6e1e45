//! The cost-aware pass (C15): previews where they pay, and never a higher price than without a pass
//! if that must be certain.

use crate::common::{builder, clear, content, memory, round, text, tokens};
use offcut::backend::Memory;
use offcut::format::{Message, Messages, Plain};
use offcut::hint::{Hint, Kind};
use offcut::preview::Preview;
use offcut::report::{Outcome, Reason};
use offcut::{Builder, CostAware, ExpectedCalls, Prices, Report, ToolReduction, Turn};
use proptest::prelude::{Strategy, prop_assert, prop_assert_eq, proptest};

/// A reduction that truncates nothing and clears nothing for a long time.
fn whole(store: &Memory, rule: CostAware) -> Builder {
    let builder = builder(store)
        .skip_truncation(true)
        .preview_length(400)
        .max_tokens_for_clear(1_000_000);
    builder.preview(Preview::Mixed).cost_aware(rule)
}

fn rule(at_least: f64) -> CostAware {
    let expected_calls = ExpectedCalls {
        at_least,
        per_call: 0.0,
    };
    CostAware {
        at_least_tokens: 0,
        expected_calls,
        ..CostAware::default()
    }
}

/// `n` lines with a name in each.
fn names(n: usize) -> String {
    (0..n).map(|n| format!("see src/module_{n}.rs\n")).collect()
}

/// A large result, one more round, and a call that can be cleared at once.
fn conversation() -> Vec<Message> {
    let rounds = [
        round("a", "grep", names(400)),
        round("b", "grep", names(20)),
        round("c", "grep", "ok"),
    ];
    rounds.concat()
}

async fn turn(reduction: &ToolReduction, messages: &mut [Message], cache_is_cold: bool) -> Report {
    let mut conversation = Messages::new(&Plain, messages);
    let mut turn = Turn {
        cache_is_cold,
        ..Turn::new(&mut conversation)
    };
    reduction.clear_turn(&mut turn).await.unwrap()
}

#[tokio::test]
async fn c15_a_whole_result_becomes_a_preview_when_that_is_expected_to_pay() {
    let (store, mut messages) = (memory(), conversation());
    let reduction = whole(&store, rule(100.0)).build().unwrap();
    let report = clear(&reduction, &mut messages).await;
    assert_eq!(
        report.decisions.len(),
        1,
        "the others are no longer than `above`"
    );
    assert_eq!(report.decisions[0].outcome, Outcome::Previewed);
    let hint = Hint::parse(text(content(&messages[1]))).unwrap();
    assert_eq!(
        (hint.kind, hint.location.as_ref().unwrap().as_str()),
        (Kind::Truncated, "memory://t/clear/a")
    );
    assert!(
        hint.preview.contains("src/module_") && hint.preview.len() <= 400,
        "{}",
        hint.preview
    );
    assert_eq!(
        reduction
            .read_original(&hint.location.unwrap())
            .await
            .unwrap()
            .unwrap(),
        names(400)
    );
    assert_eq!(
        *content(&messages[3]),
        ["see".to_owned() + &names(20)[3..]].map(Into::into)
    );
}

#[tokio::test]
async fn c15_a_rewrite_that_does_not_pay_is_reported_and_left() {
    let (store, original) = (memory(), conversation());
    // The preview saves 2 100 of 2 300 tokens. Everything from there on, which must be read again,
    // has 250 tokens, at 1.25 instead of 0.1. Five more calls repay that; no call does not, nor
    // does one call if cached tokens cost 0.001.
    for (calls, cached, pays) in [(5.0, 0.1, true), (0.0, 0.1, false), (1.0, 0.001, false)] {
        let prices = Prices {
            fresh: 1.25,
            cached,
        };
        let reduction = whole(
            &store,
            CostAware {
                prices,
                ..rule(calls)
            },
        )
        .build()
        .unwrap();
        let mut messages = original.clone();
        let report = clear(&reduction, &mut messages).await;
        let estimate = report.cost_estimate.unwrap();
        let (before, after) = (
            tokens(&reduction, &mut original.clone()[1..4]),
            tokens(&reduction, &mut messages[1..4]),
        );
        assert_eq!(
            report.is_change(),
            pays && estimate.net_gain > 0.0,
            "{estimate:?}"
        );
        assert_eq!(estimate.expected_calls, calls);
        if pays {
            // The estimate assumes the longest location: 17 bytes more than here.
            assert!((before - after - 5..=before - after).contains(&estimate.tokens_saved));
            let costs = 1.25 * (before - estimate.tokens_saved) as f64 - 0.1 * before as f64;
            assert!((estimate.extra_cost - costs).abs() < 1e-6, "{estimate:?}");
            assert!(
                (estimate.net_gain - 0.1 * calls * estimate.tokens_saved as f64 + costs).abs()
                    < 1e-6,
                "{estimate:?}"
            );
        } else {
            assert!(estimate.net_gain <= 0.0);
            assert_eq!(
                report.decisions[0].outcome,
                Outcome::Kept(Reason::DoesNotPay)
            );
            assert_eq!(messages, original);
        }
    }
}

#[tokio::test]
async fn c15_a_cold_cache_makes_a_rewrite_free() {
    let (store, mut messages) = (memory(), conversation());
    let dear = CostAware {
        prices: Prices {
            fresh: 1.0,
            cached: 0.001,
        },
        ..rule(0.0)
    };
    let reduction = whole(&store, dear).build().unwrap();
    assert!(!turn(&reduction, &mut messages, false).await.is_change());
    let report = turn(&reduction, &mut messages, true).await;
    let estimate = report.cost_estimate.unwrap();
    assert!(
        report.is_change() && estimate.extra_cost == -(estimate.tokens_saved as f64),
        "{estimate:?}"
    );
    assert!(
        !turn(&reduction, &mut messages, true).await.is_change(),
        "L4"
    );
}

#[tokio::test]
async fn c15_a_rewrite_that_saves_little_is_not_made() {
    let (saves, original) = (2_000, conversation());
    for (at_least_tokens, is_made) in [(saves, true), (saves + 200, false)] {
        let rule = CostAware {
            at_least_tokens,
            ..rule(100.0)
        };
        let reduction = whole(&memory(), rule).build().unwrap();
        assert_eq!(
            clear(&reduction, &mut original.clone()).await.is_change(),
            is_made,
            "{at_least_tokens}"
        );
    }
}

#[tokio::test]
async fn c15_restored_originals_count_as_the_replacements_that_were_sent() {
    let expected_calls = ExpectedCalls {
        at_least: 0.0,
        per_call: 10.0,
    };
    let rule = CostAware {
        at_least_tokens: 0,
        expected_calls,
        ..CostAware::default()
    };
    let begin = [
        &round("a", "grep", names(300))[..],
        &[Message::user("x".repeat(20_000))],
    ]
    .concat();
    let begin = [
        &begin[..],
        &round("b", "grep", names(3_000)),
        &round("c", "grep", "ok"),
    ]
    .concat();
    let later: Vec<Message> = (0..5)
        .flat_map(|n| round(&format!("later_{n}"), "grep", "ok"))
        .collect();
    for over_originals in [false, true] {
        let reduction = whole(&memory(), rule).build().unwrap();
        let mut messages = begin.clone();
        // A rewrite of the first result would make the provider read the long message again, so it
        // is put off.
        let report = clear(&reduction, &mut messages).await;
        let outcomes = report.decisions.iter().map(|decision| decision.outcome);
        assert_eq!(
            outcomes.collect::<Vec<_>>(),
            [Outcome::Kept(Reason::DoesNotPay), Outcome::Previewed]
        );
        let mut messages = [
            if over_originals {
                begin.clone()
            } else {
                messages
            },
            later.clone(),
        ]
        .concat();
        let report = clear(&reduction, &mut messages).await;
        assert_eq!(
            report.decisions[0].outcome,
            Outcome::Previewed,
            "{over_originals} {:?}",
            report.cost_estimate
        );
    }
}

#[tokio::test]
async fn c15_a_preview_is_shortened_to_a_hint_in_place() {
    let (store, mut messages) = (memory(), conversation());
    clear(&whole(&store, rule(100.0)).build().unwrap(), &mut messages).await;
    let reduction = whole(&store, rule(100.0))
        .max_tokens_for_clear(100)
        .build()
        .unwrap();
    let report = clear(&reduction, &mut messages).await;
    assert_eq!(report.decisions[0].outcome, Outcome::Shortened);
    let hint = Hint::parse(text(content(&messages[1]))).unwrap();
    assert_eq!(
        (hint.kind, hint.location.unwrap().as_str()),
        (Kind::Cleared, "memory://t/clear/a")
    );
}

#[tokio::test]
async fn c15_over_the_threshold_old_results_are_cleared_unless_previews_are_enough() {
    let original = conversation();
    let all = tokens(
        &whole(&memory(), rule(100.0)).build().unwrap(),
        &mut original.clone(),
    );
    for (threshold, outcome) in [(all - 1, Outcome::Previewed), (100, Outcome::Cleared)] {
        let (store, mut messages) = (memory(), original.clone());
        let reduction = whole(&store, rule(100.0))
            .max_tokens_for_clear(threshold)
            .build()
            .unwrap();
        let report = clear(&reduction, &mut messages).await;
        assert_eq!(report.decisions[0].outcome, outcome, "{threshold}");
        let saved = all - tokens(&reduction, &mut messages);
        assert_eq!(report.cleared_input_tokens(), saved, "L12");
    }
}

#[tokio::test]
async fn c15_handlers_exclusions_and_long_stubs_rule_out_previews() {
    let store = memory();
    type Set = fn(Builder) -> Builder;
    let cases: [(&str, Set); 4] = [
        ("clear_exclude_tools", |b| b.clear_exclude_tools(["grep"])),
        ("skip_clear", |b| b.skip_clear(true)),
        ("a handler", |b| {
            b.clear_handler(|_| Ok(offcut::handler::Action::Default))
        }),
        ("a longer stub", |b| b.stub_length(500)),
    ];
    for (case, set) in cases {
        let (mut messages, original) = (conversation(), conversation());
        let report = clear(
            &set(whole(&store, rule(100.0))).build().unwrap(),
            &mut messages,
        )
        .await;
        assert!(
            report.cost_estimate.is_none() && report.decisions.is_empty() && messages == original,
            "{case}"
        );
    }
    let newest = round("a", "grep", names(400));
    let mut answered = [&newest[..], &[Message::assistant("so")]].concat();
    for mut messages in [newest.to_vec(), answered.clone()] {
        assert!(
            !clear(&whole(&store, rule(100.0)).build().unwrap(), &mut messages)
                .await
                .is_change(),
            "the newest"
        );
    }
    let json = Message::tool(
        &crate::common::call("a", "grep"),
        vec![offcut::Part::Json(serde_json::json!(names(400)))],
        false,
    );
    answered = [&[newest[0].clone(), json][..], &conversation()[2..]].concat();
    assert!(
        !clear(&whole(&store, rule(100.0)).build().unwrap(), &mut answered)
            .await
            .is_change(),
        "no text"
    );
}

/// Generates the result sizes in bytes of an agent that makes one call in each turn.
fn results() -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(
        proptest::prop_oneof![3 => 0usize..40, 1 => 40usize..1_500],
        1..14,
    )
}

fn prices() -> impl Strategy<Value = Prices> {
    (0.1f64..4.0, 0.0f64..=1.0).prop_map(|(fresh, share)| Prices {
        fresh,
        cached: fresh * share,
    })
}

/// Returns the cost of each call of a loop, and the number of passes that changed something. With
/// `originals` the loop hands those in every turn.
fn live(
    rounds: &[usize],
    prices: Prices,
    reduction: Option<&ToolReduction>,
    originals: bool,
) -> (Vec<f64>, usize) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let meter = builder(&memory()).build().unwrap();
    let count =
        |message: &Message| tokens(&meter, std::slice::from_mut(&mut message.clone())) as f64;
    let (mut history, mut sent, mut bills, mut changes) =
        (vec![Message::user("go")], Vec::new(), Vec::new(), 0);
    for (n, size) in rounds.iter().enumerate() {
        let mut request = history.clone();
        if let Some(reduction) = reduction {
            changes += usize::from(runtime.block_on(clear(reduction, &mut request)).is_change());
            let again = request.clone();
            runtime.block_on(clear(reduction, &mut request));
            assert_eq!(request, again, "L4");
        }
        let same = request
            .iter()
            .zip(&sent)
            .take_while(|(now, before)| now == before)
            .count();
        let cost = |(at, message)| {
            count(message)
                * if at < same {
                    prices.cached
                } else {
                    prices.fresh
                }
        };
        bills.push(request.iter().enumerate().map(cost).sum());
        sent.clone_from(&request);
        if !originals {
            history = request;
        }
        history.extend(round(&format!("call_{n}"), "grep", names(*size)));
    }
    (bills, changes)
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(96))]

    #[test]
    fn c15_with_no_expected_calls_no_call_costs_more_than_without_the_rule(
        rounds in results(), prices in prices(), above in 0usize..3_000, originals in proptest::prelude::any::<bool>(),
    ) {
        let certain = CostAware { above, at_least_tokens: 0, prices, expected_calls: ExpectedCalls::NONE };
        let reduction = whole(&memory(), certain).build().unwrap();
        let (with, _) = live(&rounds, prices, Some(&reduction), originals);
        let (without, _) = live(&rounds, prices, None, originals);
        for (with, without) in with.iter().zip(&without) {
            prop_assert!(*with <= without + 1e-6, "{with} {without}");
        }
    }

    #[test]
    fn c15_a_loop_over_originals_costs_as_much_as_one_in_place(
        rounds in results(), prices in prices(), calls in 0.0f64..40.0,
    ) {
        let rule = CostAware { above: 500, at_least_tokens: 0, prices, ..rule(calls) };
        let lived = [false, true].map(|originals| {
            let reduction = whole(&memory(), rule).build().unwrap();
            live(&rounds, prices, Some(&reduction), originals).0
        });
        prop_assert_eq!(&lived[0], &lived[1]);
    }
}

#[test]
fn c15_with_no_expected_calls_some_rewrites_still_pay() {
    let prices = Prices {
        fresh: 1.0,
        cached: 0.5,
    };
    let certain = CostAware {
        prices,
        ..rule(0.0)
    };
    let reduction = whole(&memory(), certain).build().unwrap();
    let rounds = [1_000, 3, 3, 3];
    let (with, changes) = live(&rounds, prices, Some(&reduction), false);
    let (without, _) = live(&rounds, prices, None, false);
    assert_eq!(changes, 1);
    assert!(
        with.iter().sum::<f64>() < without.iter().sum::<f64>() / 1.5,
        "{with:?} {without:?}"
    );
}
