//! Tool calls: from a waiting item to a final one that has been recorded.

mod hooks;

use std::sync::Arc;
use std::time::Duration;

use loon_api::event::{
    ApprovalRequested, ApprovalResolved, Decision, EffectFinished, EffectKind, EffectStarted,
    EffectStatus, ItemCompleted, ItemStarted,
};
use loon_api::{
    Approval, ApprovalId, At, Cost, ErrorCode, ErrorInfo, Item, ItemBody, PermissionRule, Subject,
    ToolCallItem, ToolCallStatus, ToolResult, Usage,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use self::hooks::{CallHooks, HookedCall, HooksSay};
use super::replay::{no_outcome, under_way};
use super::run::{Limits, Ran, followed, progress_channel};
use super::unmasked::items_of;
use super::{ApprovalAnswer, Gate, Stop, ToolEffect, Verdict};
use crate::clock::millis;
use crate::error::KernelError;
use crate::fold::EffectRecord;
use crate::port::{Admitted, EffectContext, Tool, ToolOutput};
use crate::store::StoreError;

/// Most bytes of a result. Tools keep theirs shorter; this bounds what they quote of a call.
const MAX_RESULT: usize = 256 * 1024;

/// Most bytes of a failed call's result. An error may quote an argument of any size.
const MAX_ERROR: usize = 64 * 1024;

/// Most bytes of a call's title.
const MAX_TITLE: usize = 8 * 1024;

/// How a call ended, before it is put into its item.
struct Ended {
    effect: EffectStatus,
    call: ToolCallStatus,
    output: ToolOutput,
    error: Option<ErrorInfo>,
}

/// What the checks before the run gave: the tool to run and what it may touch, or the end.
type Checked = Result<Judged, Ended>;

/// A tool that may run.
struct Judged {
    tool: Arc<dyn Tool>,
    subjects: Arc<[Subject]>,
}

impl Gate {
    /// Performs a tool call. The item that comes back is final, has been recorded, and tells the
    /// model what happened. While the call is under way the reader of the stream sees the item
    /// asking and running.
    ///
    /// # Errors
    ///
    /// The journal cannot be written. Nothing may follow then: what the call did is not known to
    /// the history. An execution that was cancelled or taken over is no error, but an item that says so.
    pub async fn tool(&self, mut effect: ToolEffect<'_>) -> Result<Item, KernelError> {
        let ItemBody::ToolCall(call) = &effect.item.body else { return Ok(effect.item) };
        let mut call = call.clone();
        let known =
            self.execution.recorder().with_state(|state| state.effects.get(&effect.key).cloned());
        if let Some(known) = known {
            return Ok(self.replay_tool(&effect, call, &known).await);
        }
        let _in_flight = self.execution.enter();
        match self.perform(&mut effect, &mut call).await {
            // There is nobody left to record for: the execution is over here.
            Err(
                error @ (KernelError::Cancelled { .. }
                | KernelError::Store(StoreError::Fenced { .. })),
            ) => Ok(final_item(&effect, call, Ended::unrecorded(&error), None)),
            done => done,
        }
    }

    async fn perform(
        &self,
        effect: &mut ToolEffect<'_>,
        call: &mut ToolCallItem,
    ) -> Result<Item, KernelError> {
        let recorder = self.execution.recorder();
        let judged = match self.check(effect, call).await? {
            Ok(judged) => judged,
            Err(ended) => return self.finish(effect, call.clone(), ended, None).await,
        };
        let tool = &judged.tool;
        let timeout = tool.timeout(effect.arguments(call)).or(self.terms().tool_timeout);
        self.show(effect, call, ToolCallStatus::Running).await;
        let began = recorder.now();
        if !tool.spec().class.is_read_only() {
            self.record_intent(effect, call, timeout).await?;
        }
        let first = self.first_began(&effect.key);
        let ended = self.run_tool(effect, call, &judged, timeout.map(|t| (first, t))).await;
        let item = self.finish(effect, call.clone(), ended, Some(began)).await?;
        self.tell_hooks(effect, &item).await;
        Ok(item)
    }

    /// Everything that must hold before the call may run.
    async fn check(
        &self,
        effect: &ToolEffect<'_>,
        call: &mut ToolCallItem,
    ) -> Result<Checked, KernelError> {
        let admitted = if effect.by_user {
            // What the user does by hand is not a matter of the budget.
            self.may_begin(&effect.cancel)
        } else {
            self.admit(&effect.cancel, false).await
        };
        if let Err(refusal) = admitted {
            return Ok(Err(refusal.into()));
        }
        let tool = match self.find_tool(&call.tool, &effect.cancel).await {
            Ok(Some(tool)) => tool,
            Ok(None) => return Ok(Err(Self::unknown_tool(&call.tool))),
            Err(stop) => return Ok(Err(stop.into())),
        };
        let arguments = effect.unmasked.clone().unwrap_or_else(|| call.arguments.clone());
        if !arguments.is_object() {
            return Ok(Err(Ended::invalid(no_object(&arguments))));
        }
        if call.title.is_empty() {
            call.title = shortened(tool.title(&arguments), MAX_TITLE);
        }
        if let Some(text) = self.writes_mask(tool.as_ref(), &arguments).await? {
            return Ok(Err(Ended::invalid(text)));
        }
        let subjects = match tool.subjects(&arguments) {
            Ok(subjects) => subjects,
            Err(text) => return Ok(Err(Ended::invalid(text))),
        };
        let verdict = self.judge(tool.spec(), &arguments, &subjects);
        let verdict = match self.ask_hooks(effect, call, verdict).await {
            Ok(verdict) => verdict,
            Err(ended) => return Ok(Err(ended)),
        };
        let judged = |tool, subjects: Vec<Subject>| Judged { tool, subjects: subjects.into() };
        match verdict {
            Verdict::Allow => Ok(Ok(judged(tool, subjects))),
            Verdict::Deny { reasons } => Ok(Err(Ended::denied(reasons.join(" ")))),
            // The user asked for the call; only a rule that forbids it outweighs that.
            Verdict::Ask { .. } if effect.by_user => Ok(Ok(judged(tool, subjects))),
            Verdict::Ask { reasons, always } => {
                let always = always.filter(|rule| !self.holds_secret(rule));
                let mut approval =
                    approval(effect, call, tool.as_ref(), &subjects, reasons, always);
                approval.id = ApprovalId::new(format!("{}{}", self.approval_prefix, effect.key));
                Ok(self.ask(effect, call, approval).await?.map(|()| judged(tool, subjects)))
            }
        }
    }

    /// The tool of this name. One of a server that is still on its way is waited for.
    async fn find_tool(
        &self,
        name: &str,
        cancel: &CancellationToken,
    ) -> Result<Option<Arc<dyn Tool>>, Stop> {
        if let Some(tool) = self.tools.get(name) {
            return Ok(Some(Arc::clone(tool)));
        }
        let limits = Limits { cancel, timeout: None };
        tokio::select! {
            biased;
            tool = self.remote.find(name) => Ok(tool),
            stop = self.limit_reached(&limits) => Err(stop),
        }
    }

    /// True if the rule would be recorded masked, and so match nothing that it was made for.
    fn holds_secret(&self, rule: &PermissionRule) -> bool {
        let redactor = self.execution.recorder().redactor();
        let PermissionRule { tool, path_prefix, command_prefix, host } = rule;
        let parts = [Some(tool), path_prefix.as_ref(), command_prefix.as_ref(), host.as_ref()];
        parts.into_iter().flatten().any(|part| redactor.text(part.clone()) != *part)
    }

    /// Asks a human. The wait costs neither the call's timeout nor the deadline.
    async fn ask(
        &self,
        effect: &ToolEffect<'_>,
        call: &ToolCallItem,
        approval: Approval,
    ) -> Result<Result<(), Ended>, KernelError> {
        let recorder = self.execution.recorder();
        self.show(effect, call, ToolCallStatus::Asking).await;
        recorder
            .record(Some(effect.turn), ApprovalRequested { approval: approval.clone() })
            .await?;
        let answer = tokio::select! {
            biased;
            () = effect.cancel.cancelled() => withdrawn(),
            () = self.execution.cancel_token().cancelled() => withdrawn(),
            answer = self.approver.ask(&approval) => answer,
        };
        let resolved = ApprovalResolved {
            approval: approval.id,
            decision: answer.decision,
            reason: answer.reason.clone(),
            rule: answer.rule,
        };
        recorder.record(Some(effect.turn), resolved).await?;
        Ok(match answer.decision {
            Decision::Approved => self.admit(&effect.cancel, false).await.map_err(Ended::from),
            Decision::Denied => Err(Ended::denied(match answer.reason {
                Some(reason) => format!("The user said no: {reason}"),
                None => "The user said no.".to_owned(),
            })),
            Decision::NobodyToAsk => Err(Ended::denied(format!(
                "It needs an approval, and nobody is there to give it. {}",
                approval.reasons.join(" ")
            ))),
            Decision::Withdrawn => Err(Stop::cancelled().into()),
        })
    }

    async fn record_intent(
        &self,
        effect: &ToolEffect<'_>,
        call: &ToolCallItem,
        timeout: Option<Duration>,
    ) -> Result<(), KernelError> {
        let recorder = self.execution.recorder();
        let started = EffectStarted {
            key: effect.key.clone(),
            kind: EffectKind::Tool,
            target: call.tool.clone(),
            item: Some(effect.item.id.clone()),
            timeout_ms: timeout.map(millis),
            request: None,
        };
        recorder.record(Some(effect.turn), started).await?;
        recorder.make_durable().await
    }

    async fn run_tool(
        &self,
        effect: &mut ToolEffect<'_>,
        call: &ToolCallItem,
        judged: &Judged,
        timeout: Option<(At, Duration)>,
    ) -> Ended {
        let stop = CancellationToken::new();
        let (progress, arriving) = progress_channel();
        let (key, subjects) = (effect.key.clone(), Arc::clone(&judged.subjects));
        let hidden = self.authorities.iter().flat_map(|it| it.hidden(judged.tool.spec())).collect();
        let cx = EffectContext { key, subjects, hidden, cancel: stop.clone(), progress };
        let arguments = effect.arguments(call).clone();
        let run = judged.tool.run(Admitted::new(effect.key.clone()), &arguments, &cx);
        let limits = Limits { cancel: &effect.cancel, timeout };
        let ran = followed(self.supervise(run, &stop, &limits), arriving, effect.follow).await;
        match ran {
            Ran::Returned(output) => Ended::returned(output),
            Ran::Stopped(stop, output) => Ended::stopped(stop, output),
            Ran::Panicked(words) => Ended::panicked(&words),
        }
    }

    /// Records the final item and the end of the effect together.
    async fn finish(
        &self,
        effect: &ToolEffect<'_>,
        call: ToolCallItem,
        ended: Ended,
        began: Option<At>,
    ) -> Result<Item, KernelError> {
        let recorder = self.execution.recorder();
        let ms = began.map(|began| millis(recorder.now().since(began)));
        let end = EffectFinished {
            key: effect.key.clone(),
            status: ended.effect,
            error: ended.error.clone(),
            ms: ms.unwrap_or(0),
            usage: Usage::default(),
            cost: Cost::default(),
            output: None,
        };
        let tool = self.tools.get(&call.tool).filter(|_| began.is_some());
        let item = final_item(effect, call, ended, ms);
        let records = vec![ItemCompleted { item: item.clone() }.into(), end.into()];
        let recorded = recorder.record_all(Some(effect.turn), records).await;
        self.tree.tell().await;
        if let (Ok(_), Some(tool)) = (&recorded, tool) {
            tool.recorded(&effect.key);
        }
        match recorded {
            Ok(records) => Ok(items_of(&records).pop().unwrap_or(item)),
            // The call did end; that this could not be recorded must not change what the model and
            // the user are told of it, when a cancel is the reason.
            Err(KernelError::Cancelled { .. }) => Ok(recorder.redactor().item(item)),
            Err(error) => Err(error),
        }
    }

    /// Shows the item on its way; the record follows when it is final.
    async fn show(&self, effect: &ToolEffect<'_>, call: &ToolCallItem, status: ToolCallStatus) {
        let call = ToolCallItem { status, guidance: Vec::new(), ..call.clone() };
        let item = Item { body: ItemBody::ToolCall(call), ..effect.item.clone() };
        self.execution.recorder().pass(Some(effect.turn), ItemStarted { item }).await;
    }

    /// Names no other tool: some may be hidden from the model.
    fn unknown_tool(name: &str) -> Ended {
        let text = format!("There is no tool `{name}`. Call one of the tools you were given.");
        Ended::refused(
            EffectStatus::Denied,
            ToolCallStatus::Failed,
            ErrorInfo::new(ErrorCode::NotFound, format!("there is no tool `{name}`")),
            text,
        )
    }

    async fn replay_tool(
        &self,
        effect: &ToolEffect<'_>,
        call: ToolCallItem,
        known: &EffectRecord,
    ) -> Item {
        let Some((seq, status)) = known.finished else {
            let ended = Ended::failed(under_way(&effect.key));
            return final_item(effect, call, ended, None);
        };
        if status == EffectStatus::Unknown {
            let ended = Ended::unknown(no_outcome(&effect.key));
            let item = final_item(effect, call, ended, None);
            let completed = ItemCompleted { item: item.clone() };
            // If the journal cannot be written, the next record says so to somebody who can act.
            let _ = self.execution.recorder().record(Some(effect.turn), completed).await;
            return item;
        }
        // The final item is the record right before the end.
        match self.recorded_items(seq.saturating_sub(1), seq).await {
            Ok(items) => match items.into_iter().next() {
                Some(item) => item,
                None => final_item(effect, call, Ended::unknown(no_outcome(&effect.key)), None),
            },
            Err(error) => final_item(effect, call, Ended::unrecorded(&error), None),
        }
    }
}

impl ToolEffect<'_> {
    /// The arguments that count, which nobody is shown where they hold a secret.
    fn arguments<'a>(&'a self, call: &'a ToolCallItem) -> &'a Value {
        self.unmasked.as_ref().unwrap_or(&call.arguments)
    }
}

