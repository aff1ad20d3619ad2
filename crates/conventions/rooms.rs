//! The rooms of the extension, the folders of src, use each other in the order of the table in `src/lib.rs`; within a room, and
//! within each crate, files use each other in one direction. Unsafe code is in few places, and every place where a statement
//! gets the rights of another role is listed in docs/architecture.md, with what it executes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit;
use syn::visit::Visit;

use crate::sources;

/// Where unsafe code may be: folders, and files with their reasons.
const UNSAFE_FOLDERS: [&str; 6] =
    ["driver/parameters/", "driver/session/", "guard/", "load/bulk/", "server/", "shm/"];
const UNSAFE_FILES: [(&str, &str); 4] = [
    ("capture/values/trial_statement.rs", "executes a captured statement as a client's session would"),
    ("error.rs", "is called by the server for each error, of which pgrx keeps only a part"),
    (
        "observe/waits.rs",
        "reads other processes' wait events a hundred times a second, as pg_stat_activity does",
    ),
    ("worker/drop_extension.rs", "holds the lock that DROP EXTENSION waits for"),
];

fn extension() -> PathBuf {
    sources::root().join("src")
}

/// The rooms in the order of the table in `src/lib.rs`, the ground first.
fn rooms() -> Vec<String> {
    let text = sources::text(extension().join("lib.rs"));
    let rooms: Vec<String> = text
        .lines()
        .filter_map(|line| Some(line.strip_prefix("//! | [`")?.split_once('`')?.0.to_owned()))
        .collect();
    let modules: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';')).collect();
    assert_eq!(
        rooms.iter().map(String::as_str).collect::<BTreeSet<_>>(),
        modules,
        "the table names each room"
    );
    rooms
}

fn room_of(file: &str) -> &str {
    file.split('/').next().unwrap_or(file).trim_end_matches(".rs")
}

#[test]
fn rooms_use_those_before_them() {
    let rooms = rooms();
    let place = |file: &str| rooms.iter().position(|room| room == room_of(file));
    let extension = Crate::read(&extension());
    let uses = extension.uses();
    assert!(uses.len() > 150, "where is the code? {} files", uses.len());
    let mut wrong = Vec::new();
    for (file, others) in uses.iter().filter(|(file, _)| **file != "lib.rs") {
        assert!(place(file).is_some(), "{file} is in none of the rooms");
        let above = others.iter().filter(|other| place(other) > place(file));
        wrong.extend(above.map(|other| format!("{file} uses {other}")));
    }
    assert!(wrong.is_empty(), "against the order of the rooms:\n{}", wrong.join("\n"));
}

/// All that a file reaches.
fn reached<'a>(uses: &BTreeMap<&'a str, BTreeSet<&'a str>>, from: &'a str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut waiting = vec![from];
    while let Some(file) = waiting.pop() {
        waiting.extend(uses[file].iter().filter(|other| reached.insert(**other)));
    }
    reached
}

