//! Tests of `notebook_read`.

use serde_json::{Value, json};

use super::*;
use crate::fixture::{Fixture, run};

fn read(fixture: &Fixture, arguments: Value) -> ToolOutput {
    run(&NotebookRead::new(&fixture.workspace), arguments)
}

fn notebook() -> Value {
    json!({
        "cells": [
            {"cell_type": "markdown", "id": "m1", "metadata": {}, "source": "# Title\n\ntext"},
            {
                "cell_type": "code", "execution_count": 3, "id": "c1", "metadata": {},
                "source": ["x = 1\n", "print(x)"],
                "outputs": [
                    {"output_type": "stream", "name": "stdout", "text": ["1\n", "\u{1b}[31m2\u{1b}[0m\n"]},
                    {
                        "output_type": "execute_result", "execution_count": 3, "metadata": {},
                        "data": {"image/png": "AAAAAAAA", "text/plain": ["<Figure>"], "text/html": "<b>"},
                    },
                    {
                        "output_type": "error", "ename": "NameError", "evalue": "no y",
                        "traceback": ["\u{1b}[0;31mTraceback\u{1b}[0m", "line"],
                    },
                ],
            },
            {"cell_type": "code", "execution_count": null, "id": "c2", "metadata": {}, "outputs": [], "source": []},
        ],
        "metadata": {"kernelspec": {"language": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    })
}

#[test]
fn cells_are_shown_with_sources_and_outputs() {
    let fixture = Fixture::new();
    fixture.put("n.ipynb", notebook().to_string());
    let output = read(&fixture, json!({"path": "n.ipynb"}));
    assert_eq!(
        output.result.text,
        "[nbformat 4.5, python, 3 cells]\n--- cell 0, markdown, id m1\n# Title\n\ntext\n--- cell \
         1, code, id c1, run 3\nx = 1\nprint(x)\n--- stdout\n1\n2\n--- execute_result (image/png of \
         6 bytes, text/html of 3 bytes not shown)\n<Figure>\n--- error NameError: no \
         y\nTraceback\nline\n--- cell 2, code, id c2\n"
    );
    assert_eq!(output.reads.len(), 1);
    assert!(fixture.workspace.read_state(&fixture.path("n.ipynb")).is_some());
}

#[test]
fn one_cell_or_a_page_of_cells_can_be_asked_for() {
    let fixture = Fixture::new();
    fixture.put("n.ipynb", notebook().to_string());
    let text = |arguments: Value| read(&fixture, arguments).result.text;
    let first = "[nbformat 4.5, python, 3 cells]\n--- cell 0, markdown, id m1\n# Title\n\ntext\n";
    assert_eq!(text(json!({"path": "n.ipynb", "cell": "m1"})), first);
    assert_eq!(text(json!({"path": "n.ipynb", "cell": "0"})), first);
    assert_eq!(text(json!({"path": "n.ipynb", "cell": 0})), first);
    assert_eq!(
        text(json!({"path": "n.ipynb", "limit": 1})),
        format!("{first}[cells 0-0 of 3; go on with offset 1]\n")
    );
    assert_eq!(
        text(json!({"path": "n.ipynb", "offset": 2})),
        "[nbformat 4.5, python, 3 cells]\n--- cell 2, code, id c2\n"
    );
    assert_eq!(
        text(json!({"path": "n.ipynb", "cell": "zz"})),
        "n.ipynb: there is no cell zz: it has 3 cells, 0 to 2. notebook_read shows their ids."
    );
    assert_eq!(
        text(json!({"path": "n.ipynb", "offset": 3})),
        "n.ipynb: offset 3 is past the end; it has 3 cells."
    );
}

#[test]
fn long_outputs_are_cut_and_more_is_shown_of_a_single_cell() {
    let fixture = Fixture::new();
    let stream = |text: String| json!({"output_type": "stream", "name": "stdout", "text": text});
    let mut notebook = notebook();
    notebook["cells"][1]["outputs"] =
        json!([stream("é\n".repeat(5000)), stream("second\n".to_owned())]);
    fixture.put("n.ipynb", notebook.to_string());
    let all = read(&fixture, json!({"path": "n.ipynb"})).result.text;
    assert!(
        all.contains("\n[output cut: 2.0 KiB of 14.6 KiB shown]\n[1 output more, not shown]\n")
    );
    let one = read(&fixture, json!({"path": "n.ipynb", "cell": 1})).result.text;
    assert!(one.ends_with("é\n--- stdout\nsecond\n"));
}

#[test]
fn a_long_notebook_is_paged() {
    let fixture = Fixture::new();
    let mut notebook = notebook();
    let cell = notebook["cells"][0].clone();
    notebook["cells"] = (0..100)
        .map(|number| {
            let mut cell = cell.clone();
            cell["source"] = json!(format!("{number} {}", "x".repeat(3000)));
            cell
        })
        .collect();
    fixture.put("n.ipynb", notebook.to_string());
    let page = read(&fixture, json!({"path": "n.ipynb"})).result.text;
    assert!(page.len() < 50 * 1024);
    assert!(
        page.ends_with("\n[cells 0-15 of 100; go on with offset 16]\n"),
        "{}",
        &page[page.len() - 60..]
    );
}

#[test]
fn what_is_no_notebook_of_ours_is_refused() {
    let fixture = Fixture::new();
    let text = |content: &str| {
        fixture.put("n.ipynb", content);
        let output = read(&fixture, json!({"path": "n.ipynb"}));
        assert!(output.result.is_error && output.reads.is_empty());
        output.result.text
    };
    assert_eq!(
        text("{\"nbformat\": 3, \"worksheets\": []}"),
        "n.ipynb: it is a notebook of format 3, and only format 4 is known. Convert it: jupyter \
         nbconvert --to notebook --nbformat 4 --inplace FILE"
    );
    assert!(text("{\"nbformat\": 5, \"cells\": []}").contains("format 5; only format 4"));
    assert!(text("{\"a\": 1}").contains("it has no nbformat. Use read_json."));
    assert!(text("{\"nbformat\": 4, \"cells\": {}}").contains("no list of cells"));
    assert!(text("{").contains("no valid JSON: line 1"));
}
