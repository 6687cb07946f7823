//! A reviewer's answer, taken apart. Whatever is no clear verdict is none.

use loon_api::{Answer, AnswerPart, ErrorCode, ErrorInfo, Review, ReviewVerdict, StopReason};
use serde::Deserialize;

use super::unpaid;

/// Most findings that are passed on, and most bytes of one.
const FINDINGS: usize = 8;
const FINDING: usize = 2_000;

#[derive(Deserialize)]
struct Written {
    verdict: Word,
    #[serde(default)]
    findings: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Accept,
    Reject,
}

/// The text of an answer.
pub(super) fn words_of(answer: &Answer) -> String {
    let texts = answer.parts.iter().filter_map(|part| match part {
        AnswerPart::Text(text) => Some(text.as_str()),
        AnswerPart::Thinking(_) | AnswerPart::Call { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The review that the words are. What they used is not known here.
pub(super) fn parse(words: &str, stop: StopReason) -> Review {
    match verdict(words, stop) {
        Ok(findings) if findings.is_empty() => unpaid(ReviewVerdict::Accepted, findings, None),
        Ok(findings) => unpaid(ReviewVerdict::Findings, findings, None),
        Err(why) => {
            let error = ErrorInfo::new(ErrorCode::Protocol, why);
            unpaid(ReviewVerdict::Failed, Vec::new(), Some(error))
        }
    }
}

/// The findings; none is acceptance.
fn verdict(words: &str, stop: StopReason) -> Result<Vec<String>, String> {
    match stop {
        StopReason::Length => return Err("the answer was cut at the output limit.".to_owned()),
        StopReason::Refused => return Err("the model's server refused to answer.".to_owned()),
        StopReason::End | StopReason::ToolCalls => {}
    }
    if words.trim().is_empty() {
        return Err("the reviewer said nothing.".to_owned());
    }
    let json = object(words).ok_or("the answer holds no JSON object.")?;
    let Written { verdict, findings } = serde_json::from_str(json)
        .map_err(|error| format!("the answer is not the JSON that was asked for: {error}."))?;
    let findings: Vec<String> = findings
        .iter()
        .map(|finding| visible(finding))
        .filter(|finding| !finding.is_empty())
        .collect();
    match (verdict, findings.is_empty()) {
        (Word::Accept, true) | (Word::Reject, false) => {
            Ok(findings.into_iter().take(FINDINGS).collect())
        }
        (Word::Accept, false) => Err("the answer accepts and has findings.".to_owned()),
        (Word::Reject, true) => Err("the answer rejects without a finding.".to_owned()),
    }
}

/// From the first brace to the last: some models put words or a fence around it.
fn object(words: &str) -> Option<&str> {
    let (start, end) = (words.find('{')?, words.rfind('}')?);
    words.get(start..=end)
}

/// One line without control characters, of bounded length.
fn visible(finding: &str) -> String {
    let line = finding.replace(char::is_control, " ");
    let line = line.trim();
    match line.floor_char_boundary(FINDING) {
        end if end < line.len() => format!("{}…", &line[..end]),
        _ => line.to_owned(),
    }
}
