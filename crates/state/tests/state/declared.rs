//! Declared state: S4, S5 and S6.

use std::error::Error;

use offcut_state::{
    Append, ApplyError, Change, Field, FieldType, KeyedList, LastWriteWins, Reducer, Reducers,
    Schema, State, StateField, custom,
};
use serde_json::{Value, json};

fn yaml(text: &str) -> Schema {
    Schema::from_yaml(text, &Reducers::new()).unwrap()
}

fn refused(text: &str) -> (String, &'static str) {
    let error = Schema::from_yaml(text, &Reducers::new()).unwrap_err();
    (error.to_string(), error.code())
}

/// Declares one field with this reducer.
fn one(dialect: &str, of: &str, reducer: &str) -> String {
    format!("dialect: {dialect}\nfields:\n  - name: x\n    type: {of}\n    reducer: {reducer}\n")
}

fn after(schema: &Schema, updates: &[Value]) -> Value {
    let mut state = schema.state();
    for update in updates {
        state.apply(update.clone()).unwrap();
    }
    serde_json::to_value(&state).unwrap()
}

/// sherma's plan: "messages list → append (same as before), all others → replace".
#[test]
fn s5_sherma_without_a_reducer() {
    let schema = yaml(
        "dialect: sherma\nfields:\n  - {name: messages, type: list}\n  - {name: notes, type: list}\n  - {name: summary, type: str}\n",
    );
    let message = |id: &str, text: &str| json!({"id": id, "content": text});
    let state = after(
        &schema,
        &[
            json!({"messages": [message("1", "a"), message("2", "b")], "notes": [1], "summary": "s"}),
            json!({"messages": [message("1", "z"), message("3", "c")], "notes": [2], "summary": "t"}),
        ],
    );
    let expected = json!([message("1", "z"), message("2", "b"), message("3", "c")]);
    assert_eq!(
        state,
        json!({"messages": expected, "notes": [2], "summary": "t"})
    );

    let no_list = yaml("dialect: sherma\nfields: [{name: messages}]");
    assert_eq!(
        after(&no_list, &[json!({"messages": 1}), json!({"messages": 2})]),
        json!({"messages": 2})
    );
}

/// sherma's plan: `reducer: replace` next to `append`; "`append` uses add_messages for all list
/// fields".
#[test]
fn s5_sherma_with_a_reducer() {
    let schema = yaml(
        "dialect: sherma\nfields:\n  - {name: messages, type: list, reducer: replace}\n  - {name: log, type: list, reducer: append}\n",
    );
    let update = |n: u8| json!({"messages": [{"n": n}], "log": [{"id": "1", "n": n}, {"id": n.to_string()}]});
    let state = after(&schema, &[update(2), update(3)]);
    assert_eq!(
        state,
        json!({"messages": [{"n": 3}], "log": [{"id": "1", "n": 3}, {"id": "2"}, {"id": "3"}]})
    );
}

/// sherma's plan: "Non-list fields ignore the reducer setting".
#[test]
fn s5_sherma_ignores_a_reducer_on_a_field_that_is_not_a_list() {
    let schema = yaml(&one("sherma", "str", "append"));
    assert_eq!(
        after(&schema, &[json!({"x": "a"}), json!({"x": "b"})]),
        json!({"x": "b"})
    );
}

#[test]
fn s5_an_unknown_type_or_reducer_is_an_error() {
    for dialect in ["openarmature", "sherma", "agentflow"] {
        let (said, code) = refused(&one(dialect, "datetime", "append"));
        assert!(
            said.starts_with("fields[0].type: unknown variant `datetime`, expected one of"),
            "{said}"
        );
        assert_eq!(code, "state_declaration_invalid");
        for word in ["glue", "{glue: {}}"] {
            let (said, code) = refused(&one(dialect, "list", word));
            assert!(
                said.starts_with(
                    "fields[0].reducer: unknown variant `glue`, expected one of `last_write_wins`"
                ),
                "{said}"
            );
            assert_eq!(code, "state_declaration_invalid");
        }
    }
    let said = refused("dialect: sherma\nfields: [{name: at, type: [list]}]").0;
    assert!(said.starts_with("fields[0].type: "), "{said}");
}

