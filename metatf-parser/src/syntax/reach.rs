//! Finds the first mistake in a few items, for repairs.

use pest::Parser as _;

use super::expected;
use super::{Grammar, Rule};
use crate::lexer::{Kind, Lexed, Token};

/// A block that contains items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Block {
    Section,
    Record,
    Type,
}

/// Returns the blocks that are open before token `end`.
pub(crate) fn open_blocks(text: &str, tokens: &[Token], end: usize) -> Vec<Block> {
    let (mut blocks, mut head) = (Vec::new(), 0);
    for (index, token) in tokens.iter().enumerate().take(end) {
        let Kind::Mark(mark @ (b';' | b'{' | b'}')) = token.kind else { continue };
        match mark {
            b'{' => blocks.push(block(text, tokens.get(head))),
            b'}' => drop(blocks.pop()),
            _ => {}
        }
        head = index + 1;
    }
    blocks
}

/// Returns the block that an item with this first token opens.
fn block(text: &str, head: Option<&Token>) -> Block {
    match head.and_then(|token| text.get(token.span.range())) {
        Some("section") => Block::Section,
        Some("type") => Block::Type,
        _ => Block::Record,
    }
}

/// Returns the offset of the first mistake in items inside of `blocks`, or the length of the text if the grammar
/// accepts the items. The text may end in a block.
pub(crate) fn first_mistake(text: &str, lexed: &Lexed, mut blocks: Vec<Block>) -> usize {
    let start = |index: usize| lexed.tokens.get(index).map(|token| token.span.start());
    let (mut at, mut after_block) = (0, false);
    if !lexed.bad.is_empty() || lexed.open_comment {
        return 0;
    }
    while let Some(base) = start(at) {
        match lexed.mark(at) {
            Some(b'}') => match blocks.pop() {
                Some(block) => after_block = block != Block::Section,
                None => return base,
            },
            Some(b';') if std::mem::take(&mut after_block) => {}
            _ => {
                after_block = false;
                let rule = match blocks.last() {
                    None | Some(Block::Section) => Rule::item,
                    Some(Block::Record) => Rule::block_item,
                    Some(Block::Type) => Rule::type_item,
                };
                let first = lexed.tokens.get(at);
                match Grammar::parse(rule, text.get(base..).unwrap_or_default()) {
                    Ok(pairs) => {
                        let length = pairs.as_str().len();
                        let is_wrong = |rule: Rule| matches!(rule, Rule::misspelt | Rule::misspelt_model);
                        if let Some(wrong) = pairs.flatten().find(|pair| is_wrong(pair.as_rule())) {
                            return base + wrong.as_span().start();
                        }
                        while start(at + 1).is_some_and(|next| next < base + length) {
                            at += 1;
                        }
                        if lexed.mark(at) == Some(b'{') {
                            blocks.push(block(text, first));
                        }
                    }
                    Err(error) => return base + expected::offset(&error),
                }
            }
        }
        at += 1;
    }
    text.len()
}
