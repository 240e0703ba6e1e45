//! Results of tools, shortened.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::{LIMIT, reduction};
use offcut::backend::Location;
use offcut::hint::Hint;
use offcut::{ToolCall, ToolReduction};
use offcut_mcp::{OutputSchema, ReduceError, reduce};
use proptest::prelude::*;
use serde_json::{Value, json};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(future)
}

fn call() -> ToolCall {
    ToolCall::new("1", "log", "{}")
}

/// The shortened result as text; `None` if it stays.
fn spelled(reduction: &ToolReduction, result: &str, schema: &OutputSchema) -> Option<String> {
    block_on(reduce(reduction, &call(), result, schema)).unwrap()
}

fn shortened(result: &Value, schema: &OutputSchema) -> Value {
    let new = spelled(&reduction(), &result.to_string(), schema).expect("it is long");
    serde_json::from_str(&new).unwrap()
}

fn stored(reduction: &ToolReduction, location: &Location) -> String {
    let bytes = block_on(reduction.read_original(location))
        .unwrap()
        .unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn log() -> String {
    (0..500)
        .map(|line| format!("{line:05} naïve \"行\"\n"))
        .collect()
}

/// The first hint in any string of `value`.
fn hint(value: &Value) -> Option<Hint> {
    match value {
        Value::String(text) => Hint::parse(text),
        Value::Array(items) => items.iter().find_map(hint),
        Value::Object(fields) => fields.values().find_map(hint),
        _ => None,
    }
}

#[test]
fn every_other_byte_of_a_result_keeps_its_spelling() {
    let text = Value::from(log());
    let result = format!(
        r#"{{ "_meta": {{"n": 1.00, "m": 1E2}}, "isError" : true, "content": [ {{"annotations":{{"priority": 0.50}}, "text": {text} , "type":"text"}},  {{"type":"image", "data":"AAAA","mimeType":"image/png"}}], "x": [1, 2] }}"#
    );
    let reduction = reduction();
    let new = spelled(&reduction, &result, &OutputSchema::None).unwrap();
    let value: Value = serde_json::from_str(&new).unwrap();
    let hint = hint(&value["content"][0]["text"]).unwrap();
    let shown = Value::from(hint.render()).to_string();
    let expected = result.replace(&text.to_string(), &shown);
    // Only the whitespace between blocks goes.
    let expected = expected
        .replace("[ {\"ann", "[{\"ann")
        .replace("},  {", "},{");
    assert_eq!(new, expected);
    assert_eq!(stored(&reduction, &hint.location.unwrap()), log());
}

#[test]
fn results_within_the_limit_and_results_of_excluded_tools_stay() {
    for result in [
        json!({"content": [{"type": "text", "text": "short"}], "structuredContent": {"a": 1}}),
        json!({"content": [{"type": "image", "data": "A".repeat(50_000), "mimeType": "image/png"}]}),
        json!({"content": [{"type": "audio", "data": "A".repeat(50_000), "mimeType": "audio/wav"}]}),
        json!({"content": [{"type": "resource", "resource": {"uri": "a:b", "blob": "A".repeat(50_000)}}]}),
        json!({"content": [{"type": "new", "text": "x".repeat(50_000)}]}),
        json!({"resultType": "input_required", "inputRequests": {"a": "x".repeat(50_000)}}),
        json!({"content": "x".repeat(50_000)}),
        json!({}),
    ] {
        assert_eq!(
            spelled(&reduction(), &result.to_string(), &OutputSchema::None),
            None,
            "{result}"
        );
    }
    let long = json!({"content": [{"type": "text", "text": log()}]}).to_string();
    let exact = ToolCall::new("1", "exact", "{}");
    let kept = block_on(reduce(&reduction(), &exact, long, &OutputSchema::None)).unwrap();
    assert_eq!(kept, None);
}

#[test]
fn a_result_of_uncertain_meaning_is_ambiguous() {
    let text = Value::from(log());
    for result in [
        format!(r#"{{"content":[{{"type":"text","text":{text}}}],"content":[]}}"#),
        format!(r#"{{"content":[{{"type":"text","text":"a","text":{text}}}]}}"#),
        format!(
            r#"{{"content":[{{"type":"text","text":"\ud800{}"}}]}}"#,
            "x".repeat(9_000)
        ),
        "[]".to_owned(),
        "{".to_owned(),
    ] {
        let reduced = block_on(reduce(&reduction(), &call(), result, &OutputSchema::None));
        assert!(matches!(reduced, Err(ReduceError::Ambiguous)));
    }
}

#[test]
fn a_text_resource_keeps_its_address_and_becomes_plain_text() {
    for kind in [json!({}), json!({"mimeType": "application/json"})] {
        let mut resource = json!({"uri": "docs://manual", "text": log(), "_meta": {"a": 1}});
        resource
            .as_object_mut()
            .unwrap()
            .extend(kind.as_object().unwrap().clone());
        let shown = shortened(
            &json!({"content": [{"type": "resource", "resource": resource}]}),
            &OutputSchema::None,
        );
        let mut resource = shown["content"][0]["resource"].clone();
        assert!(hint(&resource["text"]).is_some());
        resource["text"] = Value::Null;
        let expected = json!({"uri": "docs://manual", "text": null, "_meta": {"a": 1}, "mimeType": "text/plain"});
        assert_eq!(resource, expected);
    }
}

#[test]
fn many_texts_are_stored_as_one_and_their_resources_stay_as_links() {
    let block = |nth| json!({"type": "resource", "annotations": {"priority": nth}, "resource": {"uri": format!("docs://{nth}"), "text": format!("{nth}{}", "x".repeat(99))}});
    let content: Vec<Value> = (0..60).map(block).collect();
    let shown = shortened(&json!({"content": content}), &OutputSchema::None);
    let content = shown["content"].as_array().unwrap();
    assert!(hint(&content[0]["text"]).unwrap().flags.joined);
    assert_eq!(content.len(), 61);
    let link = json!({"type": "resource_link", "uri": "docs://7", "name": "docs://7", "size": 100, "annotations": {"priority": 7}});
    assert_eq!(content[8], link);
}

fn rows(count: usize) -> Value {
    let row = |nth| json!({"row": nth, "name": format!("Nº {nth}"), "note": "weighed again, on Monday", "weight": 1.5});
    json!({"rows": (0..count).map(row).collect::<Vec<_>>(), "next": null})
}

fn rows_schema(closed: bool) -> Value {
    json!({
        "type": "object",
        "properties": {
            "rows": {"type": "array", "items": {
                "type": "object",
                "properties": {"row": {"type": "integer"}, "name": {"type": "string"}, "note": {"type": "string"}, "weight": {"type": "number"}},
                "required": ["row", "name", "weight"],
                "additionalProperties": !closed,
            }},
            "next": {"type": ["string", "null"]},
        },
        "required": ["rows", "next"],
        "additionalProperties": !closed,
    })
}

fn structured(document: &Value) -> Value {
    json!({"content": [{"type": "text", "text": document.to_string()}], "structuredContent": document})
}

#[test]
fn a_list_is_shortened_by_items_and_a_string_carries_the_hint() {
    for closed in [false, true] {
        let schema = rows_schema(closed);
        let shown = shortened(&structured(&rows(400)), &OutputSchema::new(&schema));
        let document = &shown["structuredContent"];
        assert!(jsonschema::is_valid(&schema, document), "{document}");
        assert!(document.to_string().len() < LIMIT, "{document}");
        let kept = document["rows"].as_array().unwrap();
        assert_eq!(kept[0]["name"], "Nº 0", "what tells rows apart stays");
        assert!(
            kept.len() > 1 && kept[1] == rows(400)["rows"][1],
            "{document}"
        );
        let hint = hint(document).expect("a string carries it");
        assert_eq!(document.get("offcut").is_some(), !closed);
        assert!(
            hint.preview
                .contains(&format!("[… /rows {}/400 …]", kept.len())),
            "{}",
            hint.preview
        );
        // The same original as that of the text.
        let text = Hint::parse(shown["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(hint.location, text.location);
    }
}

#[test]
fn a_result_of_very_many_empty_blocks_stays_whole() {
    let content = vec![json!({}); 5_000];
    let result = json!({"content": content}).to_string();
    let reduced = block_on(reduce(&reduction(), &call(), &result, &OutputSchema::None));
    assert!(reduced.is_err());
}

#[test]
fn names_carry_no_hint() {
    let mut document = rows(400);
    for row in document["rows"].as_array_mut().unwrap() {
        row.as_object_mut().unwrap().remove("note");
    }
    let schema = rows_schema(true);
    let shown = shortened(&structured(&document), &OutputSchema::new(&schema));
    assert_eq!(shown["structuredContent"], document);
}

#[test]
fn a_long_string_is_cut_and_carries_the_hint() {
    let schema = json!({"type": "object", "properties": {"log": {"type": "string"}, "code": {"type": "integer"}}, "required": ["log", "code"], "additionalProperties": false});
    let reduction = reduction();
    let result =
        json!({"content": [], "structuredContent": {"log": log(), "code": 0}, "isError": false});
    let new = spelled(&reduction, &result.to_string(), &OutputSchema::new(&schema)).unwrap();
    let shown: Value = serde_json::from_str(&new).unwrap();
    let document = &shown["structuredContent"];
    assert!(jsonschema::is_valid(&schema, document));
    assert_eq!(
        (&document["code"], &shown["content"]),
        (&json!(0), &json!([]))
    );
    let hint = Hint::parse(document["log"].as_str().unwrap()).unwrap();
    assert!(hint.preview.contains("00000 naïve"), "{}", hint.preview);
    // It is all that is cut, so it is stored as a text with lines.
    assert_eq!(stored(&reduction, &hint.location.unwrap()), log());
}

#[test]
fn a_text_that_is_also_the_only_long_string_of_the_structured_content_is_stored_once() {
    let nested = json!({"content": [{"type": "text", "text": log()}], "n": 1});
    for (document, place) in [
        (json!({"content": log()}), "/content"),
        (
            json!({"result": log(), "code": 0, "of": "x".repeat(500)}),
            "/result",
        ),
        (nested, "/content/0/text"),
        (json!([log()]), "/0"),
        (json!(log()), ""),
        (json!({"a/b~": log()}), "/a~1b~0"),
    ] {
        let texts = [("first", "other"), (&*log(), "other"), ("other", &*log())];
        for (one, other) in texts {
            let content = json!([{"type": "text", "text": one}, {"type": "text", "text": other}]);
            let result = json!({"content": content, "structuredContent": document});
            let reduction = reduction();
            let new = spelled(&reduction, &result.to_string(), &OutputSchema::None).unwrap();
            let mut shown: Value = serde_json::from_str(&new).unwrap();
            let string = shown["structuredContent"].pointer_mut(place).unwrap();
            let in_structured = hint(string).unwrap();
            // Nothing else has changed.
            *string = json!(log());
            assert_eq!(shown["structuredContent"], document);
            let location = in_structured.location.unwrap();
            assert_eq!(stored(&reduction, &location), log());
            match hint(&shown["content"]) {
                Some(in_text) => assert_eq!(in_text.location.unwrap(), location),
                None => assert_eq!(shown["content"], content),
            }
        }
    }
    // Nothing is lost if it may not change.
    let schema = json!({"properties": {"log": {"const": log()}}, "additionalProperties": false});
    let result = json!({"content": [], "structuredContent": {"log": log()}});
    let kept = spelled(
        &reduction(),
        &result.to_string(),
        &OutputSchema::new(&schema),
    );
    assert_eq!(kept, None);
}

#[test]
fn the_only_long_string_is_stored_also_if_the_text_repeats_all_of_it_as_json() {
    for (document, place) in [
        (json!({"stdout": log(), "exit_code": 0}), "/stdout"),
        (json!({"data": [{"text": log(), "n": 1.5}]}), "/data/0/text"),
    ] {
        let closed = json!({"const": document});
        for (schema, is_bound) in [
            (OutputSchema::None, false),
            (OutputSchema::new(&closed), true),
        ] {
            let mut result = structured(&document);
            let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
            let content = result["content"].as_array_mut().unwrap();
            content.insert(0, image.clone());
            let reduction = reduction();
            let new = spelled(&reduction, &result.to_string(), &schema).unwrap();
            let shown: Value = serde_json::from_str(&new).unwrap();
            assert_eq!(shown["content"][0], image);
            let text = shown["content"][1]["text"].as_str().unwrap();
            let mut text: Value = serde_json::from_str(text).unwrap();
            // A text is bound by no schema.
            let in_shape = if is_bound { &document } else { &text };
            assert_eq!(shown["structuredContent"], *in_shape);
            let string = text.pointer_mut(place).unwrap();
            let location = hint(string).unwrap().location.unwrap();
            assert_eq!(stored(&reduction, &location), log());
            // Nothing else has changed.
            *string = json!(log());
            assert_eq!(text, document);
            // Its outcome stays.
            assert_eq!(spelled(&reduction, &new, &schema), None);
        }
    }
}

#[test]
fn places_that_may_not_change_stay_and_others_go() {
    let token = "ab".repeat(400);
    let document = json!({"token": token, "kinds": vec!["a"; 40], "log": log(), "errors": log()});
    let schema = json!({"type": "object", "properties": {
        "token": {"type": "string", "pattern": "^(ab)+$"},
        "kinds": {"type": "array", "minItems": 40, "items": {"enum": ["a", "b"]}},
        "log": {"type": "string"},
    }});
    let shown = shortened(&structured(&document), &OutputSchema::new(&schema));
    let shown = &shown["structuredContent"];
    assert_eq!(
        (&shown["token"], &shown["kinds"]),
        (&document["token"], &document["kinds"])
    );
    assert!(jsonschema::is_valid(&schema, shown));
    assert!(shown["log"].as_str().unwrap().contains("B …]"));
    assert!(Hint::parse(shown["offcut"].as_str().unwrap()).is_some());
}

#[test]
fn content_that_can_not_be_short_and_valid_stays_whole_unless_there_is_no_schema() {
    // Nothing but keys and numbers, so that nothing can go.
    let fields: serde_json::Map<String, Value> =
        (0..2_000).map(|n| (format!("k{n}"), json!(n))).collect();
    let fixed = Value::Object(fields);
    let numbers = json!({"numbers": (0..2_000).collect::<Vec<_>>()});
    let all = json!({"type": "object", "properties": {"numbers": {"minItems": 2_000}}});
    let object = json!({"type": "object"});
    for (document, schema, is_whole) in [
        (&numbers, OutputSchema::new(&all), true),
        (&fixed, OutputSchema::new(&object), true),
        (&numbers, OutputSchema::Unknown, true),
        (&fixed, OutputSchema::None, false),
    ] {
        let shown = shortened(&structured(document), &schema);
        assert_eq!(shown.get("structuredContent"), is_whole.then_some(document));
        assert!(Hint::parse(shown["content"][0]["text"].as_str().unwrap()).is_some());
    }
}

#[test]
fn structured_content_of_a_short_text_stays() {
    let result = json!({"content": [{"type": "text", "text": log()}, {"type": "text", "text": "{\"ok\": true}"}], "structuredContent": {"ok": true}});
    let shown = shortened(&result, &OutputSchema::None);
    assert_eq!(shown["content"][1], result["content"][1]);
    assert_eq!(shown["structuredContent"], result["structuredContent"]);
}

#[test]
fn structured_content_that_differs_from_the_text_is_stored_by_itself() {
    let reduction = reduction();
    let result =
        json!({"content": [{"type": "text", "text": "400 rows"}], "structuredContent": rows(400)});
    let new = spelled(
        &reduction,
        &result.to_string(),
        &OutputSchema::new(&rows_schema(false)),
    )
    .unwrap();
    let shown: Value = serde_json::from_str(&new).unwrap();
    assert_eq!(shown["content"], result["content"]);
    let hint = hint(&shown["structuredContent"]).unwrap();
    assert_eq!(
        stored(&reduction, &hint.location.unwrap()),
        rows(400).to_string()
    );
}

#[test]
fn long_numbers_keep_their_digits() {
    let numbers = "12345678901234567890.125,".repeat(300);
    let document = format!(r#"{{"log":{},"n":[{}0]}}"#, Value::from(log()), numbers);
    let result = format!(r#"{{"content":[],"structuredContent":{document}}}"#);
    let reduction = reduction();
    let new = spelled(&reduction, &result, &OutputSchema::None).unwrap();
    assert!(new.contains(r#""n":[12345678901234567890.125,"#), "{new}");
    let hint = hint(&serde_json::from_str(&new).unwrap()).unwrap();
    assert_eq!(stored(&reduction, &hint.location.unwrap()), document);
}

/// A document, and a schema that it fits.
fn documents() -> impl Strategy<Value = (Value, Value)> {
    let text = prop_oneof!["[a-z é\"]{0,20}", "[a-z\n€]{200,3000}"];
    let leaf = prop_oneof![
        any::<i64>().prop_map(|n| (json!(n), json!({"type": "integer"}))),
        any::<bool>().prop_map(|b| (json!(b), json!({"type": "boolean"}))),
        text.clone()
            .prop_map(|t| (json!(t), json!({"type": "string"}))),
        (text, 100..4000_usize).prop_map(|(t, most)| {
            let most = most.max(t.chars().count());
            (json!(t), json!({"type": "string", "maxLength": most}))
        }),
        Just((json!("fixed"), json!({"const": "fixed"}))),
    ];
    let inner = leaf.prop_recursive(4, 64, 6, |inner| {
        prop_oneof![
            (inner.clone(), 0..60_usize, any::<bool>()).prop_map(|((item, schema), count, has_min)| {
                let schema = json!({"type": "array", "items": schema, "minItems": if has_min { count.min(3) } else { 0 }});
                (json!(vec![item; count]), schema)
            }),
            object(inner),
        ]
    });
    object(inner)
}

fn object(inner: impl Strategy<Value = (Value, Value)>) -> impl Strategy<Value = (Value, Value)> {
    let fields = prop::collection::btree_map("[a-z/~]{1,6}", inner, 0..6);
    (fields, any::<bool>()).prop_map(|(fields, closed)| {
        let values: serde_json::Map<String, Value> = fields.iter().map(|(name, (value, _))| (name.clone(), value.clone())).collect();
        let schemas: serde_json::Map<String, Value> = fields.iter().map(|(name, (_, schema))| (name.clone(), schema.clone())).collect();
        let required: Vec<&String> = fields.keys().collect();
        let schema = json!({"type": "object", "properties": schemas, "required": required, "additionalProperties": !closed});
        (Value::Object(values), schema)
    })
}

/// Puts the `original` in place of the only string that differs from it, and takes out an added field. Returns
/// false if there is none.
fn put_back(shown: &mut Value, document: &Value, original: &str) -> bool {
    match (shown, document) {
        (Value::String(shown), Value::String(string)) if string == original => {
            shown.clone_from(string);
            true
        }
        (Value::Array(shown), Value::Array(all)) => {
            let mut pairs = shown.iter_mut().zip(all);
            pairs.any(|(shown, whole)| shown != whole && put_back(shown, whole, original))
        }
        (Value::Object(shown), Value::Object(all)) => {
            shown.retain(|name, _| all.contains_key(name));
            let mut pairs = shown.iter_mut().zip(all.values());
            pairs.any(|((_, shown), whole)| shown != whole && put_back(shown, whole, original))
        }
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn m3_shortened_content_is_valid_shorter_and_leads_to_the_original((document, schema) in documents(), repeats in any::<bool>()) {
        prop_assert!(jsonschema::is_valid(&schema, &document));
        let result = if repeats { structured(&document) } else { json!({"content": [], "structuredContent": document}) };
        let (reduction, spelled_result) = (reduction(), result.to_string());
        let Some(new) = spelled(&reduction, &spelled_result, &OutputSchema::new(&schema)) else {
            return Ok(());
        };
        prop_assert!(new.len() < spelled_result.len());
        let new: Value = serde_json::from_str(&new).unwrap();
        prop_assert!(jsonschema::is_valid(&schema, &new["structuredContent"]));
        if new["structuredContent"] != document {
            let hint = hint(&new["structuredContent"]);
            prop_assert!(hint.is_some(), "{}", new);
            let original = stored(&reduction, &hint.unwrap().location.unwrap());
            let mut whole = new["structuredContent"].clone();
            if !put_back(&mut whole, &document, &original) {
                whole = serde_json::from_str(&original).unwrap();
            }
            prop_assert_eq!(whole, document);
        }
    }

    #[test]
    fn any_json_is_shortened_or_refused(text in "[\\[\\]{}\",:a-z0-9\\\\ud]{0,60}", long in any::<bool>()) {
        let filler = if long { "x".repeat(5_000) } else { String::new() };
        for result in [
            text.clone(),
            format!(r#"{{"content":[{{"type":"text","text":"{text}{filler}"}}]}}"#),
            format!(r#"{{"content":{text},"structuredContent":{{"a":"{filler}","b":{text}}}}}"#),
        ] {
            let _ = block_on(reduce(&reduction(), &call(), result, &OutputSchema::None));
        }
    }
}