/// `append` is list + list in OpenArmature and `add_messages` in sherma.
#[test]
fn s5_the_declaration_names_its_dialect() {
    let twice = |dialect: &str, reducer: &str| {
        let item = json!({"x": [{"id": "1", "message_id": "1"}]});
        after(&yaml(&one(dialect, "list", reducer)), &[item.clone(), item])["x"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(
        (twice("openarmature", "append"), twice("sherma", "append")),
        (2, 1)
    );
    let changed = |dialect: &str| {
        let item = |n: u8| json!({"x": [{"id": "1", "message_id": "1", "n": n}]});
        after(
            &yaml(&one(dialect, "list", "add_messages")),
            &[item(1), item(2)],
        )["x"][0]["n"]
            .clone()
    };
    assert_eq!(
        (changed("openarmature"), changed("agentflow")),
        (json!(2), json!(1))
    );
    assert_eq!(
        refused("fields: []").0,
        "the declaration: missing field `dialect`"
    );
    assert_eq!(
        refused("dialect: eino\nfields: []").0,
        "dialect: unknown variant `eino`, expected one of `openarmature`, `sherma`, `agentflow`"
    );
}

#[test]
fn s7_messages_of_other_formats_are_refused_by_name() {
    let schema = yaml(&one(
        "openarmature",
        "list",
        "{bounded_messages: {max_len: 2}}",
    ));
    for (message, name) in [
        (
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]}),
            "Anthropic",
        ),
        (
            json!({"role": "model", "parts": [{"functionCall": {"name": "f"}}]}),
            "Gemini",
        ),
        (
            json!({"type": "function_call_output", "call_id": "a", "output": "r"}),
            "Responses",
        ),
        (
            json!({"type": "ai", "content": "", "tool_calls": [{"id": "a", "name": "f", "args": {}}]}),
            "LangChain",
        ),
        (
            json!({"type": "tool", "content": "r", "tool_call_id": "a"}),
            "LangChain",
        ),
    ] {
        let user = json!({"role": "user", "content": "go"});
        let refused = schema.state().apply(json!({"x": [user, message]}));
        let cause = refused.unwrap_err().source().unwrap().to_string();
        assert!(cause.contains(name), "{cause}");
    }
}

/// Every word of the table, in the dialects that have it.
#[test]
fn s5_every_word_is_a_reducer() {
    let list = [
        ("last_write_wins", json!([[2], [2]])),
        ("replace_value", json!([[2], [2]])),
        ("replace_messages", json!([[2], [2]])),
        ("append", json!([1, [2], [2]])),
        ("concat_flatten", json!([1, 2, 2])),
        ("{bounded_append: {max_len: 2}}", json!([[2], [2]])),
    ];
    for (reducer, expected) in list {
        let declared = one("openarmature", "list", reducer) + "    default: [1]\n";
        assert_eq!(
            after(&yaml(&declared), &[json!({"x": [[2], [2]]})])["x"],
            expected,
            "{reducer}"
        );
    }
    let item = |n: u8| json!({"id": 1, "n": n});
    let keyed = [
        ("append_items", json!([item(1)])),
        ("{dedupe_append: {key: id}}", json!([item(1)])),
        ("{merge_by_key: {key: id}}", json!([item(3)])),
        (
            "{merge_by_key: {key: n}}",
            json!([item(1), item(2), item(3)]),
        ),
        (
            "{merge_by_key: {key: other, no_key: new}}",
            json!([item(1), item(2), item(3)]),
        ),
        ("{add_messages: {key: id}}", json!([item(3)])),
        ("add_messages", json!([item(3)])),
        // Without a user's role, all three are instructions.
        (
            "{bounded_messages: {max_len: 2}}",
            json!([item(1), item(2), item(3)]),
        ),
        ("remove_tool_messages", json!([item(1), item(2), item(3)])),
    ];
    for (reducer, expected) in keyed {
        let schema = yaml(&one("openarmature", "list", reducer));
        assert_eq!(
            after(
                &schema,
                &[json!({"x": [item(1)]}), json!({"x": [item(2), item(3)]})]
            )["x"],
            expected,
            "{reducer}"
        );
    }
    let scalars = yaml(&one("openarmature", "list", "dedupe_append"));
    assert_eq!(
        after(&scalars, &[json!({"x": ["a"]}), json!({"x": ["b", "a"]})])["x"],
        json!(["a", "b"])
    );
    let maps = [
        ("merge", json!({"b": 2})),
        ("merge_all", json!([{"b": 1}, {"b": 2}])),
    ];
    for (reducer, update) in maps {
        let declared = one("agentflow", "dict", reducer) + "    default: {a: 1}\n";
        assert_eq!(
            after(&yaml(&declared), &[json!({"x": update})])["x"],
            json!({"a": 1, "b": 2}),
            "{reducer}"
        );
    }
}

