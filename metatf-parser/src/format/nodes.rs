//! Groups the tokens of a DTD into definitions. The text must follow the grammar.

use crate::lexer::Lexed;

/// The token indices of a property, record or section.
pub(super) struct Node {
    /// The first token.
    pub(super) first: usize,
    /// The last token before the block, or the last token of the definition without its final `;`.
    pub(super) head_end: usize,
    /// The last token.
    pub(super) last: usize,
    /// Whether this is a record or a section, not a property.
    pub(super) is_definition: bool,
    /// The block in braces.
    pub(super) block: Option<Block>,
}

pub(super) struct Block {
    pub(super) open: usize,
    pub(super) nodes: Vec<Node>,
    pub(super) close: usize,
}

pub(super) fn tree(lexed: &Lexed) -> Vec<Node> {
    let mut reader = Reader { lexed, at: 0 };
    reader.nodes()
}

struct Reader<'a> {
    lexed: &'a Lexed,
    at: usize,
}

impl Reader<'_> {
    /// Reads definitions until a `}` or the end of the text. Braces nest at most two levels deep.
    fn nodes(&mut self) -> Vec<Node> {
        let mut nodes = Vec::new();
        while self.at < self.lexed.tokens.len() && self.lexed.mark(self.at) != Some(b'}') {
            nodes.push(self.node());
        }
        nodes
    }

    fn node(&mut self) -> Node {
        let first = self.at;
        let is_record = self.lexed.mark(first + 1) == Some(b':');
        let is_type = self.lexed.mark(first + 2) == Some(b':');
        if is_record {
            self.at = self.lexed.fields_end(first + 2);
        } else {
            while self.at < self.lexed.tokens.len() && !matches!(self.lexed.mark(self.at), Some(b';' | b'{' | b'}')) {
                self.at += 1;
            }
        }
        let head_end = self.at.saturating_sub(1).max(first);
        let mut node = Node { first, head_end, last: head_end, is_definition: is_record, block: None };
        if self.lexed.mark(self.at) == Some(b'{') {
            let open = self.at;
            self.at += 1;
            let nodes = self.nodes();
            node.block = Some(Block { open, nodes, close: self.at });
            node.is_definition = true;
            node.last = self.at;
            self.at += 1;
        }
        // A section has no `;` after its block.
        if self.lexed.mark(self.at) == Some(b';') && (is_record || is_type || node.block.is_none()) {
            node.last = self.at;
            self.at += 1;
        }
        node
    }
}
