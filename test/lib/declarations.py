#!/usr/bin/env python3
"""The functions, variables, structures and constants of the server that the library declares by hand, as C.

    declarations.py MAJOR [FOLDER]      prints a file that compiles only if each of them is as the server's headers say

Every `extern` block below FOLDER (src) is taken, for a server of that version.
Each function is declared again after the headers: C refuses another type, though not an enum for the integer that it is.
"""

import re
import sys
from pathlib import Path

HEADERS = """
access/attmap.h access/heapam.h access/heaptoast.h access/nbtree.h access/tableam.h access/tupconvert.h access/xact.h
access/xlog.h catalog/namespace.h commands/explain.h executor/execPartition.h executor/executor.h executor/tuptable.h
jit/jit.h libpq/libpq.h libpq/pqsignal.h mb/pg_wchar.h miscadmin.h nodes/makefuncs.h nodes/nodeFuncs.h parser/analyze.h
parser/parse_relation.h pgstat.h postmaster/interrupt.h storage/bufmgr.h storage/fd.h storage/freespace.h storage/ipc.h
storage/latch.h storage/lmgr.h access/printtup.h optimizer/planner.h tcop/utility.h storage/smgr.h tcop/cmdtag.h tcop/dest.h
tcop/pquery.h tcop/tcopprot.h utils/backend_status.h
utils/builtins.h utils/elog.h utils/guc.h utils/lsyscache.h utils/memutils.h utils/plancache.h utils/portal.h utils/snapmgr.h
utils/timeout.h utils/timestamp.h utils/wait_event.h common/relpath.h storage/bufpage.h storage/itemid.h utils/jsonb.h
""".split()
# Where a version has moved something to.
HEADERS_SINCE = {"commands/explain_state.h": 18, "commands/explain_format.h": 18}

# Structures: file, name there, name in the headers, and those of its fields that have others there.
STRUCTURES = [
    ("driver/session/raw.rs", "PQcommMethods", "PQcommMethods", {}),
    ("server/relations.rs", "MetaPage", "BTMetaPageData",
     {"magic": "btm_magic", "version": "btm_version", "root": "btm_root", "level": "btm_level"}),
]

# Constants: file, name there, and what it is in the headers.
CONSTANTS = [
    ("server/signals.rs", "LOCK_TIMEOUT", "LOCK_TIMEOUT"),
    ("server/signals.rs", "STATEMENT_TIMEOUT", "STATEMENT_TIMEOUT"),
    ("server/relations.rs", "MAGIC", "BTREE_MAGIC"),
    ("server/relations.rs", "PAGE_HEADER", "MAXALIGN(SizeOfPageHeaderData)"),
    ("server/database.rs", "SQL_ASCII", "PG_SQL_ASCII"),
    ("load/bulk/extension_of_15.rs", "UNLOCK", "BUFFER_LOCK_UNLOCK"),
    ("load/bulk/free_pages.rs", "PAGE_HEADER", "SizeOfPageHeaderData"),
    ("load/bulk/free_pages.rs", "LINE_POINTER", "sizeof(ItemIdData)"),
    ("load/bulk/free_pages.rs", "TOAST_THRESHOLD", "TOAST_TUPLE_THRESHOLD"),
]

TYPES = {
    "c_char": "char", "c_int": "int", "c_uint": "unsigned int", "c_long": "long", "c_void": "void", "bool": "bool",
    "usize": "size_t", "f64": "double", "!": "void", "()": "void",
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)}, **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


def close_of(text, start, pair="{}"):
    """The place of the bracket that closes the one at `start`."""
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] == pair[0]) - (text[place] == pair[1])
        if depth == 0:
            return place
    raise ValueError("a bracket is not closed")


def split(text, at):
    """The parts between separators that are in no bracket."""
    parts, depth, part = [], 0, ""
    for place, char in enumerate(text):
        depth += char in "([{" or (char == "<")
        depth -= char in ")]}" or (char == ">" and text[place - 1] != "-")
        if char == at and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += char
    return [part.strip() for part in [*parts, part] if part.strip()]


def holds(condition, major):
    """Whether a cfg is true for a version."""
    condition = condition.strip()
    if named := re.fullmatch(r"since_(\d+)", condition):
        return int(named[1]) <= major
    word, rest = re.fullmatch(r"(not|any|all)\((.*)\)", condition, re.S).groups()
    parts = [holds(part, major) for part in split(rest, ",")]
    return {"not": lambda: not parts[0], "any": lambda: any(parts), "all": lambda: all(parts)}[word]()


def attributes(item, major):
    """What follows the attributes of an item, None where the version has no such item, and another name for the linker."""
    name = None
    while item.startswith("#["):
        end = close_of(item, 1, "[]")
        attribute, item = item[2:end], item[end + 1:].strip()
        if condition := re.fullmatch(r"cfg\((.*)\)", attribute, re.S):
            if not holds(condition[1], major):
                return None, None
        elif conditional := re.fullmatch(r"cfg_attr\((.*)\)", attribute, re.S):
            condition, attribute = split(conditional[1], ",")
            if not holds(condition, major):
                continue
        if linked := re.fullmatch(r'link_name\s*=\s*"(\w+)"', attribute):
            name = linked[1]
    return item, name