impl Ended {
    fn returned(output: ToolOutput) -> Self {
        let failed = output.result.is_error;
        Self {
            effect: EffectStatus::Completed,
            call: if failed { ToolCallStatus::Failed } else { ToolCallStatus::Done },
            output,
            error: None,
        }
    }

    /// A stopped run keeps what it had to say: files it changed are changed.
    fn stopped(stop: Stop, output: Option<ToolOutput>) -> Self {
        let what = match &output {
            Some(_) => "The call was stopped before its end",
            None => "The call was stopped before its end, and what it had done until then stands",
        };
        let note = format!("{what}: {}.", stop.error.message);
        let mut output = output.unwrap_or_default();
        output.result = ToolResult::error(if output.result.text.is_empty() {
            note
        } else {
            format!("{}\n\n{note}", output.result.text)
        });
        let call = match stop.status {
            EffectStatus::Aborted => ToolCallStatus::Cancelled,
            _ => ToolCallStatus::Failed,
        };
        Self { effect: stop.status, call, output, error: Some(stop.error) }
    }

    fn panicked(words: &str) -> Self {
        Self::failed(ErrorInfo::new(ErrorCode::Internal, format!("the tool broke down: {words}")))
    }

    fn failed(error: ErrorInfo) -> Self {
        let text = format!("The call failed: {}.", error.message);
        Self::refused(EffectStatus::Failed, ToolCallStatus::Failed, error, text)
    }

