//! The tree of tags, by which assistive technology reads the document.

use krilla::tagging::{Identifier, Node, TagGroup, TagKind, TagTree};

/// A node of the tree, before the contents have their identifiers.
pub(super) enum Tagged {
    Group(TagKind, Vec<Self>),
    /// Content with this number.
    Content(usize),
}

impl Tagged {
    pub(super) fn group(tag: impl Into<TagKind>, children: Vec<Self>) -> Self {
        Self::Group(tag.into(), children)
    }

    fn into_node(self, identifiers: &mut [Option<Identifier>]) -> Option<Node> {
        match self {
            Self::Group(tag, children) => {
                let nodes = children.into_iter().filter_map(|child| child.into_node(identifiers));
                Some(TagGroup::with_children(tag, nodes.collect()).into())
            }
            Self::Content(number) => identifiers.get_mut(number)?.take().map(Node::Leaf),
        }
    }
}

/// Returns the tree with the identifiers of the contents.
pub(super) fn tree(tags: Vec<Tagged>, identifiers: &mut [Option<Identifier>]) -> TagTree {
    let nodes = tags.into_iter().filter_map(|tag| tag.into_node(identifiers));
    TagTree::from(nodes.collect::<Vec<_>>()).with_lang(Some("en".to_owned()))
}