class File:
    """What one source file declares."""

    def __init__(self, text, major):
        self.text = without_comments(text)
        self.major = major
        self.out = []
        self.pointers = 0

    def parameters(self, text):
        types = []
        for parameter in split(text, ","):
            parameter, _ = attributes(parameter, self.major)
            if parameter is None:
                continue
            named = re.match(r"\w+\s*:(?!:)\s*", parameter)
            types.append("..." if parameter == "..." else self.type(parameter[named.end() if named else 0:]))
        return ", ".join(types) or "void"

    def type(self, rust):
        rust = rust.strip()
        if optional := re.fullmatch(r"Option<(.*)>", rust, re.S):
            return self.type(optional[1])
        if pointer := re.fullmatch(r"\*(mut|const)\s+(.*)", rust, re.S):
            target = self.type(pointer[2])
            # A constant pointee: behind the type, which may be a pointer itself.
            return f"{target} const *" if pointer[1] == "const" else f"{target} *"
        if function := re.match(r'(unsafe\s+)?extern\s+"C(-unwind)?"\s+fn\s*\(', rust):
            end = close_of(rust, function.end() - 1, "()")
            result = re.fullmatch(r"\s*(?:->\s*(.*))?", rust[end + 1:], re.S)[1] or "()"
            self.pointers += 1
            name = f"pointer_{len(self.text)}_{self.pointers}"
            self.out.append(f"typedef {self.type(result)} (*{name})({self.parameters(rust[function.end():end])});")
            return name
        if enumeration := re.fullmatch(r"(?:\w+::)*(\w+)::Type", rust):
            return enumeration[1]
        name = re.fullmatch(r"(?:\w+::)*([\w!()]+)", rust)[1]
        for attribute, alias in re.findall(
            rf'(#\[cfg\([^\]]*\)\]\s*)?\btype {re.escape(name)} = ((?:unsafe )?extern[^;]*);', self.text
        ):
            alias, _ = attributes(attribute + alias, self.major)
            if alias is not None:
                return self.type(alias)
        return TYPES.get(name, name)

    def externs(self):
        """Declares again what the blocks declare, and returns the number."""
        count = 0
        for block in re.finditer(r'\bextern\s+"C(-unwind)?"\s*\{', self.text):
            body = self.text[block.end():close_of(self.text, block.end() - 1)]
            for item in split(body, ";"):
                item, linked = attributes(item, self.major)
                if item is None:
                    continue
                count += 1
                item = re.sub(r"^pub(\([^)]*\))?\s+", "", item)
                if variable := re.fullmatch(r"static\s+(?:mut\s+)?(\w+)\s*:\s*(.*)", item, re.S):
                    self.again(linked or variable[1], "", variable[2], self.type(variable[2]))
                    continue
                function = re.match(r"(?:safe\s+|unsafe\s+)?fn\s+(\w+)\s*\(", item)
                end = close_of(item, function.end() - 1, "()")
                result = re.fullmatch(r"\s*(?:->\s*(.*))?", item[end + 1:], re.S)[1] or "()"
                parameters = self.parameters(item[function.end():end])
                self.again(linked or function[1], f"({parameters})", result, self.type(result))
        return count

    def again(self, name, parameters, _rust, result):
        # In brackets it is no macro. The first line fails where no header has it.
        self.out.append(f"typedef __typeof__(&({name})) there_is_{name};")
        self.out.append(f"extern {result} ({name}){parameters};")

    def structure(self, name, theirs, others):
        found = re.search(rf"\bstruct {name}\s*\{{", self.text)
        body = self.text[found.end():close_of(self.text, found.end() - 1)]
        ours, fields = f"our_{name}", []
        for field in split(body, ","):
            field, kind = re.fullmatch(r"(?:pub(?:\([^)]*\))?\s+)?(\w+)\s*:\s*(.*)", field, re.S).groups()
            fields.append((field, others.get(field, field), self.type(kind)))
        self.out.append(f"struct {ours} {{ {' '.join(f'{kind} {field};' for field, _, kind in fields)} }};")
        for field, there, _ in fields:
            self.out += [
                f'_Static_assert(offsetof(struct {ours}, {field}) == offsetof({theirs}, {there}), "place of {field}");',
                f"_Static_assert(__builtin_types_compatible_p(__typeof__(((struct {ours} *) 0)->{field}), "
                f'__typeof__((({theirs} *) 0)->{there})), "type of {field} in {theirs}");']
        if not others:
            self.out.append(f'_Static_assert(sizeof(struct {ours}) == sizeof({theirs}), "size of {theirs}");')

    def constant(self, name, theirs):
        value = re.search(rf"\bconst {name}: \w+ = (0x[0-9a-fA-F_]+|[0-9_]+);", self.text)[1].replace("_", "")
        self.out.append(f'_Static_assert({value} == {theirs}, "{name} is {theirs}");')


def main():
    major, folder = int(sys.argv[1]), Path(sys.argv[2] if len(sys.argv) > 2 else "src")
    files = {path.relative_to(folder).as_posix(): File(path.read_text(), major)
             for path in sorted(folder.rglob("*.rs")) if path.relative_to(folder).parts[0] != "core"}
    count = sum(file.externs() for file in files.values())
    for file, name, theirs, others in STRUCTURES:
        files[file].structure(name, theirs, others)
    for file, name, theirs in CONSTANTS:
        if file == "load/bulk/extension_of_15.rs" and major > 15:
            continue
        files[file].constant(name, theirs)
    # Encryption of connections brings headers of other libraries, and nothing of ours is in them.
    print('#include "postgres.h"\n#undef USE_OPENSSL\n#undef ENABLE_GSS\n#undef USE_SSL')
    headers = HEADERS + [header for header, since in HEADERS_SINCE.items() if major >= since]
    print("\n".join(f'#include "{header}"' for header in headers))
    for name, file in files.items():
        if file.out:
            print(f"\n/* {name} */\n" + "\n".join(file.out))
    print(f"\n/* {count} functions and variables, {len(STRUCTURES)} structures, {len(CONSTANTS)} constants */")


main()