    fn unknown(error: ErrorInfo) -> Self {
        let text = "The call was begun, and its end was never recorded. It may have had its effect \
                    in whole, in part or not at all. Look before you repeat it.";
        Self::refused(EffectStatus::Unknown, ToolCallStatus::Unknown, error, text)
    }

    fn invalid(text: impl Into<String>) -> Self {
        let text = text.into();
        let error = ErrorInfo::new(ErrorCode::Invalid, text.clone());
        Self::refused(EffectStatus::Denied, ToolCallStatus::Failed, error, text)
    }

    fn denied(reason: String) -> Self {
        let text = format!("Not run: permission denied. {reason}");
        let error = ErrorInfo::new(ErrorCode::Denied, reason);
        Self::refused(EffectStatus::Denied, ToolCallStatus::Denied, error, text)
    }

    fn unrecorded(error: &KernelError) -> Self {
        let status = match error {
            KernelError::Cancelled { .. } | KernelError::Expired { .. } => {
                ToolCallStatus::Cancelled
            }
            KernelError::Store(_) | KernelError::Ended { .. } | KernelError::Interrupted { .. } => {
                ToolCallStatus::Failed
            }
        };
        let text = format!("The session's journal cannot be written: {error}.");
        Self::refused(EffectStatus::Failed, status, error.info(), text)
    }