/// OpenArmature's fixture 030 and S4: wrong parameters are found before any data is seen.
#[test]
fn s4_reducer_configuration_invalid() {
    let invalid = |of: &str, reducer: &str| {
        let (said, code) = refused(&one("openarmature", of, reducer));
        assert_eq!(code, "reducer_configuration_invalid", "{said}");
        said.strip_prefix("fields[0].reducer").unwrap().to_owned()
    };
    for (max_len, found) in [
        ("0", "value: integer `0`"),
        ("-1", "value: integer `-1`"),
        ("1.5", "type: floating point `1.5`"),
        ("many", "type: string \"many\""),
    ] {
        let said = invalid(
            "list",
            &format!("{{bounded_append: {{max_len: {max_len}}}}}"),
        );
        assert_eq!(
            said,
            format!(".bounded_append.max_len: invalid {found}, expected a nonzero usize")
        );
    }
    let wants_bound = "missing field `max_len`";
    assert_eq!(
        invalid("list", "bounded_append"),
        format!(".bounded_append: {wants_bound}")
    );
    assert_eq!(
        invalid("list", "{bounded_append: }"),
        format!(".bounded_append: {wants_bound}")
    );
    for keyless in ["merge_by_key", "{merge_by_key: {}}"] {
        assert_eq!(
            invalid("list", keyless),
            ".merge_by_key: missing field `key`"
        );
    }
    assert_eq!(
        invalid("list", "{merge_by_key: {key: null}}"),
        ".merge_by_key.key: invalid type: null, expected a string"
    );
    assert_eq!(
        invalid("list", "{append: {x: 1}}"),
        ".append.x: unknown field `x`, there are no fields"
    );
    assert_eq!(
        invalid("str", "append"),
        ": `append` needs a list, but this field is a string: change one"
    );
    assert_eq!(
        invalid("list", "merge"),
        ": `merge` needs a map, but this field is a list: change one"
    );
}

/// OpenArmature §2: "`conflicting_reducers` still applies — only one reducer per field."
#[test]
fn s4_conflicting_reducers() {
    for two in [
        "[append, {bounded_append: {max_len: 50}}]",
        "{append: {}, bounded_append: {max_len: 50}}",
    ] {
        let expected =
            "fields[0].reducer: write one reducer: its name, or a map from it to its parameters"
                .to_owned();
        assert_eq!(
            refused(&one("openarmature", "list", two)),
            (expected, "conflicting_reducers")
        );
    }
}

