//! The tree of a template, and Go's text of its nodes, which errors quote.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::Source;
use crate::function::Entry;
use crate::quote::quote;
use crate::value::Value;

/// A parsed template: a file, a `define`, or a text given to `tpl`.
#[derive(Debug)]
pub(crate) struct Template {
    pub(crate) name: Arc<str>,
    pub(crate) source: Arc<Source>,
    pub(crate) root: Box<[Node]>,
}

#[derive(Debug)]
pub(crate) enum Node {
    /// A stretch of the source, as byte offsets.
    Text {
        start: usize,
        end: usize,
    },
    Action(Pipe),
    Branch(Box<Branch>),
    Template(Box<Call>),
    Break,
    Continue,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    If,
    With,
    Range,
}

/// `if`, `with` or `range` with both lists.
#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) control: Control,
    pub(crate) pipe: Pipe,
    pub(crate) list: Box<[Node]>,
    pub(crate) otherwise: Box<[Node]>,
}

/// `{{ template "name" pipe }}`
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) pos: usize,
    pub(crate) name: Arc<str>,
    pub(crate) pipe: Option<Pipe>,
}

#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) pos: usize,
    /// `=` rather than `:=`.
    pub(crate) assign: bool,
    pub(crate) decl: Box<[Variable]>,
    /// Nearly always one.
    pub(crate) commands: SmallVec<[Command; 1]>,
}

/// A function, field or value with arguments; there is always a first word.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) pos: usize,
    pub(crate) first: Expr,
    pub(crate) args: Box<[Expr]>,
}

#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) name: Arc<str>,
    /// The same for all variables of this name in one template; `$` is 0.
    pub(crate) id: u32,
    pub(crate) fields: Fields,
}

#[derive(Debug)]
pub(crate) struct Expr {
    /// Where Go says it is: a chain of fields is at its second link.
    pub(crate) pos: usize,
    /// Where it begins.
    pub(crate) start: usize,
    pub(crate) kind: ExprKind,
}

/// The names of a chain, each without its dot; chains that are written alike share them.
pub(crate) type Fields = Arc<[Arc<str>]>;

#[derive(Debug)]
pub(crate) enum ExprKind {
    Dot,
    Nil,
    Bool(bool),
    Number(Arc<Number>),
    /// The literal as written, and what it stands for.
    Str {
        literal: Literal,
        value: Value,
    },
    Field(Fields),
    Variable(Variable),
    Function(Word),
    Pipe(Box<Pipe>),
    /// `(…).a.b`
    Chain {
        of: Box<Expr>,
        fields: Fields,
    },
}

/// How a text is written.
#[derive(Debug)]
pub(crate) enum Literal {
    /// As its value between double quotes: so most are, and need no second text.
    Quoted,
    /// In another way: so.
    Written(Box<str>),
}

/// A function under its name.
#[derive(Debug)]
pub(crate) struct Word {
    pub(crate) entry: &'static Entry,
    pub(crate) special: Special,
}

/// Builtins the executor itself knows something about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    None,
    /// Stops at the first argument that is false.
    And,
    /// Stops at the first argument that is true.
    Or,
    /// Wants to know how its callee was written.
    Call,
}

/// A numeric constant: what it is depends on the parameter it is given to.
#[derive(Debug)]
pub(crate) struct Number {
    pub(crate) text: Box<str>,
    pub(crate) int: Option<i64>,
    pub(crate) uint: Option<u64>,
    pub(crate) float: Option<f64>,
    pub(crate) complex: Option<(f64, f64)>,
}