    fn refused(
        effect: EffectStatus,
        call: ToolCallStatus,
        error: ErrorInfo,
        text: impl Into<String>,
    ) -> Self {
        Self { effect, call, output: ToolOutput::error(text), error: Some(error) }
    }
}

/// A call that had not begun.
impl From<Stop> for Ended {
    fn from(stop: Stop) -> Self {
        let call = match stop.status {
            EffectStatus::Aborted => ToolCallStatus::Cancelled,
            EffectStatus::TimedOut => ToolCallStatus::Failed,
            _ => ToolCallStatus::Denied,
        };
        let text = format!("Not run: {}.", stop.error.message);
        Self::refused(stop.status, call, stop.error, text)
    }
}

/// Why arguments are no object, as precisely as it is known.
fn no_object(arguments: &Value) -> String {
    let raw = arguments.as_str().unwrap_or_default();
    match serde_json::from_str::<Value>(raw) {
        Err(error) if arguments.is_string() => {
            format!("The arguments are not valid JSON: {error}. Send a JSON object.")
        }
        _ => "The arguments are not a JSON object. Send an object.".to_owned(),
    }
}

/// The text, without its middle if it has more than `bytes` bytes: what happened stands at the
/// beginning of a message, what to do at its end.
pub(super) fn shortened(text: String, bytes: usize) -> String {
    if text.len() <= bytes {
        return text;
    }
    let head = &text[..text.floor_char_boundary(bytes / 4 * 3)];
    let tail = &text[text.ceil_char_boundary(text.len() - bytes / 4)..];
    let omitted = text.len() - head.len() - tail.len();
    format!("{head}[... {omitted} bytes omitted ...]{tail}")
}