/// Each error names its place: the line of broken text, else the path.
#[test]
fn s5_errors_say_where() {
    let head = "dialect: openarmature\nfields:\n";
    let cases = [
        ("  - {type: list}\n", "fields[0]: missing field `name`"),
        (
            "  - {name: ''}\n",
            "fields[0].name: the field has no name: give it one",
        ),
        (
            "  - name: a\n  - name: a\n",
            "fields[1].name: the field `a` is already declared as fields[0]: remove one",
        ),
        (
            "  - name: a\n    kind: list\n",
            "fields[0].kind: unknown field `kind`, expected one of `name`, `type`, `default`, `reducer`",
        ),
        (
            "  - name: a\n    name: b\n",
            "line 4: duplicate key `name`: remove one",
        ),
        (
            "  - name: 1\n",
            "fields[0].name: invalid type: integer `1`, expected a string",
        ),
        (
            "  - name: a\n    type: int\n    default: x\n",
            "fields[0].default: the default of `a` is a string, but its type is an integer: change one",
        ),
        (
            "  - text\n",
            "fields[0]: invalid type: string \"text\", expected a map",
        ),
        (
            "  - name: a\n    reducer: 7\n",
            "fields[0].reducer: invalid type: integer `7`, expected string or map",
        ),
        (
            "  - name: a\n    reducer:\n      bounded_append:\n        max_length: 5\n",
            "fields[0].reducer.bounded_append.max_length: unknown field `max_length`, expected `max_len`",
        ),
    ];
    for (fields, expected) in cases {
        assert_eq!(refused(&format!("{head}{fields}")).0, expected);
    }
    assert_eq!(
        refused("dialect: sherma\nfields: 3").0,
        "fields: invalid type: integer `3`, expected a sequence"
    );
    assert_eq!(
        refused("dialect: sherma").0,
        "the declaration: missing field `fields`"
    );
    assert_eq!(
        refused("").0,
        "the declaration: invalid type: null, expected a map"
    );
    assert!(
        refused("dialect: sherma\nfields: [\n  {name: a}\n")
            .0
            .starts_with("line "),
        "broken YAML"
    );

    let in_json = |text: &str| {
        Schema::from_json(text, &Reducers::new())
            .unwrap_err()
            .to_string()
    };
    let declared = r#"{"dialect": "openarmature", "fields": [{"name": "a"}, {"name": "b", "reducer": {"bounded_append": {"max_len": 0}}}]}"#;
    assert_eq!(
        in_json(declared),
        "fields[1].reducer.bounded_append.max_len: invalid value: integer `0`, expected a nonzero usize"
    );
    assert_eq!(
        in_json(r#"{"dialect": "sherma", "dialect": "sherma"}"#),
        "line 1: duplicate key `dialect`: remove one"
    );
    let field = |reducer: &str| {
        let field = format!(r#"{{"name": "x", "type": "list", "reducer": {reducer}}}"#);
        in_json(&format!(
            r#"{{"dialect": "openarmature", "fields": [{field}]}}"#
        ))
    };
    for (reducer, problem) in [
        (
            r#"{"bounded_append": {"max_len": 5, "max_len": 500}}"#,
            "duplicate key `max_len`",
        ),
        (
            r#"{"merge_by_key": {"key": "a"}, "merge_by_key": {"key": "b"}}"#,
            "duplicate key `merge_by_key`",
        ),
    ] {
        let error = field(reducer);
        assert!(error.contains(problem), "{error}");
    }
    assert_eq!(
        in_json("{\n  \"dialect\": \n}"),
        "line 3: invalid JSON: correct the syntax"
    );
}

/// Everything that could make a small file large or strange is rejected.
#[test]
fn s5_yaml_that_is_refused() {
    let field = |default: &str| {
        format!("dialect: openarmature\nfields:\n  - name: a\n    default: {default}\n")
    };
    for strange in ["&x [1]", "&x 1", "!!set {a}", "!!str 1", "*x"] {
        let said = refused(&field(strange)).0;
        assert!(said.starts_with("line 4"), "{strange}: {said}");
    }
    assert_eq!(
        refused(&field("&x [1]")).0,
        "line 4: this has an anchor, an alias or a tag: write out the value"
    );
    assert_eq!(
        refused(&field("{[a]: 1}")).0,
        "line 4: this key is a list or a map: use text"
    );
    assert_eq!(
        refused(&field(&"[".repeat(200))).0,
        "line 4: this is nested too deeply: use at most 100 levels"
    );
    assert_eq!(
        refused("dialect: sherma\nfields: []\n---\na: 1\n").0,
        "line 3: this begins a second document: keep only one"
    );
}

proptest::proptest! {
    #[test]
    fn l7_no_declaration_panics(text in "([-:{}\\[\\],&*!|>'\"#? \n\t%@0-9a-z]|name|fields|dialect|sherma|reducer|\n  - |: ){0,60}") {
        let _ = Schema::from_yaml(&text, &Reducers::new());
        let _ = Schema::from_yaml(&format!("dialect: openarmature\nfields: {text}"), &Reducers::new());
        let _ = Schema::from_yaml(&one("openarmature", "list", &text), &Reducers::new());
        let _ = Schema::from_json(&text, &Reducers::new());
    }
}

/// YAML's core schema, for values that JSON has.
#[test]
fn s5_yaml_scalars() {
    let scalars = [
        ("yes", json!("yes")),
        ("true", json!(true)),
        ("False", json!(false)),
        ("~", json!(null)),
        ("", json!(null)),
        ("12", json!(12)),
        ("+12", json!(12)),
        ("-3", json!(-3)),
        ("18446744073709551615", json!(u64::MAX)),
        ("0x1F", json!(31)),
        ("0o17", json!(15)),
        ("1.5", json!(1.5)),
        ("1e3", json!(1000.0)),
        (".5", json!(0.5)),
        ("1.2.3", json!("1.2.3")),
        ("-", json!(null)),
        ("'12'", json!("12")),
        ("\"~\"", json!("~")),
        ("2026-11-21", json!("2026-11-21")),
        ("e5", json!("e5")),
        ("{a: [1, x]}", json!({"a": [1, "x"]})),
        (".inf", json!(".inf")),
    ];
    for (text, expected) in scalars {
        // A lone dash would begin a list.
        let text = if text == "-" { "null" } else { text };
        let schema = yaml(&format!(
            "dialect: openarmature\nfields:\n  - name: a\n    default: {text}\n"
        ));
        assert_eq!(schema.state().get("a"), Some(&expected), "{text}");
    }
    let block = yaml(
        "dialect: openarmature\nfields:\n  - name: a\n    default: |\n      two\n      lines\n",
    );
    assert_eq!(block.state().get("a"), Some(&json!("two\nlines\n")));
}

/// A registered reducer is a word of every dialect, and comes before a built-in one of its name.
#[test]
fn s5_registered_reducers() {
    let sum = || {
        custom("sum", |a: &Value, b: Value| {
            a.as_i64()
                .zip(b.as_i64())
                .map(|(a, b)| json!(a + b))
                .ok_or("integers")
        })
    };
    for dialect in ["openarmature", "agentflow"] {
        let declared = one(dialect, "int", "sum") + "    default: 1\n";
        let schema = Schema::from_yaml(&declared, &Reducers::new().with("sum", sum())).unwrap();
        assert_eq!(
            after(&schema, &[json!({"x": 2}), json!({"x": 3})]),
            json!({"x": 6}),
            "{dialect}"
        );
    }
    let reducers = Reducers::new().with("union", KeyedList::dedupe_append(Field::new("")));
    let schema = Schema::from_yaml(&one("sherma", "list", "union"), &reducers).unwrap();
    assert_eq!(
        after(&schema, &[json!({"x": [1, 2]}), json!({"x": [2, 3]})]),
        json!({"x": [1, 2, 3]})
    );
    let unknown = Schema::from_yaml(&one("sherma", "list", "onion"), &reducers)
        .unwrap_err()
        .to_string();
    assert!(unknown.contains("unknown variant `onion`"), "{unknown}");
    let parameters =
        Schema::from_yaml(&one("sherma", "list", "{union: {}}"), &reducers).unwrap_err();
    assert_eq!(parameters.code(), "state_declaration_invalid");
    let yours = Reducers::new().with("merge", sum());
    let schema = Schema::from_yaml(&one("agentflow", "int", "merge"), &yours).unwrap();
    let mut state = schema.state();
    assert_eq!(
        state.apply(json!({"x": 1})).unwrap_err().code(),
        "reducer_error",
        "null is no integer"
    );
}

/// The same declaration in YAML, in JSON and in Rust gives the same state.
#[test]
fn s5_rust_json_and_yaml_declare_the_same_state() {
    let in_yaml = yaml(
        "dialect: openarmature\nfields:\n  - name: log\n    type: list\n    default: [0]\n    reducer: append\n  - name: last\n",
    );
    let in_json = r#"{"dialect": "openarmature", "fields": [
        {"name": "log", "type": "list", "default": [0], "reducer": "append"}, {"name": "last"}]}"#;
    let in_json = Schema::from_json(in_json, &Reducers::new()).unwrap();
    let in_rust = Schema::new([
        StateField::new("log", FieldType::List)
            .default(json!([0]))
            .reducer(Append),
        StateField::new("last", FieldType::Any),
    ])
    .unwrap();
    let update = json!({"log": [1], "last": {"a": 1}});
    let states = [in_yaml, in_json, in_rust].map(|schema| {
        let mut state = schema.state();
        state.apply(update.clone()).unwrap();
        state
    });
    assert!(states.iter().all(|state| *state == states[0]));
    assert_eq!(states[0].get("log"), Some(&json!([0, 1])));
    assert_eq!(states[0].get("nothing"), None);
}

