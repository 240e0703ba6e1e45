//! A model whose calls are shown and counted.

use std::sync::Arc;

use async_trait::async_trait;
use offcut::ToolReduction;
use offcut::agent::{ChatModel, ModelError, ModelReply, ModelRequest};

use crate::show;
use crate::tally::Tally;

/// Wraps `model` so that each call is recorded in `tally` and printed.
pub(crate) fn watched(
    model: Arc<dyn ChatModel>,
    tally: &Tally,
    reduction: &ToolReduction,
) -> impl ChatModel + 'static {
    Watched {
        model,
        tally: tally.clone(),
        reduction: reduction.clone(),
    }
}

struct Watched {
    model: Arc<dyn ChatModel>,
    tally: Tally,
    reduction: ToolReduction,
}

#[async_trait]
impl ChatModel for Watched {
    async fn complete(&self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        let (returned, cleared) = self.tally.news();
        show::results(&self.tally, returned, request.messages);
        let (without, with) = self.tally.count_call(&self.reduction, request);
        let reply = self.model.complete(request).await?;
        show::model_call(
            self.tally.totals().model_calls,
            without,
            with,
            &reply.message,
        );
        show::cleared(&self.tally, &cleared, request.messages);
        Ok(reply)
    }
}
