//! Statements: what stands between `{%` and `%}`, and the text around it.

use minijinja::machinery::{Span, ast};

use super::Printer;
use crate::jinja::operators::HELD;

impl Printer<'_> {
    fn body(&mut self, statements: &[ast::Stmt<'_>]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    pub(super) fn statement(&mut self, statement: &ast::Stmt<'_>) {
        let start = self.out.len();
        match self.tag_alone(statement) {
            Some(span) => self.origin(start, span),
            None => self.tag_with_more(statement),
        }
    }

    /// Prints a statement that is one tag, and says where it stands; `None` for all others.
    fn tag_alone(&mut self, statement: &ast::Stmt<'_>) -> Option<Span> {
        let span = match statement {
            ast::Stmt::EmitExpr(node) => {
                self.put("{{");
                self.at(node.span());
                self.put(" ");
                self.expr(&node.expr);
                self.put(" }}");
                return Some(node.span());
            }
            ast::Stmt::Set(node) => {
                self.set(node, node.span());
                return Some(node.span());
            }
            ast::Stmt::FromImport(node) => {
                self.import_names(node, node.span());
                return Some(node.span());
            }
            ast::Stmt::Import(node) => {
                self.one(node.span(), "import", &node.expr);
                self.put(" as ");
                self.expr(&node.name);
                node.span()
            }
            ast::Stmt::Extends(node) => {
                self.one(node.span(), "extends", &node.name);
                node.span()
            }
            ast::Stmt::Include(node) => {
                self.one(node.span(), "include", &node.name);
                self.put(if node.ignore_missing { " ignore missing" } else { "" });
                node.span()
            }
            ast::Stmt::Do(node) => {
                self.tag(node.span(), "do");
                self.call(&node.call);
                node.span()
            }
            _ => return None,
        };
        self.close();
        Some(span)
    }

    /// Prints a statement that is text, or tags with a body, or a word.
    fn tag_with_more(&mut self, statement: &ast::Stmt<'_>) {
        match statement {
            ast::Stmt::Template(node) => self.body(&node.children),
            ast::Stmt::EmitRaw(node) => self.raw(node.raw),
            ast::Stmt::ForLoop(node) => self.for_loop(node, node.span()),
            ast::Stmt::IfCond(node) => self.condition(node, node.span()),
            ast::Stmt::WithBlock(node) => self.with(node, node.span()),
            ast::Stmt::SetBlock(node) => self.set_block(node, node.span()),
            // Charts are no HTML: nothing is escaped.
            ast::Stmt::AutoEscape(node) => self.body(&node.body),
            ast::Stmt::FilterBlock(node) => {
                self.tag(node.span(), "filter");
                self.chain(&node.filter);
                self.close();
                self.body(&node.body);
                self.end("endfilter");
            }
            ast::Stmt::Block(node) => {
                self.tag(node.span(), "block");
                self.put(node.name);
                self.put(if node.required { " required" } else { "" });
                self.close();
                self.body(&node.body);
                self.end("endblock");
            }
            ast::Stmt::Macro(node) => {
                self.tag(node.span(), "macro");
                self.put(node.name);
                self.declaration(node);
                self.end("endmacro");
            }
            ast::Stmt::CallBlock(node) => self.call_block(node, node.span()),
            ast::Stmt::Continue(node) => self.word(node.span(), "continue"),
            ast::Stmt::Break(node) => self.word(node.span(), "break"),
            ast::Stmt::EmitExpr(_)
            | ast::Stmt::Set(_)
            | ast::Stmt::FromImport(_)
            | ast::Stmt::Import(_)
            | ast::Stmt::Extends(_)
            | ast::Stmt::Include(_)
            | ast::Stmt::Do(_) => {}
        }
    }

    fn call_block(&mut self, node: &ast::CallBlock<'_>, span: Span) {
        self.tag(span, "call");
        self.parameters(&node.macro_decl);
        self.put(" ");
        self.call(&node.call);
        self.close();
        self.body(&node.macro_decl.body);
        self.end("endcall");
    }

    fn word(&mut self, span: Span, word: &str) {
        self.tag(span, word);
        self.close();
    }

    fn one(&mut self, span: Span, word: &str, expr: &ast::Expr<'_>) {
        self.tag(span, word);
        self.expr(expr);
    }

    /// Text as a constant that is written like any value.
    fn raw(&mut self, text: &str) {
        if !text.is_empty() {
            self.put("{{ ");
            self.text(text);
            self.put(" }}");
        }
    }

    fn for_loop(&mut self, node: &ast::ForLoop<'_>, span: Span) {
        let start = self.out.len();
        self.tag(span, "for");
        self.target(&node.target);
        self.put(" in ");
        self.expr(&node.iter);
        if let Some(filter) = &node.filter_expr {
            self.put(" if ");
            self.expr(filter);
        }
        self.put(if node.recursive { " recursive" } else { "" });
        self.close();
        self.origin(start, span);
        self.body(&node.body);
        if !node.else_body.is_empty() {
            self.end("else");
            self.body(&node.else_body);
        }
        self.end("endfor");
    }

    fn condition(&mut self, node: &ast::IfCond<'_>, span: Span) {
        let start = self.out.len();
        self.one(span, "if", &node.expr);
        self.close();
        self.origin(start, span);
        self.body(&node.true_body);
        if !node.false_body.is_empty() {
            self.end("else");
            self.body(&node.false_body);
        }
        self.end("endif");
    }

    fn with(&mut self, node: &ast::WithBlock<'_>, span: Span) {
        self.tag(span, "with");
        for (index, (target, value)) in node.assignments.iter().enumerate() {
            self.put(if index == 0 { "" } else { ", " });
            let names = matches!(target, ast::Expr::Tuple(_) | ast::Expr::List(_));
            self.put(if names { "(" } else { "" });
            self.target(target);
            self.put(if names { ")" } else { "" });
            self.put(" = ");
            self.expr(value);
        }
        self.close();
        self.body(&node.body);
        self.end("endwith");
    }

    fn set(&mut self, node: &ast::Set<'_>, span: Span) {
        self.tag(span, "set");
        self.target(&node.target);
        self.put(" = ");
        let held = matches!(node.target, ast::Expr::GetAttr(_));
        self.put(if held { HELD } else { "" });
        self.put(if held { "(" } else { "" });
        self.expr(&node.expr);
        self.put(if held { ")" } else { "" });
        self.close();
    }

    fn set_block(&mut self, node: &ast::SetBlock<'_>, span: Span) {
        self.tag(span, "set");
        self.target(&node.target);
        if let Some(filter) = &node.filter {
            self.put(" | ");
            self.chain(filter);
        }
        self.close();
        self.body(&node.body);
        self.end("endset");
    }

    fn import_names(&mut self, node: &ast::FromImport<'_>, span: Span) {
        self.one(span, "from", &node.expr);
        self.put(" import ");
        for (index, (name, alias)) in node.names.iter().enumerate() {
            self.put(if index == 0 { "" } else { ", " });
            self.expr(name);
            if let Some(alias) = alias {
                self.put(" as ");
                self.expr(alias);
            }
        }
        self.close();
    }

    fn declaration(&mut self, node: &ast::Macro<'_>) {
        self.parameters(node);
        self.close();
        self.body(&node.body);
    }

    /// Parameters; the defaults belong to the last ones.
    fn parameters(&mut self, node: &ast::Macro<'_>) {
        self.put("(");
        let plain = node.args.len().saturating_sub(node.defaults.len());
        for (index, arg) in node.args.iter().enumerate() {
            self.put(if index == 0 { "" } else { ", " });
            self.expr(arg);
            if let Some(default) = index.checked_sub(plain).and_then(|index| node.defaults.get(index)) {
                self.put("=");
                self.expr(default);
            }
        }
        self.put(")");
    }

    /// What is assigned to: a name, an attribute of a namespace, or several names.
    fn target(&mut self, target: &ast::Expr<'_>) {
        let names = match target {
            ast::Expr::Tuple(tuple) => &tuple.items,
            ast::Expr::List(list) => &list.items,
            other => return self.expr(other),
        };
        for (index, name) in names.iter().enumerate() {
            self.put(if index == 0 { "" } else { ", " });
            let nested = matches!(name, ast::Expr::Tuple(_) | ast::Expr::List(_));
            self.put(if nested { "(" } else { "" });
            self.target(name);
            self.put(if nested { ")" } else { "" });
        }
        self.put(if names.len() == 1 { "," } else { "" });
    }
}
