//! What a Rust file defines, imports and names outside its tests, read with `syn`. What is handed
//! to a macro is read for the paths in it; what a macro makes is not seen.

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ImplItem, Item, Meta, Type, UseTree, Visibility};

use crate::source::Source;

/// The items of one file. A scope is the path of a module from the root of its crate.
#[derive(Debug, Default)]
pub(crate) struct Items {
    /// Every module that the file holds: its own first, then those written inside it.
    pub(crate) scopes: Vec<Vec<String>>,
    pub(crate) definitions: Vec<Definition>,
    pub(crate) imports: Vec<Import>,
    pub(crate) mentions: Vec<Mention>,
    pub(crate) impls: Vec<Impl>,
}

/// A named item of a module.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) scope: Vec<String>,
    pub(crate) name: String,
    pub(crate) line: usize,
    /// Fields of a struct or union, of an enum's largest variant; none when it is no such type.
    pub(crate) fields: Option<usize>,
    /// A comment `// table:` stands above it, with its reason.
    pub(crate) is_table: bool,
}

/// One name that `use` brings in.
#[derive(Debug)]
pub(crate) struct Import {
    pub(crate) scope: Vec<String>,
    /// The name here; none for a glob, whose path is the module.
    pub(crate) name: Option<String>,
    pub(crate) path: Vec<String>,
    /// Written with `pub` in any form: others are to find it here.
    pub(crate) is_reexport: bool,
    pub(crate) line: usize,
}

/// A path in code, that of a type, a value or a macro.
#[derive(Debug)]
pub(crate) struct Mention {
    pub(crate) scope: Vec<String>,
    pub(crate) path: Vec<String>,
    pub(crate) line: usize,
}

/// A block of `impl` for a named type.
#[derive(Debug)]
pub(crate) struct Impl {
    pub(crate) scope: Vec<String>,
    pub(crate) own: Vec<String>,
    /// The trait; none when it is inherent.
    pub(crate) of: Option<Vec<String>>,
    pub(crate) functions: usize,
    pub(crate) line: usize,
}

/// Reads a file of the module `scope`; the error is a line and one sentence.
pub(crate) fn read(source: &Source, scope: Vec<String>) -> Result<Items, (usize, String)> {
    let file = syn::parse_file(&source.text)
        .map_err(|error| (error.span().start().line, error.to_string()))?;
    let items = Items { scopes: vec![scope.clone()], ..Items::default() };
    let mut reader = Reader { source, scope, items };
    reader.visit_file(&file);
    Ok(reader.items)
}

struct Reader<'a> {
    source: &'a Source,
    scope: Vec<String>,
    items: Items,
}

