//! The expressions of `\set`: their syntax tree, and the parser that builds it.
//!
//! The grammar and its precedences are pgbench's (exprparse.y). As there, an operator is a function of two
//! arguments and `-x` is `0 - x`.

use super::blanks::trim_end;
use super::evaluate::{Arity, FUNCTIONS, Function, MAX_ARGUMENTS, NOT_YET_SUPPORTED};
use super::position::Source;
use super::variables::{Scalar, Symbols, VariableId};
use crate::error::{UserError, sqlstate};
use std::ops::Range;
use tokens::{Token, tokenize};

mod tokens;

/// How deep an expression may nest: evaluation recurses, and a backend's stack is small.
const MAX_DEPTH: usize = 100;

/// statement_too_complex
const STATEMENT_TOO_COMPLEX: &str = "54001";

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    pub(super) root: Node,
}

/// A node of the syntax tree.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Constant(Scalar),
    /// The name is for messages.
    Variable {
        id: VariableId,
        name: Box<str>,
    },
    /// As many arguments as the function's [`Arity`] allows, at most [`MAX_ARGUMENTS`].
    Call {
        function: Function,
        arguments: Vec<Node>,
    },
}

impl Expression {
    /// Parses the bytes `range` of a script.
    ///
    /// # Errors
    /// 42601 for a syntax error, 0A000 for what pgbench knows but this does not yet, 22003 for a constant out of
    /// range, 54001 for an expression that nests too deep.
    pub(super) fn parse(
        source: Source,
        range: Range<usize>,
        symbols: &mut Symbols,
    ) -> Result<Expression, UserError> {
        let end = range.end;
        let mut parser =
            Parser { source, tokens: tokenize(source, range)?, next: 0, end, symbols, nesting: 0 };
        let tree = parser.expression(0)?;
        match parser.peek() {
            None => Ok(Expression { root: tree.node }),
            Some(_) => Err(parser.unexpected()),
        }
    }

    /// Calls `visit` with each variable that the expression reads, in the order of the text.
    pub(super) fn for_each_variable(&self, visit: &mut dyn FnMut(VariableId)) {
        self.root.for_each_variable(visit);
    }
}

impl Node {
    fn for_each_variable(&self, visit: &mut dyn FnMut(VariableId)) {
        match self {
            Node::Constant(_) => {}
            Node::Variable { id, .. } => visit(*id),
            Node::Call { arguments, .. } => arguments.iter().for_each(|node| node.for_each_variable(visit)),
        }
    }
}

/// A node and the length of the longest path below it, itself included.
struct Tree {
    node: Node,
    depth: usize,
}

impl Tree {
    fn leaf(node: Node) -> Tree {
        Tree { node, depth: 1 }
    }
}

/// Binary operators and how strongly they bind.
fn binary_operator(token: &Token) -> Option<(Function, u8)> {
    match token {
        Token::Plus => Some((Function::Add, 1)),
        Token::Minus => Some((Function::Subtract, 1)),
        Token::Star => Some((Function::Multiply, 2)),
        Token::Slash => Some((Function::Divide, 2)),
        Token::Percent => Some((Function::Modulo, 2)),
        _ => None,
    }
}

/// Unary operators bind stronger than all binary ones.
const UNARY_BINDING: u8 = 3;