fn final_item(
    effect: &ToolEffect<'_>,
    call: ToolCallItem,
    mut ended: Ended,
    ms: Option<u64>,
) -> Item {
    let result = &mut ended.output.result;
    let most = if result.is_error { MAX_ERROR } else { MAX_RESULT };
    result.text = shortened(std::mem::take(&mut result.text), most);
    let error = ended
        .error
        .map(|error| ErrorInfo { message: shortened(error.message, MAX_ERROR), ..error });
    let call = ToolCallItem {
        status: ended.call,
        summary: ended.output.summary,
        result: Some(ended.output.result),
        changes: ended.output.changes,
        reads: ended.output.reads,
        record: ended.output.record,
        exit_code: ended.output.exit_code,
        runs: ended.output.runs,
        ms,
        error,
        ..call
    };
    Item { body: ItemBody::ToolCall(call), ..effect.item.clone() }
}

fn approval(
    effect: &ToolEffect<'_>,
    call: &ToolCallItem,
    tool: &dyn Tool,
    subjects: &[Subject],
    reasons: Vec<String>,
    always: Option<PermissionRule>,
) -> Approval {
    let lines: Vec<&str> = subjects
        .iter()
        .filter_map(|subject| match subject {
            Subject::Command { line, .. } => Some(line.as_str()),
            Subject::Path { .. } | Subject::Tree { .. } | Subject::Url { .. } => None,
        })
        .collect();
    let exact = if lines.is_empty() { call.title.clone() } else { lines.join("\n") };
    Approval {
        id: ApprovalId::new(effect.key.as_str()),
        item: effect.item.id.clone(),
        tool: call.tool.clone(),
        arguments: call.arguments.clone(),
        detail: tool.preview(effect.arguments(call)).unwrap_or(exact),
        reasons,
        cwd: effect.cwd.clone(),
        always,
    }
}

fn withdrawn() -> ApprovalAnswer {
    ApprovalAnswer { decision: Decision::Withdrawn, reason: None, rule: None }
}