/// A field without a type starts with the default of the type that its reducer takes.
#[test]
fn s5_defaults() {
    let schema = yaml(
        "dialect: openarmature\nfields:\n  - {name: a, reducer: append}\n  - {name: b, reducer: merge}\n  - {name: c}\n  - {name: d, type: dict}\n",
    );
    let state = schema.state();
    let all: Vec<_> = schema
        .names()
        .map(|name| state.get(name).unwrap().clone())
        .collect();
    assert_eq!(all, [json!([]), json!({}), json!(null), json!({})]);
    assert!(schema.names().all(|name| !state.is_set(name)));
    assert_eq!(serde_json::to_value(&state).unwrap(), json!({}));
}

/// The field and the reducer that an error names.
fn at_fault(error: &ApplyError) -> String {
    match error {
        ApplyError::UndeclaredField { field } => field.clone(),
        ApplyError::Parallel { field, reducer, .. }
        | ApplyError::Reducer { field, reducer, .. } => format!("{field} {reducer}"),
        other => panic!("{other:?}"),
    }
}

fn three() -> Schema {
    yaml(
        "dialect: openarmature\nfields:\n  - {name: count, type: int, default: 1}\n  - {name: log, type: list, reducer: append}\n  - {name: seen, type: list, reducer: dedupe_append}\n",
    )
}

