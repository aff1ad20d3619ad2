"""The templates of ci/ for the test of ci/compare: prints what they pass on that it does not know, or leave out."""

import re
from pathlib import Path

import yaml

known = set(re.findall(r"\$\{(BENCH_[A-Z]+):-", Path("ci/compare").read_text()))

action = yaml.safe_load(Path("ci/action.yml").read_text())
steps = action["runs"]["steps"]
passed = next(step["env"] for step in steps if step.get("id") == "compare")
for name in known ^ {name for name in passed if name.startswith("BENCH_")}:
    print("action.yml and ci/compare do not both know", name)
for name, value in passed.items():
    if name.startswith("BENCH_") and value != "${{ inputs.%s }}" % name.removeprefix("BENCH_").lower():
        print("action.yml:", name, "is", value)
text = Path("ci/action.yml").read_text()
for name in set(re.findall(r"inputs\.([a-z-]+)", text)) ^ set(action["inputs"]):
    print("action.yml: input", name, "is not both there and used")

gitlab = yaml.safe_load(Path("ci/gitlab.yml").read_text())
(job,) = gitlab.values()
for name in known ^ {name for name in job["variables"] if name.startswith("BENCH_")}:
    print("gitlab.yml and ci/compare do not both know", name)
