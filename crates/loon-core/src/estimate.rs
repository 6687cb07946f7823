//! How large a request is, as an estimate that is shown as one.

use loon_api::{AssistantPart, Message, ModelRequest, UserPart};

/// About how many tokens a request has: four bytes each.
pub(crate) fn estimate_tokens(request: &ModelRequest) -> u64 {
    let messages: usize = request.messages.iter().map(message_bytes).sum();
    let tools: usize = request
        .tools
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + tool.parameters.to_string().len())
        .sum();
    ((request.system.len() + messages + tools) as u64).div_ceil(4)
}

fn message_bytes(message: &Message) -> usize {
    match message {
        Message::User(parts) => parts
            .iter()
            .map(|part| match part {
                UserPart::Text(text) => text.len(),
                UserPart::Image { data, .. } => data.len(),
            })
            .sum(),
        Message::Assistant(answer) => answer
            .parts
            .iter()
            .map(|part| match part {
                AssistantPart::Text(text) => text.len(),
                AssistantPart::Thinking(thinking) => thinking.text.len(),
                AssistantPart::Call(call) => {
                    call.arguments.to_string().len() + call.result.text.len()
                }
            })
            .sum(),
    }
}