/// A Pratt parser: operator precedence by recursion.
struct Parser<'a> {
    source: Source<'a>,
    /// Each with its byte offset in the script.
    tokens: Vec<(usize, Token<'a>)>,
    next: usize,
    /// The byte offset of the expression's end.
    end: usize,
    symbols: &'a mut Symbols,
    nesting: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&Token<'a>> {
        self.tokens.get(self.next).map(|(_, token)| token)
    }

    /// The byte offset of the next token, or of the end.
    fn offset(&self) -> usize {
        self.tokens.get(self.next).map_or(self.end, |&(offset, _)| offset)
    }

    /// Moves past the next token if it is the given one.
    fn accept(&mut self, token: &Token) -> bool {
        let accepted = self.peek() == Some(token);
        self.next += usize::from(accepted);
        accepted
    }

    fn expect(&mut self, token: &Token) -> Result<(), UserError> {
        if self.accept(token) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// Everything up to an operator that binds no stronger than `binding`.
    fn expression(&mut self, binding: u8) -> Result<Tree, UserError> {
        self.nesting += 1;
        self.check_depth(self.nesting, self.offset())?;
        let mut left = self.operand()?;
        while let Some((function, own_binding)) = self.peek().and_then(binary_operator)
            && own_binding > binding
        {
            let offset = self.offset();
            self.next += 1;
            let right = self.expression(own_binding)?;
            left = self.call(offset, function, vec![left, right])?;
        }
        self.nesting -= 1;
        Ok(left)
    }

    /// A constant, a variable, a function call, or something in parentheses or behind a sign.
    fn operand(&mut self) -> Result<Tree, UserError> {
        let offset = self.offset();
        let Some(token) = self.peek().cloned() else { return Err(self.unexpected()) };
        let node = match token {
            Token::Constant(scalar) => Node::Constant(scalar),
            Token::Variable(name) => Node::Variable { id: self.symbols.intern(name), name: name.into() },
            Token::Function(name) => {
                self.next += 1;
                return self.function_call(offset, name);
            }
            Token::Open => {
                self.next += 1;
                let inner = self.expression(0)?;
                self.expect(&Token::Close)?;
                return Ok(inner);
            }
            Token::Plus => {
                self.next += 1;
                return self.expression(UNARY_BINDING);
            }
            Token::Minus => {
                self.next += 1;
                // 2⁶³ is a bigint only behind a minus.
                if self.accept(&Token::SmallestIntegersMagnitude) {
                    return Ok(Tree::leaf(Node::Constant(Scalar::Integer(i64::MIN))));
                }
                let operand = self.expression(UNARY_BINDING)?;
                let zero = Tree::leaf(Node::Constant(Scalar::Integer(0)));
                return self.call(offset, Function::Subtract, vec![zero, operand]);
            }
            _ => return Err(self.unexpected()),
        };
        self.next += 1;
        Ok(Tree::leaf(node))
    }

    /// The arguments of the function whose name was at `offset`.
    fn function_call(&mut self, offset: usize, name: &str) -> Result<Tree, UserError> {
        let error = |sqlstate, message| Err(self.source.error(offset, sqlstate, message));
        let is_named = |other: &str| other.eq_ignore_ascii_case(name);
        let Some(&(name, arity, function)) = FUNCTIONS.iter().find(|(other, ..)| is_named(other)) else {
            if NOT_YET_SUPPORTED.iter().any(|other| is_named(other)) {
                let message = format!("function \"{name}\" is not supported yet");
                return error(sqlstate::FEATURE_NOT_SUPPORTED, message);
            }
            return error(sqlstate::SYNTAX_ERROR, format!("unexpected function name \"{name}\""));
        };
        self.expect(&Token::Open)?;
        let mut arguments = Vec::new();
        if !self.accept(&Token::Close) {
            arguments.push(self.expression(0)?);
            while self.accept(&Token::Comma) {
                arguments.push(self.expression(0)?);
            }
            self.expect(&Token::Close)?;
        }
        let message = match arity {
            Arity::Exactly(count) if arguments.len() != count => {
                format!("unexpected number of arguments ({name})")
            }
            Arity::AtLeastOne if arguments.is_empty() => format!("at least one argument expected ({name})"),
            _ if arguments.len() > MAX_ARGUMENTS => {
                format!("too many function arguments, maximum is {MAX_ARGUMENTS}")
            }
            _ => return self.call(offset, function, arguments),
        };
        Err(self.source.error(offset, sqlstate::SYNTAX_ERROR, message))
    }

    fn call(&self, offset: usize, function: Function, arguments: Vec<Tree>) -> Result<Tree, UserError> {
        let depth = 1 + arguments.iter().map(|tree| tree.depth).max().unwrap_or(0);
        self.check_depth(depth, offset)?;
        let arguments = arguments.into_iter().map(|tree| tree.node).collect();
        Ok(Tree { node: Node::Call { function, arguments }, depth })
    }

    fn check_depth(&self, depth: usize, offset: usize) -> Result<(), UserError> {
        if depth <= MAX_DEPTH {
            return Ok(());
        }
        let message = format!("expression nests deeper than {MAX_DEPTH} levels");
        Err(self.source.error(offset, STATEMENT_TOO_COMPLEX, message))
    }

    /// The error that the next token does not belong here.
    fn unexpected(&self) -> UserError {
        let offset = self.offset();
        let end = self.tokens.get(self.next + 1).map_or(self.end, |&(offset, _)| offset);
        let message = match trim_end(&self.source.text[offset..end]) {
            "" => "syntax error at end of expression".to_owned(),
            text => format!("syntax error at or near \"{text}\""),
        };
        self.source.error(offset, sqlstate::SYNTAX_ERROR, message)
    }
}

#[cfg(test)]
mod tests;
