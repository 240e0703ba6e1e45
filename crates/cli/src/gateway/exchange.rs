//! The purpose of a request, by its path.

use http::Method;
use offcut::format::WireFormat;

/// A request whose body holds a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exchange {
    /// The format of the conversation.
    pub(crate) format: WireFormat,
    /// The purpose of the request.
    pub(crate) purpose: Purpose,
}

/// The purpose of a request with a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The model's next turn.
    Turn,
    /// A count of tokens.
    Count,
}

impl Exchange {
    /// The exchange that a method and a path ask for; `None` if the request has no conversation.
    pub(crate) fn of(method: &Method, path: &str) -> Option<Self> {
        if method != Method::POST {
            return None;
        }
        let path = path.split('?').next().unwrap_or_default();
        let mut segments = path.trim_end_matches('/').rsplit('/');
        let (last, before) = (segments.next()?, segments.next().unwrap_or_default());
        let (format, purpose) = match (before, last) {
            ("chat", "completions") => (WireFormat::OpenAiChat, Purpose::Turn),
            ("responses", "input_tokens") => (WireFormat::Responses, Purpose::Count),
            ("messages", "count_tokens") => (WireFormat::Anthropic, Purpose::Count),
            (_, "responses") => (WireFormat::Responses, Purpose::Turn),
            (_, "messages") => (WireFormat::Anthropic, Purpose::Turn),
            (_, model) => match model.rsplit_once(':')?.1 {
                "generateContent" | "streamGenerateContent" => (WireFormat::Gemini, Purpose::Turn),
                "countTokens" => (WireFormat::Gemini, Purpose::Count),
                _ => return None,
            },
        };
        Some(Self { format, purpose })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversations_are_found_by_their_paths() {
        let of = |path| Exchange::of(&Method::POST, path).map(|it| (it.format, it.purpose));
        let turn = |format| Some((format, Purpose::Turn));
        let count = |format| Some((format, Purpose::Count));
        assert_eq!(of("/v1/chat/completions"), turn(WireFormat::OpenAiChat));
        assert_eq!(of("/v1/responses?x=1"), turn(WireFormat::Responses));
        assert_eq!(
            of("/v1/responses/input_tokens"),
            count(WireFormat::Responses)
        );
        assert_eq!(of("/v1/messages?beta=true"), turn(WireFormat::Anthropic));
        assert_eq!(
            of("/v1/messages/count_tokens"),
            count(WireFormat::Anthropic)
        );
        assert_eq!(
            of("/v1beta/models/m:generateContent"),
            turn(WireFormat::Gemini)
        );
        assert_eq!(
            of("/v1beta/models/m:countTokens"),
            count(WireFormat::Gemini)
        );
        for other in [
            "/v1/completions",
            "/v1/messages/batches",
            "/v1/models",
            "/",
            "/v1beta/models/m:embedContent",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
        assert_eq!(Exchange::of(&Method::GET, "/v1/messages"), None);
    }
}