/// S6: all fields or none; the error carries the field, the reducer and the cause.
#[test]
fn s6_apply_is_atomic_over_all_fields() {
    let mut state = three().state();
    state
        .apply(json!({"count": 2, "log": ["a"], "seen": ["x"]}))
        .unwrap();
    let before = state.clone();
    let error = state
        .apply(json!({"count": 3, "log": ["b"], "seen": [["no key"]]}))
        .unwrap_err();
    assert_eq!(
        (at_fault(&error), error.code()),
        ("seen dedupe_append".to_owned(), "reducer_error")
    );
    assert_eq!(
        error.to_string(),
        "the reducer `dedupe_append` of the field `seen` rejected the update; the state is unchanged"
    );
    assert!(
        error
            .source()
            .unwrap()
            .to_string()
            .starts_with("the key of item 0 of the update is a list")
    );
    assert_eq!(state, before);
    state
        .apply(json!({"count": 3, "log": ["b"], "seen": ["y"]}))
        .unwrap();
    assert_eq!(
        serde_json::to_value(&state).unwrap(),
        json!({"count": 3, "log": ["a", "b"], "seen": ["x", "y"]})
    );
}

#[test]
fn s6_undeclared_fields_and_wrong_types() {
    let mut state = three().state();
    let before = state.clone();
    let error = state
        .apply(json!({"zzz": 1, "count": 2, "extra": 1}))
        .unwrap_err();
    assert_eq!(
        (at_fault(&error), error.code()),
        ("extra".to_owned(), "undeclared_field")
    );
    assert!(
        error
            .to_string()
            .starts_with("there is no field `extra`: declare it, or leave it out of the update")
    );
    let error = state.apply(json!([1])).unwrap_err();
    assert_eq!(error.code(), "update_invalid");
    let error = state.apply(json!({"count": "two"})).unwrap_err();
    assert_eq!(
        error.source().unwrap().to_string(),
        "the update is a string, but must be an integer"
    );
    let error = state.apply(json!({"log": "a"})).unwrap_err();
    assert_eq!(at_fault(&error), "log append");
    assert_eq!(state, before);
    state.apply(json!({"count": null})).unwrap();
    assert_eq!(
        state.get("count"),
        Some(&json!(null)),
        "null fits every type"
    );
    state.apply(json!({})).unwrap();
}

