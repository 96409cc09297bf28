//! Prints the syntax tree of a template as a template of the same meaning whose every step is counted.
//!
//! minijinja counts instructions, but one instruction may double a text, or wrap a list into a list
//! until dropping it overflows the stack. So operators, literals, slices and built-in filters are
//! printed as calls of functions of ours (see [`super::operators`]), and text as constants that are
//! written like values. Lines stay where they are; other places are found through [`Printed::origin`].

mod statement;

use std::sync::Arc;

use minijinja::machinery::{Span, ast, parse};
use minijinja::syntax::SyntaxConfig;

use super::operators::{COMPARE, CONCAT, COUNTED, DICT, FILTER, LIST, SLICE, TEST};
use super::{library, mistake, output};
use crate::error::Error;
use crate::function::closest;
use crate::program::Source;
use crate::value::Value;

/// Arguments of a printed call: minijinja takes 2,000.
const MAX_ARGUMENTS: usize = 1_000;

/// A printed template.
#[derive(Debug)]
pub(super) struct Printed {
    /// The template that minijinja gets.
    pub(super) text: String,
    /// Ranges of the text, and the ranges of the original they were printed from.
    origins: Vec<(usize, usize, usize, usize)>,
}

impl Printed {
    /// Where in the original the smallest printed expression around a range of the text is from.
    pub(super) fn origin(&self, range: &std::ops::Range<usize>) -> Option<(usize, usize)> {
        let around = self.origins.iter().filter(|(from, to, ..)| *from <= range.start && range.end <= *to);
        around.min_by_key(|(from, to, ..)| to - from).map(|(_, _, from, to)| (*from, *to))
    }
}

/// Parses a template and prints it.
///
/// # Errors
/// When it is no template, or uses a filter or test that nobody knows.
pub(super) fn print(source: &Arc<Source>) -> Result<Printed, Error> {
    let mut syntax = SyntaxConfig::builder();
    let syntax = syntax.keep_trailing_newline(true).build();
    let tree = syntax.and_then(|syntax| parse(&source.text, &source.name, syntax));
    let tree = tree.map_err(|err| mistake::in_file(&err, source))?;
    let mut printer = Printer { source, out: String::new(), line: 1, origins: Vec::new(), fault: None };
    crate::stack::grown(|| printer.statement(&tree));
    match printer.fault {
        Some(error) => Err(error),
        None => Ok(Printed { text: printer.out, origins: printer.origins }),
    }
}

struct Printer<'p> {
    source: &'p Arc<Source>,
    out: String,
    /// Line of the text that is being written.
    line: usize,
    origins: Vec<(usize, usize, usize, usize)>,
    fault: Option<Error>,
}

