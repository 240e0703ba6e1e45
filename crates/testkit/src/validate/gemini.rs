//! Gemini: a turn with function calls is followed directly by as many function responses, with the
//! same names.

use serde_json::Value;

use super::rules::{InvalidMessage, answer, each, invalid, require, shown, text};

pub(super) fn validate(contents: &[Value]) -> Result<(), InvalidMessage> {
    // The calls of the previous content, each with its index.
    let mut open: Vec<(&str, usize)> = Vec::new();
    each(contents, |at, content| {
        let role = content
            .get("role")
            .and_then(Value::as_str)
            .unwrap_or("user");
        require(
            matches!(role, "user" | "model" | "function"),
            "`role` must be user or model",
        )?;
        let parts = content.get("parts").and_then(Value::as_array);
        let parts = parts.filter(|parts| !parts.is_empty());
        let parts = parts.ok_or_else(|| "`parts` must be a non-empty list".to_owned())?;
        let (mut calls, mut answers) = (Vec::new(), Vec::new());
        for part in parts {
            shape(part, role, &mut calls, &mut answers)?;
        }
        if answers.len() != open.len() {
            let (is, should) = (answers.len(), open.len());
            let problem = format!(
                "{is} function responses follow a content with {should} function calls: send one for each call"
            );
            let asked_at = open.first().map(|(_, at)| *at);
            let at = asked_at.filter(|_| answers.is_empty()).unwrap_or(at);
            return Err(invalid(at, problem).into());
        }
        for name in answers {
            let problem = || format!("no preceding function call has the name {}", shown(name));
            answer(&mut open, name, problem)?;
        }
        require(
            calls.is_empty() || at > 0,
            "function calls must follow a user content",
        )?;
        open = calls.into_iter().map(|call| (call, at)).collect();
        Ok(())
    })?;
    open.first().map_or(Ok(()), |(_, at)| {
        let problem = "its function calls have no responses: send one for each call";
        Err(invalid(*at, problem))
    })
}

fn shape<'m>(
    part: &'m Value,
    role: &str,
    calls: &mut Vec<&'m str>,
    answers: &mut Vec<&'m str>,
) -> Result<(), String> {
    require(
        part.as_object().is_some_and(|fields| !fields.is_empty()),
        "a part must be a non-empty object",
    )?;
    let either = |camel: &str, snake: &str| part.get(camel).or_else(|| part.get(snake));
    if let Some(call) = either("functionCall", "function_call") {
        require(role == "model", "function calls belong in model contents")?;
        calls.push(text(call, "name")?);
        let args = call.get("args");
        return require(
            args.is_none_or(Value::is_object),
            "`args` must be an object",
        );
    }
    if let Some(answer) = either("functionResponse", "function_response") {
        require(
            role != "model",
            "function responses can't be in model contents",
        )?;
        answers.push(text(answer, "name")?);
        return require(
            answer.get("response").is_some_and(Value::is_object),
            "`response` must be an object",
        );
    }
    match part.get("text") {
        Some(said) => require(said.is_string(), "`text` must be a string"),
        None => Ok(()),
    }
}
