//! Tests of `notebook_edit` on real files.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::fixture::{Fixture, run};

/// As Jupyter writes it.
const NOTEBOOK: &str = r##"{
 "cells": [
  {
   "cell_type": "code",
   "execution_count": 3,
   "id": "a1",
   "metadata": {"custom": 1.10},
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": [
      "1\n"
     ]
    }
   ],
   "source": [
    "x = 1\n",
    "print(x)"
   ]
  },
  {
   "cell_type": "markdown",
   "id": "b2",
   "metadata": {},
   "source": "# T\n\ntext"
  }
 ],
 "metadata": {"kept": [1,2]},
 "nbformat": 4,
 "nbformat_minor": 5
}
"##;

fn edit(fixture: &Fixture, mut arguments: Value) -> ToolOutput {
    arguments["path"] = json!("n.ipynb");
    run(&NotebookEdit::new(&fixture.workspace), arguments)
}

fn done(fixture: &Fixture, arguments: Value) -> String {
    let output = edit(fixture, arguments);
    assert!(!output.result.is_error, "{}", output.result.text);
    output.result.text
}

fn fixture(notebook: &str) -> Fixture {
    let fixture = Fixture::new();
    fixture.put_seen("n.ipynb", notebook);
    fixture
}

fn cleared(notebook: &str) -> String {
    let start = notebook.find("\"outputs\": [\n").unwrap();
    let end = notebook.find("   ],\n   \"source\"").unwrap() + 4;
    let mut cleared = notebook.replace("\"execution_count\": 3", "\"execution_count\": null");
    let shift = cleared.len() - notebook.len();
    cleared.replace_range(start + shift..end + shift, "\"outputs\": []");
    cleared
}

#[test]
fn a_source_keeps_its_shape_and_stale_outputs_go() {
    let fixture = fixture(NOTEBOOK);
    let said = done(
        &fixture,
        json!({"op": "replace", "cell": "a1", "source": "def f():\n    return 1\n\nf()"}),
    );
    assert!(said.starts_with("Replaced cell 0. Its outputs were cleared; it has to be run again."));
    let expected = cleared(NOTEBOOK).replace(
        "    \"x = 1\\n\",\n    \"print(x)\"\n",
        "    \"def f():\\n\",\n    \"    return 1\\n\",\n    \"\\n\",\n    \"f()\"\n",
    );
    assert_eq!(fixture.text("n.ipynb"), expected);
    done(&fixture, json!({"op": "replace", "cell": "b2", "source": "# U\nv"}));
    let expected = expected.replace("# T\\n\\ntext", "# U\\nv");
    assert_eq!(fixture.text("n.ipynb"), expected);
    done(&fixture, json!({"op": "replace", "cell": 0, "source": ""}));
    let now: Value = serde_json::from_str(&fixture.text("n.ipynb")).unwrap();
    assert_eq!(now["cells"][0]["source"], json!([]));
    assert!(fixture.text("n.ipynb").contains("\"metadata\": {\"custom\": 1.10}"));
}

#[test]
fn a_new_cell_is_laid_out_as_the_others() {
    let fixture = fixture(NOTEBOOK);
    let said = done(&fixture, json!({"op": "insert", "cell": "b2", "source": "a\nb"}));
    let now = fixture.text("n.ipynb");
    let cell: Value = serde_json::from_str::<Value>(&now).unwrap()["cells"][1].clone();
    let id = cell["id"].as_str().unwrap();
    assert!(said.starts_with(&format!("Inserted cell 1 with id {id}.")), "{said}");
    assert_eq!(id.len(), 8);
    let new = format!(
        "  {{\n   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \"id\": \"{id}\",\n   \
         \"metadata\": {{}},\n   \"outputs\": [],\n   \"source\": [\n    \"a\\n\",\n    \"b\"\n   \
         ]\n  }},\n"
    );
    let place = NOTEBOOK.find("  {\n   \"cell_type\": \"markdown\"").unwrap();
    let mut expected = NOTEBOOK.to_owned();
    expected.insert_str(place, &new);
    assert_eq!(now, expected);
}

#[test]
fn a_cell_can_be_put_at_the_end_and_taken_away() {
    let fixture = fixture(NOTEBOOK);
    let said = done(&fixture, json!({"op": "insert", "type": "markdown", "source": "end"}));
    assert!(said.starts_with("Inserted cell 2 with id "));
    let now: Value = serde_json::from_str(&fixture.text("n.ipynb")).unwrap();
    let cell = &now["cells"][2];
    assert_eq!(
        *cell,
        json!({"cell_type": "markdown", "id": cell["id"], "metadata": {}, "source": ["end"]})
    );
    assert!(done(&fixture, json!({"op": "delete", "cell": 2})).starts_with("Deleted cell 2."));
    assert_eq!(fixture.text("n.ipynb"), NOTEBOOK);
}

#[test]
fn older_notebooks_get_no_ids() {
    let fixture = fixture(&NOTEBOOK.replace("minor\": 5", "minor\": 4"));
    assert!(done(&fixture, json!({"op": "insert", "source": "x"})).starts_with("Inserted cell 2."));
    let now: Value = serde_json::from_str(&fixture.text("n.ipynb")).unwrap();
    assert_eq!(now["cells"][2].get("id"), None);
}