impl Printer<'_> {
    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Goes on at a line of the original, inside a tag.
    fn at(&mut self, span: Span) {
        while self.line < usize::from(span.start_line) {
            self.out.push('\n');
            self.line += 1;
        }
    }

    fn tag(&mut self, span: Span, word: &str) {
        self.put("{%");
        self.at(span);
        self.put(" ");
        self.put(word);
        self.put(" ");
    }

    fn close(&mut self) {
        self.put(" %}");
    }

    fn end(&mut self, word: &str) {
        self.put("{% ");
        self.put(word);
        self.close();
    }

    /// Remembers where what is written from `start` on came from.
    fn origin(&mut self, start: usize, span: Span) {
        self.origins.push((start, self.out.len(), span.start_offset as usize, span.end_offset as usize));
    }

    /// The filters of `{% filter %}` and `{% set x | … %}`, which have no value to start from.
    fn chain(&mut self, expr: &ast::Expr<'_>) {
        let ast::Expr::Filter(filter) = expr else {
            return self.expr(expr);
        };
        if let Some(inner) = &filter.expr {
            self.chain(inner);
            self.put(" | ");
        }
        self.check_filter(filter.name, filter.span());
        self.put(filter.name);
        if !filter.args.is_empty() {
            self.put("(");
            self.args(&filter.args, true);
            self.put(")");
        }
    }

    // --- expressions ---

    fn expr(&mut self, expr: &ast::Expr<'_>) {
        let start = self.out.len();
        self.at(expr.span());
        match expr {
            ast::Expr::Var(node) => self.put(node.id),
            ast::Expr::Const(node) => self.constant(&node.value),
            ast::Expr::Slice(node) => {
                self.call_of(
                    SLICE,
                    [Some(&node.expr), node.start.as_ref(), node.stop.as_ref(), node.step.as_ref()],
                );
            }
            ast::Expr::UnaryOp(node) => {
                self.put(if matches!(node.op, ast::UnaryOpKind::Not) { "(not " } else { "(-" });
                self.expr(&node.expr);
                self.put(")");
            }
            ast::Expr::BinOp(node) => self.operation(node),
            ast::Expr::Compare(node) => self.comparison(node),
            ast::Expr::IfExpr(node) => self.choice(node),
            ast::Expr::Filter(node) => self.filter(node, node.span()),
            ast::Expr::Test(node) => self.test(node, node.span()),
            ast::Expr::GetAttr(node) => {
                self.operand(&node.expr);
                self.put(".");
                self.put(node.name);
            }
            ast::Expr::GetItem(node) => {
                self.operand(&node.expr);
                self.put("[");
                self.expr(&node.subscript_expr);
                self.put("]");
            }
            ast::Expr::Call(node) => self.call(node),
            ast::Expr::List(node) => self.items(&node.items),
            ast::Expr::Tuple(node) => self.items(&node.items),
            ast::Expr::Map(node) => self.pairs(&node.keys, &node.values),
        }
        let from = start_of(expr);
        let to = (expr.span().end_offset as usize).max(from);
        self.origins.push((start, self.out.len(), from, to));
    }

    /// What stands before a dot or a bracket.
    fn operand(&mut self, expr: &ast::Expr<'_>) {
        let bare = matches!(expr, ast::Expr::Const(_));
        self.put(if bare { "(" } else { "" });
        self.expr(expr);
        self.put(if bare { ")" } else { "" });
    }

    /// A call with `none` for what is not there.
    fn call_of<const N: usize>(&mut self, name: &str, args: [Option<&ast::Expr<'_>>; N]) {
        self.put(name);
        self.put("(");
        for (index, arg) in args.into_iter().enumerate() {
            self.put(if index == 0 { "" } else { ", " });
            match arg {
                Some(arg) => self.expr(arg),
                None => self.put("none"),
            }
        }
        self.put(")");
    }

    fn operation(&mut self, node: &ast::BinOp<'_>) {
        use ast::BinOpKind as Op;
        let compared = |operator| Some((COMPARE, operator));
        let function = match node.op {
            Op::Concat => return self.call_of(CONCAT, [Some(&node.left), Some(&node.right)]),
            Op::Eq => compared("=="),
            Op::Ne => compared("!="),
            Op::Lt => compared("<"),
            Op::Lte => compared("<="),
            Op::Gt => compared(">"),
            Op::Gte => compared(">="),
            Op::In => compared("in"),
            _ => None,
        };
        if let Some((name, operator)) = function {
            self.put(name);
            self.put("(");
            self.expr(&node.left);
            self.put(&format!(", \"{operator}\", "));
            self.expr(&node.right);
            return self.put(")");
        }
        let (operator, counted) = match node.op {
            Op::ScAnd => ("and", false),
            Op::ScOr => ("or", false),
            Op::Add => ("+", true),
            Op::Mul => ("*", true),
            Op::Sub => ("-", false),
            Op::Div => ("/", false),
            Op::FloorDiv => ("//", false),
            Op::Rem => ("%", false),
            _ => ("**", false),
        };
        self.put(if counted { COUNTED } else { "" });
        self.put("(");
        self.expr(&node.left);
        self.put(&format!(" {operator} "));
        self.expr(&node.right);
        self.put(")");
    }

    fn comparison(&mut self, node: &ast::Compare<'_>) {
        use ast::CompareOpKind as Op;
        self.put(COMPARE);
        self.put("(");
        self.expr(&node.expr);
        for part in &node.ops {
            let operator = match part.op {
                Op::Eq => "==",
                Op::Ne => "!=",
                Op::Lt => "<",
                Op::Lte => "<=",
                Op::Gt => ">",
                Op::Gte => ">=",
                Op::In => "in",
                Op::NotIn => "not in",
            };
            self.put(&format!(", \"{operator}\", "));
            self.expr(&part.expr);
        }
        self.put(")");
    }

    fn choice(&mut self, node: &ast::IfExpr<'_>) {
        self.put("(");
        self.expr(&node.true_expr);
        self.put(" if ");
        self.expr(&node.test_expr);
        if let Some(otherwise) = &node.false_expr {
            self.put(" else ");
            self.expr(otherwise);
        }
        self.put(")");
    }

    fn filter(&mut self, node: &ast::Filter<'_>, span: Span) {
        self.check_filter(node.name, span);
        let Some(expr) = &node.expr else {
            return self.put(node.name);
        };
        if library::is_library_filter(node.name) {
            self.put("(");
            self.expr(expr);
            self.put(&format!(" | {}(", node.name));
            self.args(&node.args, true);
            return self.put("))");
        }
        self.put(&format!("{FILTER}(\"{}\", ", node.name));
        self.expr(expr);
        self.args(&node.args, false);
        self.put(")");
    }

    fn test(&mut self, node: &ast::Test<'_>, span: Span) {
        if !library::TESTS.contains(&node.name) {
            self.unknown("test", node.name, span, closest(node.name, library::TESTS.iter().copied()));
        }
        if node.args.is_empty() {
            self.put("(");
            self.expr(&node.expr);
            return self.put(&format!(" is {})", node.name));
        }
        self.put(&format!("{TEST}(\"{}\", ", node.name));
        self.expr(&node.expr);
        self.args(&node.args, false);
        self.put(")");
    }

    fn check_filter(&mut self, name: &str, span: Span) {
        if !library::filter_names().any(|own| own == name) {
            self.unknown("filter", name, span, closest(name, library::filter_names()));
        }
    }

    fn unknown(&mut self, what: &str, name: &str, span: Span, near: Option<&'static str>) {
        if self.fault.is_none() {
            let message = format!("{what} \"{name}\" not defined");
            let (from, to) = (span.start_offset as usize, span.end_offset as usize);
            let text = self.source.text.get(from..to).unwrap_or_default();
            let at = from + text.rfind(name).unwrap_or(0);
            let error = Error::parse(self.source, at, message).pointing_at(at, name.len());
            self.fault = Some(error.did_you_mean(near));
        }
    }

    fn call(&mut self, node: &ast::Call<'_>) {
        let bare = matches!(node.expr, ast::Expr::Var(_) | ast::Expr::GetAttr(_));
        self.put(if bare { "" } else { "(" });
        self.expr(&node.expr);
        self.put(if bare { "(" } else { ")(" });
        self.args(&node.args, true);
        self.put(")");
    }

    fn args(&mut self, args: &[ast::CallArg<'_>], first: bool) {
        for (index, arg) in args.iter().enumerate() {
            self.put(if index == 0 && first { "" } else { ", " });
            let (before, expr) = match arg {
                ast::CallArg::Pos(expr) => (String::new(), expr),
                ast::CallArg::Kwarg(name, expr) => (format!("{name}="), expr),
                ast::CallArg::PosSplat(expr) => ("*".to_owned(), expr),
                ast::CallArg::KwargSplat(expr) => ("**".to_owned(), expr),
            };
            self.put(&before);
            self.expr(expr);
        }
    }

    /// A list; a long one is a sum of shorter ones.
    fn items(&mut self, items: &[ast::Expr<'_>]) {
        let parts = items.len().div_ceil(MAX_ARGUMENTS).max(1);
        self.put(&format!("{COUNTED}(").repeat(parts - 1));
        for part in 0..parts {
            self.put(if part == 0 { "" } else { " + " });
            self.put(LIST);
            self.put("(");
            for (index, item) in items.iter().skip(part * MAX_ARGUMENTS).take(MAX_ARGUMENTS).enumerate() {
                self.put(if index == 0 { "" } else { ", " });
                self.expr(item);
            }
            self.put(if part == 0 { ")" } else { "))" });
        }
    }

    /// A mapping; a long one is laid over shorter ones.
    fn pairs(&mut self, keys: &[ast::Expr<'_>], values: &[ast::Expr<'_>]) {
        let parts = keys.len().div_ceil(MAX_ARGUMENTS / 2).max(1);
        self.put(&format!("{DICT}(").repeat(parts));
        for (index, (key, value)) in keys.iter().zip(values).enumerate() {
            let starts = index % (MAX_ARGUMENTS / 2) == 0;
            self.put(if starts && index > 0 {
                "), "
            } else if index > 0 {
                ", "
            } else {
                ""
            });
            self.expr(key);
            self.put(", ");
            self.expr(value);
        }
        self.put(")");
    }

    // --- constants ---

    fn constant(&mut self, value: &Value) {
        match value.as_str() {
            Some(text) => self.text(text),
            None if value.is_none() => self.put("none"),
            None if value.is_number() => {
                let text = value.to_string();
                let negative = text.starts_with('-');
                self.put(&if negative { format!("({text})") } else { text });
            }
            None => {
                let text = output::text_of(value).unwrap_or_default().into_owned();
                self.put(&text);
            }
        }
    }

    fn text(&mut self, text: &str) {
        self.put("\"");
        for c in text.chars() {
            match c {
                '"' => self.put("\\\""),
                '\\' => self.put("\\\\"),
                '\n' => self.put("\\n"),
                '\r' => self.put("\\r"),
                c => self.out.push(c),
            }
        }
        self.put("\"");
    }
}

/// Where an expression starts: minijinja's places of chains start at their last link.
fn start_of(expr: &ast::Expr<'_>) -> usize {
    match expr {
        ast::Expr::GetAttr(node) => start_of(&node.expr),
        ast::Expr::GetItem(node) => start_of(&node.expr),
        ast::Expr::Slice(node) => start_of(&node.expr),
        ast::Expr::Call(node) => start_of(&node.expr),
        ast::Expr::BinOp(node) => start_of(&node.left),
        ast::Expr::Compare(node) => start_of(&node.expr),
        ast::Expr::IfExpr(node) => start_of(&node.true_expr),
        ast::Expr::Test(node) => start_of(&node.expr),
        ast::Expr::Filter(node) => match &node.expr {
            Some(inner) => start_of(inner),
            None => node.span().start_offset as usize,
        },
        other => other.span().start_offset as usize,
    }
}
