"""What checks of `textgen` on JSON lines share: running it, counting what agrees, and the end of the script."""
import json
import os
import subprocess
import sys

TEXTGEN = os.environ.get("BUILD", "build") + "/textgen"
passed = failed = 0


def note(ok, text):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok and failed < 30:
        print("FAIL", text)


def run(args, lines):
    """One value for each line; empty objects when the number of lines is wrong."""
    p = subprocess.run([TEXTGEN] + args, input="".join(json.dumps(x) + "\n" for x in lines), capture_output=True, text=True)
    out = p.stdout.split("\n")[:-1]
    if len(out) != len(lines):
        note(False, f"{args}: {len(out)} lines for {len(lines)}: {p.stderr.strip()}")
        return [{}] * len(lines)
    return [json.loads(x) for x in out]


def finish():
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)
