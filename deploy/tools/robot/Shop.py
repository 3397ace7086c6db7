import sys


def prints():
    print("*WARN* a line with a level")
    print("to stdout ✓")
    print("to stderr", file=sys.stderr)


def raises(text):
    raise RuntimeError(f"first line\n{text}")