/// A node an error can point at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum At<'p> {
    Start,
    Node(&'p Node, usize),
    Pipe(&'p Pipe),
    Command(&'p Command),
    Expr(&'p Expr),
    Call(&'p Call),
}

// === impl At ===

impl At<'_> {
    /// The values the node reads first, for the help of an error.
    pub(crate) fn values_path(&self) -> Option<&[Arc<str>]> {
        match self {
            Self::Command(command) => command.args.iter().find_map(Expr::values_path),
            Self::Expr(expr) => expr.values_path(),
            _ => None,
        }
    }

    pub(crate) fn pos(&self) -> usize {
        match self {
            Self::Start => 0,
            Self::Node(_, pos) => *pos,
            Self::Pipe(pipe) => pipe.pos,
            Self::Command(command) => command.pos,
            Self::Expr(expr) => expr.pos,
            Self::Call(call) => call.pos,
        }
    }
}

impl At<'_> {
    /// Where the text of the node begins.
    pub(crate) fn start(&self) -> usize {
        match self {
            Self::Expr(expr) => expr.start,
            _ => self.pos(),
        }
    }
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => Ok(()),
            Self::Node(node, _) => node.fmt(f),
            Self::Pipe(pipe) => pipe.fmt(f),
            Self::Command(command) => command.fmt(f),
            Self::Expr(expr) => expr.bare().fmt(f),
            Self::Call(call) => call.fmt(f),
        }
    }
}

// === text of nodes ===

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { .. } => Ok(()),
            Self::Action(pipe) => write!(f, "{{{{{pipe}}}}}"),
            Self::Branch(branch) => write!(f, "{{{{{} {}}}}}", branch.control.word(), branch.pipe),
            Self::Template(call) => call.fmt(f),
            Self::Break => f.write_str("{{break}}"),
            Self::Continue => f.write_str("{{continue}}"),
        }
    }
}

impl Control {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::If => "if",
            Self::With => "with",
            Self::Range => "range",
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{{template {}", quote(self.name.as_bytes()))?;
        if let Some(pipe) = &self.pipe {
            write!(f, " {pipe}")?;
        }
        f.write_str("}}")
    }
}

impl fmt::Display for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, variable) in self.decl.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            write!(f, "{comma}{variable}")?;
        }
        if !self.decl.is_empty() {
            f.write_str(if self.assign { " = " } else { " := " })?;
        }
        for (index, command) in self.commands.iter().enumerate() {
            let bar = if index > 0 { " | " } else { "" };
            write!(f, "{bar}{command}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.first.fmt(f)?;
        for arg in &self.args {
            write!(f, " {arg}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        write_fields(&self.fields, f)
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ExprKind::Dot => f.write_str("."),
            ExprKind::Nil => f.write_str("nil"),
            ExprKind::Bool(value) => value.fmt(f),
            ExprKind::Number(number) => f.write_str(&number.text),
            ExprKind::Str { literal: Literal::Written(literal), .. } => f.write_str(literal),
            ExprKind::Str { literal: Literal::Quoted, value } => {
                write!(f, "\"{}\"", value.as_str().unwrap_or_default())
            }
            ExprKind::Field(fields) => write_fields(fields, f),
            ExprKind::Variable(variable) => variable.fmt(f),
            ExprKind::Function(word) => f.write_str(word.entry.name),
            ExprKind::Pipe(pipe) => write!(f, "({pipe})"),
            ExprKind::Chain { of, fields } => {
                of.fmt(f)?;
                write_fields(fields, f)
            }
        }
    }
}

impl Expr {
    /// The keys below the root's `.Values` this reads; the dot is taken for the root.
    pub(crate) fn values_path(&self) -> Option<&[Arc<str>]> {
        let names = match &self.kind {
            ExprKind::Field(names) => names,
            ExprKind::Variable(variable) if variable.id == 0 => &variable.fields,
            _ => return None,
        };
        let (first, path) = names.split_first()?;
        (**first == *"Values" && !path.is_empty()).then_some(path)
    }

    /// The node without the parentheses it has among other words.
    pub(crate) fn bare(&self) -> &dyn fmt::Display {
        match &self.kind {
            ExprKind::Pipe(pipe) => &**pipe,
            _ => self,
        }
    }
}

fn write_fields(fields: &[Arc<str>], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    fields.iter().try_for_each(|field| write!(f, ".{field}"))
}