#[test]
fn a_cell_of_another_type_has_what_that_type_has() {
    let fixture = fixture(NOTEBOOK);
    done(&fixture, json!({"op": "replace", "cell": "a1", "type": "markdown"}));
    done(&fixture, json!({"op": "replace", "cell": "b2", "type": "code", "source": "y"}));
    let now: Value = serde_json::from_str(&fixture.text("n.ipynb")).unwrap();
    assert_eq!(
        now["cells"],
        json!([
            {"cell_type": "markdown", "id": "a1", "metadata": {"custom": 1.1}, "source": ["x = 1\n", "print(x)"]},
            {"cell_type": "code", "id": "b2", "metadata": {}, "source": "y", "outputs": [], "execution_count": null},
        ])
    );
}

#[test]
fn what_is_wrong_is_said_and_nothing_is_written() {
    let fixture = fixture(NOTEBOOK);
    let refused = |arguments: Value| {
        let output = edit(&fixture, arguments);
        assert!(output.result.is_error);
        assert_eq!(fixture.text("n.ipynb"), NOTEBOOK);
        output.result.text
    };
    assert_eq!(
        refused(json!({"op": "replace", "cell": 7, "source": ""})),
        "Nothing was written. n.ipynb: there is no cell 7: it has 2 cells, 0 to 1. notebook_read \
         shows their ids."
    );
    assert!(refused(json!({"op": "delete"})).ends_with("name the cell by its id or index."));
    assert!(refused(json!({"op": "replace", "cell": 0})).contains("new source or type"));
    assert!(
        refused(json!({"op": "replace", "cell": "b2", "source": "# T\n\ntext"}))
            .contains("has this cell already")
    );
    fixture.put("n.ipynb", NOTEBOOK.replace("x = 1", "x = 2"));
    let output = edit(&fixture, json!({"op": "delete", "cell": 0}));
    assert!(output.result.text.contains("changed on disk since it was read"));
}

#[test]
fn ids_that_two_cells_have_are_no_names() {
    let fixture = fixture(&NOTEBOOK.replace("b2", "a1"));
    let output = edit(&fixture, json!({"op": "delete", "cell": "a1"}));
    assert!(output.result.text.contains("several cells have the id a1: use an index (0, 1)."));
}

fn cell() -> impl Strategy<Value = Value> {
    let source = "[a-z\n\"\\\\é]{0,8}";
    (source, any::<bool>(), any::<bool>(), any::<u8>()).prop_map(|(text, list, code, number)| {
        let source = super::source(&text, list);
        if code {
            let output = json!({"output_type": "stream", "name": "stdout", "text": text});
            json!({"source": source, "cell_type": "code", "outputs": [output], "execution_count": number, "metadata": {"n": number}})
        } else {
            json!({"cell_type": "markdown", "metadata": {}, "source": source, "extra": null})
        }
    })
}

proptest! {
    #[test]
    fn other_cells_keep_their_bytes(
        cells in prop::collection::vec(cell(), 1..6),
        pick in any::<prop::sample::Index>(),
        pretty in any::<bool>(),
        text in "[a-z\n\"é]{0,8}",
        op in 0_usize..3,
    ) {
        let place = pick.index(cells.len());
        let notebook = json!({"cells": cells, "nbformat": 4, "nbformat_minor": 4, "metadata": {}});
        let file = if pretty {
            serde_json::to_string_pretty(&notebook).unwrap()
        } else {
            notebook.to_string()
        };
        let op = [Op::Replace, Op::Insert, Op::Delete][op];
        let args = Args {
            path: String::new(),
            op,
            cell: Some(CellName::Index(place)),
            source: Some(text.clone()),
            kind: None,
        };
        let (bytes, _) = edited(file.clone().into_bytes(), &args).unwrap();
        let now = String::from_utf8(bytes).unwrap();
        let raw = |text: &str| -> Vec<String> {
            Notebook::parse(text).unwrap().cells().map(|cell| cell.0.raw().to_owned()).collect()
        };
        let (mut before, mut after) = (raw(&file), raw(&now));
        match op {
            Op::Insert => {
                let new: Value = serde_json::from_str(&after.remove(place)).unwrap();
                prop_assert_eq!(crate::notebook::joined(Node::parse(&new["source"].to_string()).unwrap()), text);
            }
            Op::Delete => {
                before.remove(place);
            }
            Op::Replace => {
                let old: Value = serde_json::from_str(&before.remove(place)).unwrap();
                let new: Value = serde_json::from_str(&after.remove(place)).unwrap();
                let mut expected = old.clone();
                expected["source"] = super::source(&text, old["source"].is_array());
                if old["cell_type"] == "code" {
                    expected["outputs"] = json!([]);
                    expected["execution_count"] = Value::Null;
                }
                prop_assert_eq!(new, expected);
            }
        }
        prop_assert_eq!(before, after);
        let tail = &file[file.rfind("\"nbformat\"").unwrap()..];
        prop_assert!(now.ends_with(tail));
    }
}
