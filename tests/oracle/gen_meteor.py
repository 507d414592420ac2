"""Writes tests/golden/metrics/meteor.jsonl: NLTK's METEOR of fixed random texts."""
import json
import os
import subprocess
import sys

import golden

sys.argv = sys.argv[:1]
CHECK = os.path.join(golden.HERE, "check_meteor.py")
sys.path.insert(0, golden.HERE)


def reference(version, cases):
    return json.loads(subprocess.run([sys.executable, CHECK, version], input=json.dumps(cases), capture_output=True, text=True, check=True).stdout)


code = open(CHECK).read().replace("sys.exit(main())", "")
scope = {"__file__": CHECK, "__name__": "check_meteor"}
exec(compile(code, CHECK, "exec"), scope)
cases = [c for c in scope["cases"](160, 11) if "\0" not in c["prediction"]]
out = []
for version in ("3.10", "3.7"):
    v = reference(version, cases)
    out.append({"metric": "meteor", "compat": version == "3.7", "items": cases,
                "values": {"lexical/meteor": {"corpus": sum(v) / len(v), "samples": v if version == "3.10" else None}}})
    out.append({"reward": "meteor", "compat": version == "3.7", "items": cases, "values": v})
golden.write("meteor", out)
