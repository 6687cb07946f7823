//! A tool of a server behind the gate's port.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jsonschema::Validator;
use loon_api::{BoxFuture, Subject, ToolSpec};
use loon_kernel::{Admitted, EffectContext, Tool, ToolOutput};
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, JsonObject};
use serde_json::Value;

use crate::offer::Offered;
use crate::result::{Place, of_call};
use crate::server::Server;
use crate::words;

/// Most bytes of a title.
const TITLE: usize = 160;

/// One tool.
pub(crate) struct RemoteTool {
    pub(crate) server: Arc<Server>,
    pub(crate) offered: Offered,
    /// Name of the tool that reads resources of the server, if it has any.
    pub(crate) reader: Option<String>,
    validator: OnceLock<Option<Validator>>,
}

impl RemoteTool {
    pub(crate) fn new(server: Arc<Server>, offered: Offered, reader: Option<String>) -> Self {
        Self { server, offered, reader, validator: OnceLock::new() }
    }

    /// True if it was called with another definition before.
    pub(crate) fn is_changed(&self) -> bool {
        let server = self.server.config.identity();
        let Offered { original, digest, .. } = &self.offered;
        self.server.means.seen.is_changed(&server, original, digest)
    }

    fn validator(&self) -> Option<&Validator> {
        // A schema that the library cannot read is left to the server.
        let make = || jsonschema::validator_for(&self.offered.spec.parameters).ok();
        self.validator.get_or_init(make).as_ref()
    }

    async fn call(&self, arguments: JsonObject, cx: &EffectContext) -> ToolOutput {
        let Offered { original, digest, .. } = &self.offered;
        let means = &self.server.means;
        means.seen.remember(&self.server.config.identity(), original, digest);
        let request = || {
            let params =
                CallToolRequestParams::new(original.clone()).with_arguments(arguments.clone());
            ClientRequest::CallToolRequest(CallToolRequest::new(params))
        };
        let tool = Some(&self.offered);
        match self.server.ask(request, tool, Some(&cx.progress), &cx.cancel).await {
            Ok(answer) => {
                let place = Place { results: &means.results, reader: self.reader.as_deref() };
                of_call(&answer, &place)
            }
            Err(words) => ToolOutput::error(words),
        }
    }
}

impl Tool for RemoteTool {
    fn spec(&self) -> &ToolSpec {
        &self.offered.spec
    }

    fn title(&self, arguments: &Value) -> String {
        words::line(&arguments.to_string(), TITLE)
    }

    fn subjects(&self, arguments: &Value) -> Result<Vec<Subject>, String> {
        match self.validator().map(|validator| validator.validate(arguments)) {
            Some(Err(error)) => {
                let why = words::bounded(&error.to_string(), 2000);
                Err(format!("The arguments do not fit: {why}"))
            }
            Some(Ok(())) | None => Ok(Vec::new()),
        }
    }

    fn timeout(&self, _: &Value) -> Option<Duration> {
        self.server.config.call_timeout
    }

    fn run<'a>(
        &'a self,
        _admitted: Admitted,
        arguments: &'a Value,
        cx: &'a EffectContext,
    ) -> BoxFuture<'a, ToolOutput> {
        Box::pin(self.call(arguments.as_object().cloned().unwrap_or_default(), cx))
    }
}
