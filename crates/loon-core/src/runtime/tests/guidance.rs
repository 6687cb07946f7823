//! Guidance before a change: what is held back, in how many steps, and who is asked.
#![expect(clippy::disallowed_methods, reason = "test fixtures, not a project's files")]

use super::*;

/// Writes nothing, but says that it would.
struct Writer {
    spec: ToolSpec,
    cwd: PathBuf,
    runs: Arc<Mutex<Vec<String>>>,
}

impl Tool for Writer {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn title(&self, _arguments: &Value) -> String {
        String::new()
    }

    fn subjects(&self, arguments: &Value) -> Result<Vec<Subject>, String> {
        let path = self.cwd.join(arguments["path"].as_str().unwrap_or_default());
        Ok(vec![Subject::Path { access: loon_api::PathAccess::Write, path }])
    }

    fn run<'a>(
        &'a self,
        _admitted: Admitted,
        arguments: &'a Value,
        _cx: &'a EffectContext,
    ) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            self.runs.lock().unwrap().push(arguments["path"].to_string());
            ToolOutput::ok("written", "ok")
        })
    }
}

fn put(path: &str) -> AnswerPart {
    AnswerPart::Call { name: "put".into(), arguments: json!({"path": path}) }
}

/// A bench whose model may write, in a project with these files.
fn writing(steps: impl IntoIterator<Item = Step>, files: &[(&str, String)]) -> Bench {
    let mut bench = bench(steps);
    let cwd = bench.deps.options.cwd.canonicalize().unwrap();
    bench.deps.options.cwd.clone_from(&cwd);
    for (path, text) in files {
        let path = cwd.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let runs = Arc::clone(&bench.runs);
    bench.deps.tools = Arc::new(move |_| {
        let spec = ToolSpec {
            name: "put".into(),
            description: String::new(),
            parameters: json!({"type": "object", "properties": {}}),
            class: ToolClass::Writes,
        };
        Ok(vec![
            Arc::new(Writer { spec, cwd: cwd.clone(), runs: Arc::clone(&runs) }) as Arc<dyn Tool>
        ])
    });
    bench
}

/// The files that each call brought with their text.
fn brought(events: &[Envelope]) -> Vec<Vec<String>> {
    let of = |item: Item| match item.body {
        ItemBody::ToolCall(call) => Some(call.guidance),
        _ => None,
    };
    let calls = items(events).into_iter().filter_map(of);
    calls
        .map(|guidance| {
            let with_text = guidance.into_iter().filter(|file| file.text.is_some());
            with_text.map(|file| file.path).collect()
        })
        .collect()
}

#[tokio::test]
async fn much_guidance_comes_in_several_steps_before_the_change() {
    let long = |name: &str| format!("{name} {}", "x".repeat(30 * 1024));
    let files =
        [("a/AGENTS.md", long("a")), ("a/b/AGENTS.md", long("b")), ("a/b/c/AGENTS.md", long("c"))];
    let step = || calls(vec![put("a/b/c/new.txt")]);
    let bench = writing([step(), step(), step(), say("done")], &files);
    let events = run(&bench.deps, SessionChoice::New, &["go"]).await;
    let wanted: [&[&str]; 3] = [&["a/AGENTS.md", "a/b/AGENTS.md"], &["a/b/c/AGENTS.md"], &[]];
    assert_eq!(brought(&events), wanted);
    assert_eq!(bench.runs.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn nobody_is_asked_about_a_call_that_is_held_back() {
    let files = [("a/AGENTS.md", "Words.".to_owned())];
    let step = || calls(vec![put("a/new.txt")]);
    let mut bench = writing([step(), step(), say("stopped")], &files);
    bench.deps.options.mode.value = Mode::Default;
    let events = run(&bench.deps, SessionChoice::New, &["go"]).await;
    let statuses: Vec<ToolCallStatus> =
        statuses(&events).into_iter().map(|(_, status)| status).collect();
    assert_eq!(statuses, [ToolCallStatus::Failed, ToolCallStatus::Denied]);
    let asked = |event: &&Envelope| matches!(event.event, AgentEvent::ApprovalRequested(_));
    assert_eq!(events.iter().filter(asked).count(), 1);
    assert!(bench.runs.lock().unwrap().is_empty());
}

#[tokio::test]
async fn in_plan_mode_a_change_is_denied_and_brings_nothing() {
    let files = [("a/AGENTS.md", "Words.".to_owned())];
    let mut bench = writing([calls(vec![put("a/new.txt")]), say("planned")], &files);
    bench.deps.options.mode.value = Mode::Plan;
    let events = run(&bench.deps, SessionChoice::New, &["go"]).await;
    assert_eq!(brought(&events), [vec![""; 0]]);
}

#[tokio::test]
async fn two_changes_of_one_answer_share_the_words_and_a_rewind_takes_them_back() {
    let files = [("a/AGENTS.md", "Words.".to_owned())];
    let both = || calls(vec![put("a/one.txt"), put("a/two.txt")]);
    let bench = writing([both(), both(), say("done"), both(), say("again")], &files);
    let mut runtime = Runtime::start(bench.deps.clone(), SessionChoice::New);
    let mut events = Vec::new();
    runtime.commands.send(Command::Prompt { text: "go".into() }).await.unwrap();
    let mut turns = 0;
    while let Some(event) = runtime.events.recv().await {
        if matches!(event.event, AgentEvent::TurnFinished(_)) {
            turns += 1;
            if turns == 1 {
                assert_eq!(brought(&events), [vec!["a/AGENTS.md"], vec![], vec![], vec![]]);
                assert_eq!(*bench.runs.lock().unwrap(), ["\"a/one.txt\"", "\"a/two.txt\""]);
                let rewind = Command::Rewind { to: ItemId::user(1, 0), files: false };
                runtime.commands.send(rewind).await.unwrap();
                let text = "go again".into();
                runtime.commands.send(Command::Prompt { text }).await.unwrap();
            } else {
                runtime.commands.send(Command::Close).await.unwrap();
            }
        }
        events.push((*event).clone());
    }
    assert_eq!(brought(&events), [vec!["a/AGENTS.md"], vec![]]);
    assert_eq!(bench.runs.lock().unwrap().len(), 2, "the last answer was held back");
}
