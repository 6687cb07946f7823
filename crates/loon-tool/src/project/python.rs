//! Projects of Python: by uv, poetry, a virtual environment, or what is installed.

use toml_edit::DocumentMut;

use super::{Project, Request, Task, words};

/// Folders of a virtual environment.
const ENVIRONMENTS: [&str; 2] = [".venv", "venv"];

/// What runs the project's programs.
enum Runner {
    /// A tool that keeps the project's environment, and the lock file's text.
    Manager { words: [&'static str; 2], lock: String },
    /// The folder with the programs of a virtual environment.
    Environment(String),
    /// What is on `PATH`.
    System,
}

pub(super) fn commands(
    project: &Project<'_>,
    request: &Request,
) -> Result<Vec<Vec<String>>, String> {
    let runner = Runner::find(project)?;
    match request.task {
        Task::Test => test(project, &runner, request),
        Task::Build => build(project, &runner, request),
        Task::Lint => lint(project, &runner, request),
    }
}

impl Runner {
    fn find(project: &Project<'_>) -> Result<Self, String> {
        let locked =
            |name: &str| project.upwards().find_map(|folder| super::read(&folder.join(name)).ok());
        let managers = [
            ("uv.lock", ["uv", "run"], "Ask the user to install uv."),
            ("poetry.lock", ["poetry", "run"], "Ask the user to install poetry."),
        ];
        let environment = Self::environment(project);
        for (file, words, how) in managers {
            let Some(lock) = locked(file) else { continue };
            if (project.installed)(words[0]) {
                return Ok(Self::Manager { words, lock });
            }
            if environment.is_none() {
                project.require(words[0], how)?;
            }
        }
        Ok(environment.map_or(Self::System, Self::Environment))
    }

    /// The nearest environment: relative in the project's own folder, else absolute.
    fn environment(project: &Project<'_>) -> Option<String> {
        project.upwards().find_map(|folder| {
            let name =
                ENVIRONMENTS.iter().find(|name| folder.join(name).join("bin/python").exists())?;
            Some(if folder == project.folder {
                format!("{name}/bin")
            } else {
                folder.join(name).join("bin").to_string_lossy().into_owned()
            })
        })
    }

    /// The program is there, as far as can be told without running anything.
    fn has(&self, project: &Project<'_>, program: &str) -> bool {
        match self {
            Self::Manager { lock, .. } => {
                lock.lines().any(|line| line.trim() == format!("name = \"{program}\""))
            }
            Self::Environment(bin) => project.folder.join(bin).join(program).exists(),
            Self::System => (project.installed)(program),
        }
    }

    /// The words that run a program.
    fn program(&self, program: &str) -> Vec<String> {
        match self {
            Self::Manager { words: fixed, .. } => words(fixed, [program.to_owned()]),
            Self::Environment(bin) => vec![format!("{bin}/{program}")],
            Self::System => vec![program.to_owned()],
        }
    }

    fn python(&self, project: &Project<'_>) -> Result<Vec<String>, String> {
        match self {
            Self::System if (project.installed)("python3") => Ok(words(&["python3"], [])),
            Self::System => {
                project.require("python", "Ask the user to install Python.")?;
                Ok(words(&["python"], []))
            }
            _ => Ok(self.program("python")),
        }
    }
}

fn test(
    project: &Project<'_>,
    runner: &Runner,
    request: &Request,
) -> Result<Vec<Vec<String>>, String> {
    let filter = request.filter.as_deref();
    if runner.has(project, "pytest") {
        let mut command = match runner {
            // So the project's own modules are found although it is not installed.
            Runner::Environment(_) => {
                let mut python = runner.python(project)?;
                python.extend(words(&["-m", "pytest"], []));
                python
            }
            _ => runner.program("pytest"),
        };
        command.extend(request.args.iter().cloned());
        match filter {
            Some(filter) if is_node(project, filter) => command.push(filter.to_owned()),
            Some(filter) => command.extend(["-k".to_owned(), filter.to_owned()]),
            None => {}
        }
        return Ok(vec![command]);
    }
    if uses_pytest(project) {
        return Err(format!(
            "The tests of {} are for pytest, which is not installed {}. Install it there by bash, if the user agrees.",
            project.shown,
            match runner {
                Runner::Manager { words, .. } =>
                    format!("for {}: it is not in the lock file", words[0]),
                Runner::Environment(bin) => format!("in {bin}"),
                Runner::System => "or not on PATH".to_owned(),
            }
        ));
    }
    let mut command = runner.python(project)?;
    command.extend(words(&["-m", "unittest"], request.args.iter().cloned()));
    match filter {
        Some(filter) if project.is_path(filter) || is_module(project, filter) => {
            command.push(filter.to_owned());
        }
        Some(filter) => command.extend(words(&["discover", "-k"], [filter.to_owned()])),
        None => command.push("discover".to_owned()),
    }
    Ok(vec![command])
}

/// `tests/test_a.py`, or `tests/test_a.py::test_one`.
fn is_node(project: &Project<'_>, filter: &str) -> bool {
    project.is_path(filter.split("::").next().unwrap_or(filter))
}

/// `tests.test_a.Case.test_one`.
fn is_module(project: &Project<'_>, filter: &str) -> bool {
    filter.split_once('.').is_some_and(|(first, _)| {
        project.folder.join(first).is_dir() || project.has(&format!("{first}.py"))
    })
}

/// The project names pytest, in its settings or among what it needs.
fn uses_pytest(project: &Project<'_>) -> bool {
    const NAMED_IN: [&str; 6] = [
        "pyproject.toml",
        "setup.py",
        "setup.cfg",
        "tox.ini",
        "requirements.txt",
        "requirements-dev.txt",
    ];
    project.has("pytest.ini")
        || project.has("conftest.py")
        || project.has("tests/conftest.py")
        || NAMED_IN.iter().any(|name| project.read(name).contains("pytest"))
}

/// The settings have a table `[tool.NAME]`.
fn has_table(settings: &str, name: &str) -> bool {
    let Ok(settings) = settings.parse::<DocumentMut>() else { return false };
    settings.get("tool").and_then(|tool| tool.get(name)).is_some()
}

fn build(
    project: &Project<'_>,
    runner: &Runner,
    request: &Request,
) -> Result<Vec<Vec<String>>, String> {
    let settings = project.read("pyproject.toml");
    let has_system =
        settings.parse::<DocumentMut>().is_ok_and(|settings| settings.contains_key("build-system"));
    if !has_system && !project.has("setup.py") {
        return Err(format!(
            "There is nothing to build in {}: no build-system in pyproject.toml and no setup.py.",
            project.shown
        ));
    }
    let added = request.args.iter().cloned();
    if let Runner::Manager { words: [manager, _], .. } = runner {
        return Ok(vec![words(&[manager, "build"], added)]);
    }
    if !runner.has(project, "pyproject-build") {
        return Err(format!(
            "The Python package build, which builds {}, is not installed. Install it by bash (pip install build), if the user agrees.",
            project.shown
        ));
    }
    let mut command = runner.python(project)?;
    command.extend(words(&["-m", "build"], added));
    Ok(vec![command])
}

fn lint(
    project: &Project<'_>,
    runner: &Runner,
    request: &Request,
) -> Result<Vec<Vec<String>>, String> {
    let settings = project.read("pyproject.toml");
    let ruff =
        has_table(&settings, "ruff") || project.has("ruff.toml") || project.has(".ruff.toml");
    let mypy = has_table(&settings, "mypy")
        || project.has("mypy.ini")
        || project.has(".mypy.ini")
        || project.read("setup.cfg").contains("[mypy]");
    // Where nothing is set, what is there is used.
    let wanted = match (ruff, mypy) {
        (false, false) => ["ruff", "mypy"]
            .into_iter()
            .filter(|linter| runner.has(project, linter))
            .take(1)
            .collect(),
        _ => [("ruff", ruff), ("mypy", mypy)]
            .into_iter()
            .filter_map(|(linter, set)| set.then_some(linter))
            .collect::<Vec<_>>(),
    };
    if wanted.is_empty() {
        return Err(format!(
            "No linter for {}: neither ruff nor mypy is set up or installed. Install one by bash, if the user agrees.",
            project.shown
        ));
    }
    if let Some(missing) = wanted.iter().find(|linter| !runner.has(project, linter)) {
        return Err(format!(
            "{} is set up for {missing}, which is not installed. Install it by bash (pip install {missing}), if the user agrees.",
            project.shown
        ));
    }
    // Options fit one linter only.
    let count = if request.args.is_empty() { wanted.len() } else { 1 };
    let commands = wanted.into_iter().take(count).map(|linter| {
        let mut command = runner.program(linter);
        if linter == "ruff" {
            command.push("check".to_owned());
        }
        command.extend(request.args.iter().cloned());
        command.push(".".to_owned());
        command
    });
    Ok(commands.collect())
}
