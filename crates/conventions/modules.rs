//! Which files of a crate use which others. Names are followed through re-exports to the file that defines them, so a
//! `mod.rs` that only re-exports has no users.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use syn::visit::{self, Visit};

use crate::sources;

/// Where a module is among those of its crate: `["run", "client"]`.
type ModulePath = Vec<String>;

/// The code of one file.
#[derive(Default)]
struct Module {
    file: String,
    /// Names that the file defines.
    defined: BTreeSet<String>,
    /// Names that `use` declarations bring in, with their paths; of a glob, the path alone.
    imported: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
    /// Paths that the code names, re-exports apart.
    named: BTreeSet<Vec<String>>,
}

/// Collects what one file defines, imports and names.
struct Reader<'a>(&'a mut Module);

/// Whether an item is compiled for tests alone.
fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|condition| condition == "test")
    })
}

impl Reader<'_> {
    /// Follows the branches of a `use` declaration.
    fn import(&mut self, tree: &syn::UseTree, path: &[String], is_exported: bool) {
        let below = |name: &syn::Ident| [path, &[name.to_string()]].concat();
        let (name, target) = match tree {
            syn::UseTree::Path(branch) => {
                return self.import(&branch.tree, &below(&branch.ident), is_exported);
            }
            syn::UseTree::Group(group) => {
                return group.items.iter().for_each(|item| self.import(item, path, is_exported));
            }
            syn::UseTree::Glob(_) => {
                self.0.globs.push(path.to_vec());
                return;
            }
            syn::UseTree::Rename(leaf) => (leaf.rename.to_string(), below(&leaf.ident)),
            syn::UseTree::Name(leaf) if leaf.ident == "self" => {
                (path.last().cloned().unwrap_or_default(), path.to_vec())
            }
            syn::UseTree::Name(leaf) => (leaf.ident.to_string(), below(&leaf.ident)),
        };
        if !is_exported {
            self.0.named.insert(target.clone());
        }
        self.0.imported.insert(name, target);
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        use syn::Item::*;
        let (name, attributes) = match item {
            Const(item) => (Some(&item.ident), &item.attrs),
            Enum(item) => (Some(&item.ident), &item.attrs),
            Fn(item) => (Some(&item.sig.ident), &item.attrs),
            Macro(item) => (item.ident.as_ref(), &item.attrs),
            Mod(item) => (item.content.is_some().then_some(&item.ident), &item.attrs),
            Static(item) => (Some(&item.ident), &item.attrs),
            Struct(item) => (Some(&item.ident), &item.attrs),
            Trait(item) => (Some(&item.ident), &item.attrs),
            Type(item) => (Some(&item.ident), &item.attrs),
            Use(item) => {
                let is_exported = !matches!(item.vis, syn::Visibility::Inherited);
                return self.import(&item.tree, &[], is_exported);
            }
            _ => return visit::visit_item(self, item),
        };
        if !is_test(attributes) {
            self.0.defined.extend(name.map(ToString::to_string));
            visit::visit_item(self, item);
        }
    }

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {
        // `pub(super)` is no use of the parent.
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.0.named.insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        // Arguments of most macros are expressions.
        let list = syn::punctuated::Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated;
        if let Ok(arguments) = call.parse_body_with(list) {
            arguments.iter().for_each(|argument| self.visit_expr(argument));
        }
        visit::visit_macro(self, call);
    }
}

/// The modules of a crate.
pub struct Crate(BTreeMap<ModulePath, Module>);

impl Crate {
    /// Parses the files below a folder, those of tests apart.
    pub fn read(folder: &Path) -> Self {
        let mut modules = BTreeMap::new();
        for path in sources::files(folder) {
            let file = path.strip_prefix(folder).expect("inside").to_str().expect("UTF-8").to_owned();
            let Some(stem) = file.strip_suffix(".rs") else { continue };
            let mut module_path: ModulePath = stem.split('/').map(str::to_owned).collect();
            if module_path.iter().any(|name| name.ends_with("tests") || name == "simulations") {
                continue;
            }
            if matches!(module_path.last().map(String::as_str), Some("mod" | "lib")) {
                module_path.pop();
            }
            let mut module = Module { file, ..Module::default() };
            let code = syn::parse_file(&fs::read_to_string(&path).expect("text")).expect("Rust");
            Reader(&mut module).visit_file(&code);
            modules.insert(module_path, module);
        }
        Self(modules)
    }

    /// Returns the module that defines the item at a path, seen from the module `from`; `None` outside of this crate.
    fn definer(&self, from: &[String], path: &[String], depth: usize) -> Option<&ModulePath> {
        // A re-export that leads to itself ends here.
        if depth > 8 {
            return None;
        }
        let first = path.first()?;
        let (mut here, mut rest) = match first.as_str() {
            "crate" => (Vec::new(), &path[1..]),
            "self" => (from.to_vec(), &path[1..]),
            "super" => (from[..from.len().checked_sub(1)?].to_vec(), &path[1..]),
            _ => {
                let module = self.0.get(from)?;
                let is_child = self.0.contains_key(&[from, std::slice::from_ref(first)].concat());
                if !is_child && !module.defined.contains(first) && !module.imported.contains_key(first) {
                    return None;
                }
                (from.to_vec(), path)
            }
        };
        while let Some(name) = rest.first() {
            let child = [here.as_slice(), std::slice::from_ref(name)].concat();
            if name == "super" {
                here.pop();
            } else if self.0.contains_key(&child) {
                here = child;
            } else {
                return self.definer_of(&here, name, depth);
            }
            rest = &rest[1..];
        }
        self.0.get_key_value(&here).map(|(path, _)| path)
    }

    /// Returns the module that defines a name which `module_path` offers.
    fn definer_of(&self, module_path: &[String], name: &String, depth: usize) -> Option<&ModulePath> {
        let (path, module) = self.0.get_key_value(module_path)?;
        if module.defined.contains(name) {
            return Some(path);
        }
        if let Some(target) = module.imported.get(name) {
            return self.definer(module_path, target, depth + 1);
        }
        module.globs.iter().find_map(|glob| {
            let target = self.definer(module_path, glob, depth + 1)?;
            (target != path).then(|| self.definer_of(target, name, depth + 1)).flatten()
        })
    }

    /// For each file, by its path below the folder, those that it uses.
    pub fn uses(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let file = |path: &ModulePath| self.0[path].file.as_str();
        let used = |path: &ModulePath, module: &Module| {
            let named = module.named.iter().filter_map(|name| self.definer(path, name, 0));
            named.map(file).filter(|other| *other != module.file).collect()
        };
        self.0.iter().map(|(path, module)| (module.file.as_str(), used(path, module))).collect()
    }
}
