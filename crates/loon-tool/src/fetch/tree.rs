//! HTML as a tree, within bounds: a small page can ask for a tree of any size and depth.

use std::borrow::Cow;
use std::cell::Cell;

use html5ever::interface::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::{StrTendril, TendrilSink as _};
use html5ever::tree_builder::TreeBuilderOpts;
use html5ever::{Attribute, ExpandedName, ParseOpts, QualName, parse_document};
use markup5ever_rcdom::{Handle, RcDom};
use tokio_util::sync::CancellationToken;

/// Most elements and comments of a tree.
const NODES: usize = 200_000;
/// Nesting at which reading stops.
const DEPTH: usize = 1000;
/// Bytes given to the parser between two looks at the bounds.
const PIECE: usize = 1024;

/// Reads HTML. The flag says that the tree holds only a part of it.
pub(super) fn parse(html: &str, stop: &CancellationToken) -> Result<(RcDom, bool), String> {
    let options = ParseOpts {
        // What is meant for readers without scripts is meant for us.
        tree_builder: TreeBuilderOpts { scripting_enabled: false, ..Default::default() },
        ..Default::default()
    };
    let sink = Bounded { dom: RcDom::default(), nodes: Cell::new(0) };
    let mut parser = parse_document(sink, options);
    let mut rest = html;
    while !rest.is_empty() {
        if stop.is_cancelled() {
            return Err("Cancelled.".to_owned());
        }
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(PIECE));
        parser.process(StrTendril::from_slice(piece));
        rest = after;
        let sink = &parser.tokenizer.sink.sink;
        if sink.nodes.get() > NODES || depth_at_the_end(&sink.dom.document) > DEPTH {
            break;
        }
    }
    Ok((parser.finish(), !rest.is_empty()))
}

fn depth_at_the_end(document: &Handle) -> usize {
    let mut depth = 0;
    let mut node = Handle::clone(document);
    loop {
        let last = node.children.borrow().last().cloned();
        let Some(last) = last else { return depth };
        depth += 1;
        node = last;
    }
}

/// Counts what the parser makes, and hears nothing of its complaints.
struct Bounded {
    dom: RcDom,
    nodes: Cell<usize>,
}

impl Bounded {
    fn count(&self) {
        self.nodes.set(self.nodes.get() + 1);
    }
}

impl TreeSink for Bounded {
    type Handle = Handle;
    type Output = RcDom;
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) -> RcDom {
        self.dom
    }

    fn parse_error(&self, _message: Cow<'static, str>) {}

    fn get_document(&self) -> Handle {
        self.dom.get_document()
    }

    fn elem_name<'a>(&'a self, target: &'a Handle) -> ExpandedName<'a> {
        self.dom.elem_name(target)
    }

    fn create_element(&self, name: QualName, attrs: Vec<Attribute>, flags: ElementFlags) -> Handle {
        self.count();
        self.dom.create_element(name, attrs, flags)
    }

    fn create_comment(&self, text: StrTendril) -> Handle {
        self.count();
        self.dom.create_comment(text)
    }

    fn create_pi(&self, target: StrTendril, data: StrTendril) -> Handle {
        self.count();
        self.dom.create_pi(target, data)
    }

    fn append(&self, parent: &Handle, child: NodeOrText<Handle>) {
        self.dom.append(parent, child);
    }

    fn append_based_on_parent_node(
        &self,
        element: &Handle,
        prev_element: &Handle,
        child: NodeOrText<Handle>,
    ) {
        self.dom.append_based_on_parent_node(element, prev_element, child);
    }

    fn append_doctype_to_document(
        &self,
        name: StrTendril,
        public_id: StrTendril,
        system_id: StrTendril,
    ) {
        self.dom.append_doctype_to_document(name, public_id, system_id);
    }

    fn get_template_contents(&self, target: &Handle) -> Handle {
        self.dom.get_template_contents(target)
    }

    fn same_node(&self, one: &Handle, other: &Handle) -> bool {
        self.dom.same_node(one, other)
    }

    fn set_quirks_mode(&self, mode: QuirksMode) {
        self.dom.set_quirks_mode(mode);
    }

    fn append_before_sibling(&self, sibling: &Handle, node: NodeOrText<Handle>) {
        self.dom.append_before_sibling(sibling, node);
    }

    fn add_attrs_if_missing(&self, target: &Handle, attrs: Vec<Attribute>) {
        self.dom.add_attrs_if_missing(target, attrs);
    }

    fn remove_from_parent(&self, target: &Handle) {
        self.dom.remove_from_parent(target);
    }

    fn reparent_children(&self, node: &Handle, new_parent: &Handle) {
        self.dom.reparent_children(node, new_parent);
    }

    fn is_mathml_annotation_xml_integration_point(&self, handle: &Handle) -> bool {
        self.dom.is_mathml_annotation_xml_integration_point(handle)
    }
}
