"""What README.md and docs/ say, for the test that runs their examples.

    documents.py script KIND FOLDER FILE…  the examples of fences "sql KIND" or "sh KIND"; with KIND "-" a psql script
                                           of "sql" and "bash": the latter run from files that are written to FOLDER
    documents.py links FILE…               links to files and headings that there are not
    documents.py signatures FILE…          functions that are not as standard input has them: name|arguments|result

Fences of other kinds ("sh" alone, or none) are not run: they install something, or show output and signatures.
"""

import re
import sys
import textwrap
from pathlib import Path


def fences(path):
    """The fences of a document: the words after the backquotes, and the lines between."""
    kind, lines = None, []
    for line in Path(path).read_text().splitlines():
        if not line.lstrip().startswith("```"):
            lines.append(line)
        elif kind is None:
            # One in a list is indented, and so are its lines, which psql does not mind.
            kind, lines = line.lstrip()[3:].strip(), []
        else:
            yield kind, lines
            kind = None


def script(wanted, folder, *paths):
    number = 0
    for path in paths:
        for kind, lines in fences(path):
            text = "\n".join(lines) + "\n"
            if kind == "bash" and wanted == "-":
                number += 1
                name = f"{folder}/{number}.sh"
                Path(name).write_text(text)
                print(f"\\! cd {folder} && bash -eu -o pipefail {name} || echo {path}: {name} >>failed")
            elif kind in (["sql"] if wanted == "-" else [f"sql {wanted}", f"sh {wanted}"]):
                print(textwrap.dedent(text))


def headings(path):
    """What GitHub calls the headings of a document."""
    text = re.sub(r"^ *```.*?^ *```$", "", Path(path).read_text(), flags=re.M | re.S)
    for heading in re.findall(r"^#+ (.*)$", text, flags=re.M):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def links(*paths):
    for path in paths:
        # A link may be broken over two lines.
        for link in re.findall(r"\]\(\s*([^)\s]+)\)", Path(path).read_text()):
            if re.match(r"https?:", link):
                continue
            name, _, heading = link.partition("#")
            target = Path(path).parent / name if name else Path(path)
            if not target.exists() or (heading and heading not in headings(target)):
                print(f"{path}: {link}")


def plain(text):
    """A signature in the spelling of pg_get_function_arguments, without casts and superfluous blanks."""
    text = re.sub(r"::[a-z ]+(\[\])?", "", text)
    text = re.sub(r"\bint\b", "integer", text)
    return re.sub(r"\s+", " ", text).strip()


def signatures(*paths):
    known = {}
    for line in sys.stdin:
        name, arguments, result = line.rstrip("\n").split("|")
        known[name] = (plain(arguments), plain(result))
    for path in paths:
        for kind, lines in fences(path):
            text = "\n".join(lines)
            if kind or not text.startswith("bench."):
                continue
            for name, arguments, result in re.findall(r"^bench\.(\w+)\(([^)]*)\)(?: RETURNS (.*))?$", text, flags=re.M):
                if name not in known:
                    print(f"{path}: there is no bench.{name}")
                elif "…" not in arguments and plain(arguments) != known[name][0]:
                    print(f"{path}: bench.{name}({plain(arguments)}) has ({known[name][0]})")
                elif result and plain(result) != known[name][1]:
                    print(f"{path}: bench.{name} returns {known[name][1]}, not {plain(result)}")


{"script": script, "links": links, "signatures": signatures}[sys.argv[1]](*sys.argv[2:])
