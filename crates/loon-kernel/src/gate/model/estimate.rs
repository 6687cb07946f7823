//! About how many tokens a request took whose server reports none, from its bytes.

use loon_api::{Answer, AnswerPart, AssistantPart, Message, ModelRequest, UserPart};

/// Text and code run at about seven bytes for two tokens.
const TOKENS: u64 = 2;
const BYTES: u64 = 7;
/// What a picture takes, about, whatever its size.
const PER_IMAGE: u64 = 1600;

/// Tokens of the request and of `answered` bytes of its answer.
pub(super) fn tokens(request: &ModelRequest, answered: u64) -> u64 {
    let mut images = 0;
    let mut bytes = request.system.len();
    for tool in request.tools.iter() {
        bytes += tool.name.len() + tool.description.len() + tool.parameters.to_string().len();
    }
    for message in &request.messages {
        match message {
            Message::User(parts) => {
                for part in parts {
                    match part {
                        UserPart::Text(text) => bytes += text.len(),
                        UserPart::Image { .. } => images += PER_IMAGE,
                    }
                }
            }
            Message::Assistant(answer) => {
                bytes += answer.parts.iter().map(sent).sum::<usize>();
            }
        }
    }
    (bytes as u64).saturating_add(answered).saturating_mul(TOKENS).div_ceil(BYTES) + images
}

/// Bytes of what an answer says.
pub(super) fn bytes_of(answer: &Answer) -> u64 {
    let bytes: usize = answer
        .parts
        .iter()
        .map(|part| match part {
            AnswerPart::Text(text) => text.len(),
            AnswerPart::Thinking(thinking) => thinking.text.len(),
            AnswerPart::Call { name, arguments } => name.len() + arguments.to_string().len(),
        })
        .sum();
    bytes as u64
}

fn sent(part: &AssistantPart) -> usize {
    match part {
        AssistantPart::Text(text) => text.len(),
        AssistantPart::Thinking(thinking) => thinking.text.len(),
        AssistantPart::Call(call) => {
            call.name.len() + call.arguments.to_string().len() + call.result.text.len()
        }
    }
}
