//! Projects of Go.

use super::{Project, Purpose, Request, words};

pub(super) fn commands(
    project: &Project<'_>,
    request: &Request,
) -> Result<Vec<Vec<String>>, String> {
    project.require("go", "Ask the user to install Go.")?;
    let verb = match request.purpose {
        Purpose::Test => "test",
        Purpose::Build => "build",
        Purpose::Lint => "vet",
    };
    let mut command = words(&["go", verb], request.args.iter().cloned());
    match &request.filter {
        Some(filter) if project.is_path(filter) => command.push(packages(project, filter)),
        Some(filter) => command.extend([format!("-run={filter}"), "./...".to_owned()]),
        None => command.push("./...".to_owned()),
    }
    Ok(vec![command])
}

/// Go tests packages, not files.
fn packages(project: &Project<'_>, path: &str) -> String {
    let path = path.trim_start_matches("./").trim_end_matches('/');
    if project.folder.join(path).is_dir() {
        return if path.is_empty() || path == "." {
            "./...".to_owned()
        } else {
            format!("./{path}/...")
        };
    }
    match path.rsplit_once('/') {
        Some((folder, _)) => format!("./{folder}"),
        None => ".".to_owned(),
    }
}