/// S6: parallel updates are an error on a replaced field (LangGraph), and folded in order on the
/// others.
#[test]
fn s6_parallel_updates() {
    let mut state = three().state();
    state
        .apply_parallel([
            json!({"log": [1], "count": 5}),
            json!({"log": [2], "seen": ["a"]}),
            json!({"log": [3]}),
        ])
        .unwrap();
    assert_eq!(
        serde_json::to_value(&state).unwrap(),
        json!({"count": 5, "log": [1, 2, 3], "seen": ["a"]})
    );

    let before = state.clone();
    let error = state
        .apply_parallel([json!({"count": 6, "log": [4]}), json!({"count": 6})])
        .unwrap_err();
    assert_eq!(
        (at_fault(&error), error.code()),
        ("count last_write_wins".to_owned(), "parallel_update")
    );
    assert!(
        error
            .to_string()
            .starts_with("2 updates arrived in parallel for the field `count`"),
        "{error}"
    );
    // The second of two fails on the outcome of the first.
    let error = state
        .apply_parallel([json!({"log": [4], "seen": ["b"]}), json!({"seen": [{}]})])
        .unwrap_err();
    assert_eq!(at_fault(&error), "seen dedupe_append");
    assert_eq!(state, before);
    state.apply_parallel([]).unwrap();
    assert_eq!(state, before);
}

/// Parallel updates give the same as updates one by one, where they are allowed.
#[test]
fn s6_parallel_updates_fold_as_if_one_by_one() {
    let add = || yaml(&one("openarmature", "list", "add_messages")).state();
    let updates = [
        json!({"x": [{"id": "1", "n": 1}, {"id": "2", "n": 1}]}),
        json!({"x": [{"role": "remove", "id": "1"}]}),
        json!({"x": [{"id": "1", "n": 2}]}),
    ];
    let (mut together, mut one_by_one) = (add(), add());
    together.apply_parallel(updates.clone()).unwrap();
    for update in updates {
        one_by_one.apply(update).unwrap();
    }
    assert_eq!(together, one_by_one);
    assert_eq!(
        together.get("x"),
        Some(&json!([{"id": "2", "n": 1}, {"id": "1", "n": 2}]))
    );
}

/// The result of a custom reducer must fit the field's type too, and never causes a panic.
#[test]
fn s6_a_custom_reducer_is_checked() {
    struct Forgets;
    impl Reducer<Value> for Forgets {
        type Update = Value;
        fn name(&self) -> &str {
            "forgets"
        }
        fn plan(&self, _: &Value, update: Value) -> Result<Change<Value>, offcut_state::Cause> {
            Ok(if update.is_null() {
                Change::Keep
            } else {
                Change::Replace(json!("text"))
            })
        }
    }
    let schema = Schema::new([StateField::new("n", FieldType::Int).reducer(Forgets)]).unwrap();
    let mut state = schema.state();
    state.apply(json!({"n": null})).unwrap();
    assert!(!state.is_set("n"));
    let error = state.apply(json!({"n": 1})).unwrap_err();
    assert_eq!(at_fault(&error), "n forgets");
}

/// A state goes to JSON and back; a snapshot keeps its values.
#[test]
fn a_state_survives_a_restart() {
    let mut state = three().state();
    state.apply(json!({"count": 2, "log": [1]})).unwrap();
    let stored = serde_json::to_string(&state).unwrap();
    let mut restored = State::restore(&three(), serde_json::from_str(&stored).unwrap()).unwrap();
    assert_eq!(restored, state);
    assert!(!restored.is_set("seen"));
    restored.apply(json!({"log": [2]})).unwrap();
    assert_eq!(
        (state.get("log"), restored.get("log")),
        (Some(&json!([1])), Some(&json!([1, 2])))
    );
    let error = State::restore(&three(), json!({"log": 1})).unwrap_err();
    assert_eq!(at_fault(&error), "log append");
    assert_eq!(
        State::restore(&three(), json!({"old": 1}))
            .unwrap_err()
            .code(),
        "undeclared_field"
    );
    assert!(State::restore(&three(), json!([])).is_err());
}

/// Every default is in a type's doc.
#[test]
fn l11_the_defaults() {
    let state = Schema::new([StateField::new("x", FieldType::Any)])
        .unwrap()
        .state();
    assert_eq!(
        format!("{:?}", state.schema()),
        r#"{"x": (Any, "last_write_wins")}"#
    );
    assert_eq!(format!("{state:?}"), r#"{"x": "unset"}"#, "no content");
    assert_eq!(Reducer::<Value>::name(&LastWriteWins), "last_write_wins");
}
