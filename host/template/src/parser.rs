//! Parses Go templates, with Go's messages.

mod names;
mod pipeline;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::Source;
use crate::ast::{Branch, Call, Command, Control, Expr, Node, Template};
use crate::error::Error;
use crate::function::Table;
use crate::lexer::{Kind, Token, Tokens, line_at};
use crate::quote::{quote, unquote};

pub(crate) use names::Names;

/// How deep parentheses and blocks may nest. Go stops parentheses at 10,000; the largest public
/// charts have 12, and each level costs stack.
pub(crate) const MAX_NESTING: usize = 500;

/// The templates of one source: the file itself under `name`, and what it defines.
///
/// # Errors
/// The first mistake, with its place.
pub(crate) fn parse(
    source: &Arc<Source>,
    name: &Arc<str>,
    functions: &'static Table,
    names: &mut Names,
) -> Result<Vec<Template>, Error> {
    let mut tokens = names.take_tokens();
    let mistake = tokens.read(&source.text);
    let mut parser = Parser {
        source,
        functions,
        names,
        tokens,
        mistake,
        next: 0,
        furthest: 0,
        action: None,
        nesting: 0,
        scope: Scope::default(),
        nodes: Vec::new(),
        commands: Vec::new(),
        args: Vec::new(),
        templates: BTreeMap::new(),
    };
    parser.file(name)?;
    let Parser { names, tokens, templates, .. } = parser;
    names.keep_tokens(tokens);
    Ok(templates.into_values().collect())
}

/// Whether a template is only white space: such a one replaces no other.
pub(crate) fn is_blank(template: &Template) -> bool {
    template.root.iter().all(|node| match node {
        Node::Text { start, end } => {
            let text = template.source.text.get(*start..*end).unwrap_or_default();
            text.trim().is_empty()
        }
        _ => false,
    })
}

struct Parser<'s> {
    source: &'s Arc<Source>,
    functions: &'static Table,
    names: &'s mut Names,
    tokens: Tokens,
    /// What is wrong at the last token, if that is an error.
    mistake: Option<String>,
    next: usize,
    /// The last token looked at: errors name its line, as Go's do.
    furthest: usize,
    /// Where the action starts that is being read.
    action: Option<usize>,
    nesting: usize,
    scope: Scope,
    /// What belongs to lists that are not finished: each list takes its part off the end, and then has no
    /// room to spare.
    nodes: Vec<Node>,
    commands: Vec<Command>,
    args: Vec<Expr>,
    templates: BTreeMap<Arc<str>, Template>,
}

/// What is known inside one template, besides `$`.
#[derive(Default)]
struct Scope {
    /// Those that can be used here.
    variables: Vec<Arc<str>>,
    /// All names of variables so far: their place is their number, from 1.
    ids: Vec<Arc<str>>,
    ranges: usize,
}

/// The variable that is always there, with the number 0.
const ROOT: &str = "$";

/// How a list of nodes ended.
enum End {
    End,
    Else,
}

type Parsed<T> = Result<T, Error>;

impl<'s> Parser<'s> {
    // --- tokens ---

