//! Prints definitions in the standard layout.

use super::nodes::{Block, Node};

use crate::lexer::{Kind, Lexed};
use crate::span::Source;
use crate::words::{Word, comment_text, words};

const INDENT: usize = 4;
const MOST_COLUMNS: usize = 100;

/// Returns the formatted text, which ends with a line break.
pub(super) fn print(text: &str, source: &Source, lexed: &Lexed, nodes: &[Node]) -> String {
    let mut printer = Printer { text, source, lexed, out: String::new(), level: 0, line_open: false, fresh: true };
    printer.nodes(nodes, lexed.tokens.len());
    printer.end_line();
    printer.out
}

struct Printer<'a> {
    text: &'a str,
    source: &'a Source<'a>,
    lexed: &'a Lexed,
    out: String,
    level: usize,
    /// Whether the current line is not empty.
    line_open: bool,
    /// Whether nothing has been printed in this block yet, in which case no blank line may precede the next line.
    fresh: bool,
}

impl Printer<'_> {
    /// Prints the definitions of a block, and then the comments before the token `end`, which ends the block.
    fn nodes(&mut self, nodes: &[Node], end: usize) {
        let mut before: Option<&Node> = None;
        for node in nodes {
            self.comments(node.first);
            if !before.is_some_and(|b| self.joins(b, node)) {
                self.new_line(self.start_of(node.first), node.first);
                self.node(node);
            } else {
                let line = self.one_line(node);
                self.out.push(' ');
                self.out += &line;
            }
            // Keep the comments before a `;` that is removed.
            let after_block = node.block.as_ref().map_or(node.last, |b| b.close);
            (after_block + 1..=node.last).filter(|_| node.block.is_some()).for_each(|i| self.comments(i));
            before = Some(node);
        }
        self.comments(end);
    }

    fn start_of(&self, token: usize) -> usize {
        self.lexed.tokens.get(token).map_or(self.text.len(), |t| t.span.start())
    }

    /// Prints comments between definitions, either at the end of a line or on their own lines.
    fn comments(&mut self, token: usize) {
        for comment in self.lexed.comments_before(token) {
            if comment.starts_line || !self.line_open {
                self.new_line(comment.span.start(), token);
            } else {
                self.out.push(' ');
            }
            self.out += &comment_text(self.text.get(comment.span.range()).unwrap_or_default());
            self.line_open = true;
            self.fresh = false;
        }
    }

    fn end_line(&mut self) {
        if std::mem::replace(&mut self.line_open, false) {
            self.out.push('\n');
        }
    }

    /// Starts a line for the text at `offset`, which is `token` or a comment before it. Keeps at most one blank line
    /// before this text.
    fn new_line(&mut self, offset: usize, token: usize) {
        self.end_line();
        if !self.fresh && self.follows_blank_line(offset, token) {
            self.out.push('\n');
        }
        self.fresh = false;
        self.out += &" ".repeat(self.level * INDENT);
        self.line_open = true;
    }

    /// Checks whether a blank line precedes an offset in the text.
    fn follows_blank_line(&self, offset: usize, token: usize) -> bool {
        let comments = self.lexed.comments_before(token);
        let earlier = comments.partition_point(|c| c.span.end() <= offset);
        let comment = earlier.checked_sub(1).and_then(|last| comments.get(last)).map(|c| c.span.end());
        let token = token.checked_sub(1).and_then(|t| self.lexed.tokens.get(t)).map(|t| t.span.end());
        let before = comment.or(token).unwrap_or(0);
        self.source.line_of(offset) > self.source.line_of(before) + 1
    }

    fn node(&mut self, node: &Node) {
        if self.stays_on_one_line(node) {
            let line = self.one_line(node);
            self.out += &line;
            return;
        }
        match &node.block {
            None => {
                // Add the `;` that a record without a block may lack. If the text contains the `;`, a comment may
                // precede it.
                let end = if node.last == node.head_end { ";" } else { "" };
                self.head(words(self.text, self.lexed, node.first, node.last), end);
            }
            Some(block) => {
                let head = words(self.text, self.lexed, node.first, node.head_end);
                let comments = words(self.text, self.lexed, node.head_end, block.open);
                let between = comments.into_iter().skip(1).filter(|w| w.text != "{");
                self.head(head.into_iter().chain(between).collect(), " {");
                self.block(block);
            }
        }
    }

    fn block(&mut self, block: &Block) {
        self.level += 1;
        self.fresh = true;
        self.nodes(&block.nodes, block.close);
        self.level -= 1;
        if std::mem::take(&mut self.fresh) {
            self.out.push('}');
            return;
        }
        self.end_line();
        self.out += &" ".repeat(self.level * INDENT);
        self.out.push('}');
        self.line_open = true;
    }

    /// Fills lines with words, and appends `end` to the last word. A line breaks before a field rather than inside it.
    fn head(&mut self, words: Vec<Word>, end: &str) {
        let indent = (self.level + 1) * INDENT;
        let mut column = self.level * INDENT;
        let (mut fresh_line, mut after_comment) = (true, false);
        // The columns of each word, and those from the word up to the end of its field.
        let mut widths = Vec::with_capacity(words.len());
        let (mut after, mut field) = (end.len(), 0);
        for word in words.iter().rev() {
            let width = word.text.chars().count() + std::mem::take(&mut after);
            field = if word.text.ends_with(',') || field == 0 { width } else { width + 1 + field };
            widths.push((width, field));
        }
        let mut starts_field = false;
        for (word, (width, field)) in words.into_iter().zip(widths.into_iter().rev()) {
            let width = if starts_field { field } else { width };
            let is_full = column + 1 + width > MOST_COLUMNS && !word.stays_on_line;
            starts_field = word.text.ends_with(',');
            if !fresh_line && (is_full || word.starts_line || after_comment) {
                self.break_line(indent, &mut column);
            } else if !fresh_line {
                self.out.push(' ');
                column += 1;
            }
            self.out += &word.text;
            column = word
                .text
                .rsplit_once('\n')
                .map_or(column + word.text.chars().count(), |(_, last)| last.chars().count());
            fresh_line = word.ends_line;
            // A field follows its comment on the next line.
            after_comment = word.starts_line && !word.ends_line;
            if word.ends_line {
                self.break_line(indent, &mut column);
            }
        }
        self.out += end;
        self.line_open = true;
    }

    fn break_line(&mut self, indent: usize, column: &mut usize) {
        self.out.push('\n');
        self.out += &" ".repeat(indent);
        *column = indent;
    }

    /// Checks whether a property, or a definition that was written on one line, fits on one line and contains no
    /// comment.
    fn stays_on_one_line(&self, node: &Node) -> bool {
        let line_of = |token: usize| self.source.line_of(self.start_of(token));
        let stood = node.block.is_none() || line_of(node.first) == line_of(node.last);
        stood && !self.lexed.has_comments(node.first, node.last) && self.fits(node, self.level * INDENT)
    }

    fn fits(&self, node: &Node, column: usize) -> bool {
        // If the node's text is much longer than a line, it cannot fit, so it need not be laid out.
        let bytes = self.start_of(node.last).saturating_sub(self.start_of(node.first));
        bytes < 100 * MOST_COLUMNS && column + self.one_line(node).chars().count() <= MOST_COLUMNS
    }

    /// Checks whether two properties share a line, because they belong to the same field and were written on one line.
    fn joins(&self, before: &Node, node: &Node) -> bool {
        let column = self.out.rsplit('\n').next().map_or(0, |line| line.chars().count());
        !before.is_definition
            && !node.is_definition
            && self.source.line_of(self.start_of(before.last)) == self.source.line_of(self.start_of(node.first))
            && self.lexed.comments_before(node.first).is_empty()
            && !self.lexed.has_comments(before.first, before.last)
            && !self.lexed.has_comments(node.first, node.last)
            && self.path(before) == self.path(node)
            && self.fits(node, column + 1)
    }

    /// Returns the words of a property's path, without the property name.
    fn path(&self, node: &Node) -> Vec<&str> {
        let tokens = self.lexed.tokens.get(node.first..=node.head_end).unwrap_or_default();
        let names = tokens.iter().take_while(|t| t.kind != Kind::Mark(b'=')).filter(|t| t.kind == Kind::Name);
        let mut path: Vec<&str> = names.filter_map(|t| self.text.get(t.span.range())).collect();
        path.pop();
        path
    }

    fn one_line(&self, node: &Node) -> String {
        let head = words(self.text, self.lexed, node.first, node.head_end);
        let mut line = head.into_iter().map(|w| w.text).collect::<Vec<_>>().join(" ");
        match &node.block {
            None => line.push(';'),
            Some(block) if block.nodes.is_empty() => line += " {}",
            Some(block) => {
                let inner: Vec<String> = block.nodes.iter().map(|n| self.one_line(n)).collect();
                line += &format!(" {{ {} }}", inner.join(" "));
            }
        }
        line
    }
}