impl Reader<'_> {
    fn define(&mut self, name: &syn::Ident, fields: Option<usize>, first: Option<Span>) {
        let line = name.span().start().line;
        let first = first.map_or(line, |first| first.start().line);
        let is_table = (first..=line).any(|line| self.source.has_note(line, "table:"));
        let (scope, name) = (self.scope.clone(), name.to_string());
        self.items.definitions.push(Definition { scope, name, line, fields, is_table });
    }

    fn mention(&mut self, path: Vec<String>, line: usize) {
        self.items.mentions.push(Mention { scope: self.scope.clone(), path, line });
    }

    fn import(&mut self, tree: &UseTree, path: &mut Vec<String>, is_reexport: bool) {
        let (span, name) = match tree {
            UseTree::Path(inner) => {
                path.push(inner.ident.to_string());
                self.import(&inner.tree, path, is_reexport);
                path.pop();
                return;
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(tree, path, is_reexport);
                }
                return;
            }
            UseTree::Glob(glob) => (glob.star_token.span, None),
            UseTree::Name(name) => (name.ident.span(), Some((&name.ident, &name.ident))),
            UseTree::Rename(name) => (name.ident.span(), Some((&name.ident, &name.rename))),
        };
        let mut path = path.clone();
        let name = name.and_then(|(last, name)| {
            if last == "self" {
                return if name == "self" { path.last().cloned() } else { Some(name.to_string()) };
            }
            path.push(last.to_string());
            Some(name.to_string())
        });
        let line = span.start().line;
        let scope = self.scope.clone();
        self.items.imports.push(Import { scope, name, path, is_reexport, line });
    }

    /// Paths in what is handed to a macro: names joined by `::`, and single ones of types.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut run: Vec<String> = Vec::new();
        let (mut line, mut colons, mut after_dot) = (0, 0, false);
        for token in tokens {
            match token {
                TokenTree::Ident(name) if colons == 2 && !run.is_empty() => {
                    run.push(name.to_string());
                }
                TokenTree::Ident(name) => {
                    self.end_run(&mut run, line);
                    line = name.span().start().line;
                    if !after_dot {
                        run.push(name.to_string());
                    }
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' && !run.is_empty() => {
                    colons += 1;
                    continue;
                }
                TokenTree::Punct(mark) => {
                    self.end_run(&mut run, line);
                    after_dot = mark.as_char() == '.';
                    colons = 0;
                    continue;
                }
                TokenTree::Group(group) => {
                    self.end_run(&mut run, line);
                    self.tokens(group.stream());
                }
                TokenTree::Literal(_) => self.end_run(&mut run, line),
            }
            (colons, after_dot) = (0, false);
        }
        self.end_run(&mut run, line);
    }

    fn end_run(&mut self, run: &mut Vec<String>, line: usize) {
        let path = std::mem::take(run);
        if path.len() > 1 || path.first().is_some_and(|name| names_a_type(name)) {
            self.mention(path, line);
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = attributes(item);
        if attributes.iter().any(is_of_tests) {
            return;
        }
        let first = attributes.first().map(|attribute| attribute.pound_token.span);
        match item {
            Item::Struct(item) => self.define(&item.ident, Some(item.fields.len()), first),
            Item::Enum(item) => {
                let fields = item.variants.iter().map(|variant| variant.fields.len()).max();
                self.define(&item.ident, fields.or(Some(0)), first);
            }
            Item::Union(item) => self.define(&item.ident, Some(item.fields.named.len()), first),
            Item::Trait(item) => self.define(&item.ident, None, first),
            Item::Type(item) => self.define(&item.ident, None, first),
            Item::Const(item) => self.define(&item.ident, None, first),
            Item::Static(item) => self.define(&item.ident, None, first),
            Item::Fn(item) => self.define(&item.sig.ident, None, first),
            Item::Macro(item) => {
                if let Some(name) = &item.ident {
                    self.define(name, None, first);
                }
            }
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let Some((_, items)) = &module.content else { return };
        self.scope.push(module.ident.to_string());
        self.items.scopes.push(self.scope.clone());
        for item in items {
            self.visit_item(item);
        }
        self.scope.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let is_reexport = !matches!(item.vis, Visibility::Inherited);
        if item.leading_colon.is_none() {
            self.import(&item.tree, &mut Vec::new(), is_reexport);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let is_parameter = |own: &Vec<String>| {
            item.generics.type_params().any(|parameter| own.len() == 1 && parameter.ident == own[0])
        };
        if let Some(own) = named_type(&item.self_ty).filter(|own| !is_parameter(own)) {
            let is_function = |inner: &&ImplItem| match inner {
                ImplItem::Fn(function) => !function.attrs.iter().any(is_of_tests),
                _ => false,
            };
            self.items.impls.push(Impl {
                scope: self.scope.clone(),
                own,
                of: item.trait_.as_ref().map(|(path, _)| names(path)),
                functions: item.items.iter().filter(is_function).count(),
                line: item.impl_token.span.start().line,
            });
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let attributes: &[Attribute] = match item {
            ImplItem::Const(item) => &item.attrs,
            ImplItem::Fn(item) => &item.attrs,
            ImplItem::Type(item) => &item.attrs,
            _ => &[],
        };
        if !attributes.iter().any(is_of_tests) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        // A function by its bare name; any other bare lower-case name may be a variable.
        if let Expr::Path(function) = call.func.as_ref()
            && let Some(name) = function.path.get_ident()
        {
            self.mention(vec![name.to_string()], name.span().start().line);
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names = names(path);
        let line = path.segments.first().map_or(1, |first| first.ident.span().start().line);
        if path.leading_colon.is_none()
            && (names.len() > 1 || names.first().is_some_and(|name| names_a_type(name)))
        {
            self.mention(names, line);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        visit::visit_macro(self, call);
        self.tokens(call.tokens.clone());
    }

    // `pub(super)` says who may name an item, and names none itself; nor does an attribute.
    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}

fn names(path: &syn::Path) -> Vec<String> {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

fn names_a_type(name: &str) -> bool {
    name.starts_with(|c: char| c.is_uppercase())
}

/// The path of the type, also behind a reference.
fn named_type(own: &Type) -> Option<Vec<String>> {
    match own {
        Type::Path(own) if own.qself.is_none() => Some(names(&own.path)),
        Type::Reference(own) => named_type(&own.elem),
        Type::Paren(own) => named_type(&own.elem),
        Type::Group(own) => named_type(&own.elem),
        _ => None,
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Whether an item with this attribute is compiled for tests only.
fn is_of_tests(attribute: &Attribute) -> bool {
    let path = attribute.path();
    if path.is_ident("cfg") {
        return attribute.parse_args::<Meta>().is_ok_and(|meta| demands_test(&meta));
    }
    path.segments.last().is_some_and(|last| last.ident == "test")
}

fn demands_test(condition: &Meta) -> bool {
    let Meta::List(list) = condition else { return condition.path().is_ident("test") };
    let parser = syn::punctuated::Punctuated::<Meta, syn::Token![,]>::parse_terminated;
    let Ok(parts) = list.parse_args_with(parser) else { return false };
    match list.path.get_ident().map(ToString::to_string).as_deref() {
        Some("all") => parts.iter().any(demands_test),
        Some("any") => !parts.is_empty() && parts.iter().all(demands_test),
        _ => false,
    }
}
