"""A Grafana dashboard's queries, for the test that runs them: python3 dashboard.py FILE WORKLOAD RUN

For each: kind|title|format|columns that the panel names, separated by commas|SQL, with variables and macros replaced as
Grafana does, for the time range of the last day. Fails if a macro or variable is left, or two panels overlap.
"""

import json
import re
import sys


def sql(text, workload, run):
    def quoted(value):
        return value.replace("'", "''")

    text = text.replace("${workload:sqlstring}", f"'{quoted(workload)}'").replace("$run", quoted(run))
    begin, end = "now() - interval '1 day'", "now() + interval '1 day'"
    text = re.sub(r"\$__timeFilter\(([^)]*)\)", rf"\1 BETWEEN {begin} AND {end}", text)
    assert "$" not in text, f"left in a query: {text}"
    return text


def named(panel):
    """Columns that options of a panel name."""
    for override in panel["fieldConfig"]["overrides"]:
        assert override["matcher"]["id"] == "byName", panel["title"]
        yield override["matcher"]["options"]
    fields = panel["options"].get("reduceOptions", {}).get("fields", "")
    yield from re.findall(r"^/\^(\w+)\$/$", fields)
    yield from re.findall(r"__data\.fields\.(\w+)", json.dumps(panel))


def main(path, *values):
    dashboard = json.load(open(path))
    taken, ids = {}, set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        for cell in ((x, y) for x in range(place["x"], place["x"] + place["w"])
                     for y in range(place["y"], place["y"] + place["h"])):
            assert cell[0] < 24 and cell not in taken, f"{panel['title']} overlaps {taken.get(cell)}"
            taken[cell] = panel["title"]
        assert panel["id"] not in ids
        ids.add(panel["id"])
        for target in panel.get("targets", []):
            columns = ",".join(dict.fromkeys(named(panel)))
            print("panel", panel["title"], target["format"], columns, sql(target["rawSql"], *values), sep="|")
    for note in dashboard["annotations"]["list"]:
        assert ids >= set(note["filter"]["ids"]), note["name"]
        print("annotation", note["name"], "table", "time,text", sql(note["target"]["rawSql"], *values), sep="|")
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            print("variable", variable["label"], "table", "", sql(variable["query"], *values), sep="|")


main(*sys.argv[1:])