    fn token_at(&mut self, index: usize) -> Token<'s> {
        let (index, token) = self.tokens.get(index, &self.source.text);
        self.furthest = self.furthest.max(index);
        token
    }

    fn peek(&mut self) -> Token<'s> {
        self.token_at(self.next)
    }

    fn peek_solid(&mut self) -> Token<'s> {
        while self.tokens.kind(self.next) == Some(Kind::Space) {
            self.next += 1;
        }
        self.peek()
    }

    fn take(&mut self) -> Token<'s> {
        let token = self.peek();
        self.next += 1;
        token
    }

    fn take_solid(&mut self) -> Token<'s> {
        let token = self.peek_solid();
        self.next += 1;
        token
    }

    fn back(&mut self) {
        self.next = self.next.saturating_sub(1);
    }

    fn expect(&mut self, kind: Kind, context: &str) -> Parsed<Token<'s>> {
        let token = self.take_solid();
        if token.kind == kind { Ok(token) } else { Err(self.unexpected(&token, context)) }
    }

    // --- errors ---

    fn error(&self, message: impl Into<String>) -> Error {
        let pos = self.tokens.pos(self.furthest).unwrap_or(0);
        Error::parse(self.source, pos, message.into())
    }

    fn unexpected(&self, token: &Token<'_>, context: &str) -> Error {
        let (Kind::Error, Some(message)) = (token.kind, &self.mistake) else {
            return self.error(format!("unexpected {} in {context}", describe(token)));
        };
        let Some(line) = self.action.map(|at| line_at(&self.source.text, at)) else {
            return self.error(message.as_str());
        };
        if line == line_at(&self.source.text, token.pos) {
            return self.error(message.as_str());
        }
        let started = format!(" started at {}:{line}", self.source.name);
        let action = if message.ends_with(" action") { "" } else { " in action" };
        self.error(format!("{message}{action}{started}"))
    }

    /// Runs a parser one level deeper.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.nesting >= MAX_NESTING {
            return Err(self.error(format!("nested deeper than {MAX_NESTING} (limit nesting)")));
        }
        self.nesting += 1;
        let result = crate::stack::grown(|| inner(self));
        self.nesting -= 1;
        result
    }

    // --- templates ---

    fn file(&mut self, name: &Arc<str>) -> Parsed<()> {
        loop {
            let token = self.peek();
            match token.kind {
                Kind::Eof => break,
                Kind::LeftDelim => {
                    let start = self.next;
                    self.take();
                    if self.take_solid().kind == Kind::Define {
                        self.definition()?;
                        continue;
                    }
                    self.next = start;
                }
                _ => {}
            }
            match self.text_or_action()? {
                Ok(node) => self.nodes.push(node),
                Err(end) => return Err(self.error(format!("unexpected {}", end.text()))),
            }
        }
        let root = self.nodes.drain(..).collect();
        self.add(name, root)
    }

    fn definition(&mut self) -> Parsed<()> {
        let context = "define clause";
        let token = self.take_solid();
        let name = self.template_name(&token, context)?;
        self.expect(Kind::RightDelim, context)?;
        match self.body(&name)? {
            End::End => Ok(()),
            End::Else => Err(self.error(format!("unexpected {{{{else}}}} in {context}"))),
        }
    }

    /// The rest of a `define` or `block`, which sees no variables of its surroundings.
    fn body(&mut self, name: &Arc<str>) -> Parsed<End> {
        let outer = std::mem::take(&mut self.scope);
        let (root, end) = self.nested(Self::list)?;
        self.scope = outer;
        self.add(name, root)?;
        Ok(end)
    }

    fn add(&mut self, name: &Arc<str>, root: Box<[Node]>) -> Parsed<()> {
        let template = Template { name: Arc::clone(name), source: Arc::clone(self.source), root };
        let blank = is_blank(&template);
        match self.templates.get(name) {
            Some(old) if !is_blank(old) && blank => return Ok(()),
            Some(old) if !is_blank(old) => {
                let name = quote(name.as_bytes());
                return Err(self.error(format!("multiple definition of template {name}")));
            }
            _ => {}
        }
        self.templates.insert(Arc::clone(name), template);
        Ok(())
    }

    fn template_name(&mut self, token: &Token<'s>, context: &str) -> Parsed<Arc<str>> {
        match token.kind {
            Kind::Str | Kind::RawStr => {
                let name = unquote(token.text).ok_or_else(|| self.error("invalid syntax"))?;
                Ok(String::from_utf8_lossy(&name).into())
            }
            _ => Err(self.unexpected(token, context)),
        }
    }

    // --- nodes ---

    fn list(&mut self) -> Parsed<(Box<[Node]>, End)> {
        let start = self.nodes.len();
        while self.peek_solid().kind != Kind::Eof {
            match self.text_or_action()? {
                Ok(node) => self.nodes.push(node),
                Err(end) => return Ok((self.nodes.drain(start..).collect(), end)),
            }
        }
        Err(self.error("unexpected EOF"))
    }

    fn text_or_action(&mut self) -> Parsed<Result<Node, End>> {
        let token = self.take_solid();
        match token.kind {
            Kind::Text => Ok(Ok(Node::Text { start: token.pos, end: token.pos + token.text.len() })),
            Kind::LeftDelim => {
                self.action = Some(token.pos);
                let node = self.action();
                if node.is_ok() {
                    self.action = None;
                }
                node
            }
            _ => Err(self.unexpected(&token, "input")),
        }
    }

    fn action(&mut self) -> Parsed<Result<Node, End>> {
        let token = self.take_solid();
        Ok(Ok(match token.kind {
            Kind::Block => self.block()?,
            Kind::Break => self.jump("break", Node::Break)?,
            Kind::Continue => self.jump("continue", Node::Continue)?,
            Kind::Else => return self.otherwise().map(|()| Err(End::Else)),
            Kind::End => return self.expect(Kind::RightDelim, "end").map(|_| Err(End::End)),
            Kind::If => self.control(Control::If)?,
            Kind::Range => self.control(Control::Range)?,
            Kind::With => self.control(Control::With)?,
            Kind::Template => self.template()?,
            _ => {
                self.back();
                Node::Action(self.pipeline("command", Kind::RightDelim)?)
            }
        }))
    }

    fn jump(&mut self, word: &str, node: Node) -> Parsed<Node> {
        let context = format!("{{{{{word}}}}}");
        self.expect(Kind::RightDelim, &context)?;
        if self.scope.ranges == 0 {
            return Err(self.error(format!("{context} outside {{{{range}}}}")));
        }
        Ok(node)
    }

    fn otherwise(&mut self) -> Parsed<()> {
        // `else if` and `else with` leave their word to the control they belong to.
        match self.peek_solid().kind {
            Kind::If | Kind::With => Ok(()),
            _ => self.expect(Kind::RightDelim, "else").map(|_| ()),
        }
    }

    fn control(&mut self, control: Control) -> Parsed<Node> {
        let variables = self.scope.variables.len();
        let node = self.nested(|parser| parser.branch(control));
        self.scope.variables.truncate(variables);
        node
    }

    fn branch(&mut self, control: Control) -> Parsed<Node> {
        let pipe = self.pipeline(control.word(), Kind::RightDelim)?;
        let in_range = usize::from(control == Control::Range);
        self.scope.ranges += in_range;
        let (list, end) = self.list()?;
        self.scope.ranges -= in_range;
        let otherwise = match end {
            End::End => Box::default(),
            End::Else => self.else_list(control)?,
        };
        Ok(Node::Branch(Box::new(Branch { control, pipe, list, otherwise })))
    }

    fn else_list(&mut self, control: Control) -> Parsed<Box<[Node]>> {
        match (control, self.peek().kind) {
            (Control::If, Kind::If) | (Control::With, Kind::With) => {
                self.take();
                Ok(Box::new([self.control(control)?]))
            }
            _ => match self.list()? {
                (nodes, End::End) => Ok(nodes),
                (_, End::Else) => Err(self.error("expected end; found {{else}}")),
            },
        }
    }

    fn block(&mut self) -> Parsed<Node> {
        let context = "block clause";
        let token = self.take_solid();
        let name = self.template_name(&token, context)?;
        let pipe = self.pipeline(context, Kind::RightDelim)?;
        let begin = self.furthest;
        if let End::Else = self.body(&name)? {
            // Go reads the body with a parser of its own, and this one is still where it began.
            self.furthest = begin;
            return Err(self.error(format!("unexpected {{{{else}}}} in {context}")));
        }
        Ok(Node::Template(Box::new(Call { pos: token.pos, name, pipe: Some(pipe) })))
    }

    fn template(&mut self) -> Parsed<Node> {
        let context = "template clause";
        let token = self.take_solid();
        let name = self.template_name(&token, context)?;
        let mut pipe = None;
        if self.take_solid().kind != Kind::RightDelim {
            self.back();
            pipe = Some(self.pipeline(context, Kind::RightDelim)?);
        }
        Ok(Node::Template(Box::new(Call { pos: token.pos, name, pipe })))
    }
}

impl End {
    fn text(&self) -> &'static str {
        match self {
            Self::End => "{{end}}",
            Self::Else => "{{else}}",
        }
    }
}

/// A token as messages name it.
fn describe(token: &Token<'_>) -> String {
    match token.kind {
        Kind::Eof => "EOF".to_owned(),
        Kind::Block
        | Kind::Break
        | Kind::Continue
        | Kind::Define
        | Kind::Else
        | Kind::End
        | Kind::If
        | Kind::Range
        | Kind::Nil
        | Kind::Template
        | Kind::With
        | Kind::Dot => format!("<{}>", token.text),
        _ if token.text.len() > 10 => {
            let start: String = token.text.chars().take(10).collect();
            format!("{}...", quote(start.as_bytes()))
        }
        _ => quote(token.text.as_bytes()),
    }
}