/// The circles among files, each with its files and what ties them.
fn circles(uses: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<String> {
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        uses.keys().map(|file| (*file, reached(uses, file))).collect();
    let mut seen = BTreeSet::new();
    let mut circles = Vec::new();
    for file in uses.keys().filter(|file| reach[**file].contains(**file)) {
        let is_tied = |other: &&str| reach[file].contains(other) && reach[other].contains(file);
        let circle: Vec<&str> = uses.keys().copied().filter(is_tied).collect();
        if !seen.insert(circle.clone()) {
            continue;
        }
        let arrows = circle.iter().map(|file| {
            let others: Vec<&str> =
                uses[file].iter().copied().filter(|other| circle.contains(other)).collect();
            format!("  {file} uses {}", others.join(", "))
        });
        circles.push(arrows.collect::<Vec<_>>().join("\n"));
    }
    circles
}

#[test]
fn files_use_each_other_in_one_direction() {
    let root = sources::root();
    let crates = fs::read_dir(root.join("crates")).expect("a folder");
    let mut folders: Vec<_> = crates
        .map(|entry| entry.expect("an entry").path().join("src"))
        .filter(|folder| folder.exists())
        .collect();
    folders.push(extension());
    folders.sort();
    assert!(folders.len() > 10, "where are the crates? {folders:?}");
    let mut found = Vec::new();
    for folder in folders {
        let name = folder.strip_prefix(&root).expect("inside").display();
        found.extend(circles(&Crate::read(&folder).uses()).iter().map(|circle| format!("{name}:\n{circle}")));
    }
    assert!(found.is_empty(), "{} circles\n{}", found.len(), found.join("\n"));
}

#[test]
fn a_circle_is_found() {
    let uses = BTreeMap::from([
        ("a", BTreeSet::from(["b"])),
        ("b", BTreeSet::from(["c"])),
        ("c", BTreeSet::from(["b"])),
    ]);
    assert_eq!(circles(&uses), ["  b uses c\n  c uses b"]);
}

#[test]
fn unsafe_code_stays_in_its_places() {
    let is_allowed = |file: &str| {
        UNSAFE_FOLDERS.iter().any(|folder| file.starts_with(folder))
            || UNSAFE_FILES.iter().any(|(allowed, _)| *allowed == file)
    };
    let mut allowed = BTreeSet::new();
    for path in
        sources::files(&extension()).into_iter().filter(|path| path.extension().is_some_and(|e| e == "rs"))
    {
        let file = path.strip_prefix(extension()).expect("inside").to_str().expect("UTF-8").to_owned();
        let code = sources::text(path);
        let mut lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
        let is_unsafe = lines.any(|line| {
            ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"].iter().any(|word| line.contains(word))
        });
        assert!(!is_unsafe || is_allowed(&file), "unsafe code in {file}");
        allowed.extend(is_unsafe.then_some(file));
    }
    for (file, _) in UNSAFE_FILES {
        assert!(allowed.contains(file), "no longer unsafe: {file}");
    }
}

// Which files of a crate use which others. Names are followed through re-exports to the file that defines them, so a
// `mod.rs` that only re-exports has no users.

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
        // `pub(crate)` is no use of the parent.
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

/// What gives a statement another role's rights.
const WAYS: [&str; 7] = [
    "as_bootstrap_superuser(",
    "as_run_role(",
    "as_session_of(",
    "as_owner(",
    "as_role(",
    "connect_after_crash(",
    "coordinator::KIND, spec.database_oid, 0",
];

/// Where these ways are made, and not used.
const MAKERS: [&str; 3] =
    ["src/guard/switch_role.rs", "src/server/background_worker.rs", "src/worker/attachment.rs"];

#[test]
fn the_table_names_every_place_and_no_other() {
    let root = sources::root();
    let document = fs::read_to_string(root.join("docs/architecture.md")).expect("a document");
    let (_, section) = document.split_once("### Where rights change").expect("a section");
    let section = section.split_once("Tables of results").expect("an end").0;
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let listed: BTreeSet<String> = rows
        .flat_map(|row| row[2..].split(" | ").next().unwrap_or("").split(", "))
        .map(|place| place.trim_matches('`').to_owned())
        .collect();
    let mut used = BTreeSet::new();
    for path in sources::files(&root.join("src")) {
        let name = path.strip_prefix(&root).expect("inside").to_str().expect("UTF-8").to_owned();
        if !name.ends_with(".rs")
            || name.starts_with("crates/")
            || MAKERS.iter().any(|maker| name.starts_with(maker))
        {
            continue;
        }
        let text = fs::read_to_string(&path).expect("text");
        let is_used = text
            .lines()
            .map(str::trim_start)
            .filter(|line| !line.starts_with("//") && !line.starts_with("use "))
            .any(|line| WAYS.iter().any(|way| stands_in(way, line)));
        if is_used {
            used.insert(if name.starts_with("src/store/") { "src/store".to_owned() } else { name });
        }
    }
    assert!(used.len() > 10, "where is the code? {used:?}");
    let missing: Vec<_> = used.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(&used).collect();
    assert!(
        missing.is_empty() && gone.is_empty(),
        "not in the table: {missing:?}; no longer there: {gone:?}"
    );
}

/// Not as the end of a longer word.
fn stands_in(way: &str, line: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(way).any(|(at, _)| !line[..at].ends_with(is_word))
}
