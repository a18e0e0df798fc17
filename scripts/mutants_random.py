#!/usr/bin/env python3
"""Prints a catalogue of random faults, for scripts/mutants.py: what do the batches miss that nobody thought of?

    scripts/mutants_random.py --count=60 --seed=1 > build/random.tsv
    scripts/mutants.sh --coverage build/random.tsv

Places are drawn with the same odds for each from the C files of the library, but those of its reference, of OpenCL and of
vectors. A fault turns a comparison, an operation or a condition round, adds one to a number, exchanges least and greatest,
or leaves out a statement. Most of what survives changes no result; the rest tells which graphs are missing.
"""
import argparse
import os
import random
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# What takes the place of an operator.
EXCHANGES = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&", "+": "-", "-": "+",
             "*": "+", "/": "*", "%": "/", "+=": "-=", "-=": "+=", "true": "false", "false": "true", "min": "max", "max": "min"}
OPERATORS = (re.compile(r"(?<= )(<=?|>=?|==|!=|&&|\|\||[-+*/%]|[-+]=)(?= )"), re.compile(r"\b(true|false)\b"),
             re.compile(r"(?<=_)(min|max)(?=(?:_\w+)?\()"))
NUMBER = re.compile(r"(?<![\w.])(\d+)(?![\w.])")
CONDITION = re.compile(r"\bif \((.*)\) ?\{?$")
STATEMENT = re.compile(r"^\s+(?:\*?\w+(?:(?:->|\.)\w+|\[[^\]]*\])* [-+*/|&]?= .*;|\w+\(.*\);)$")
# Statements without which results stay as they are.
HARMLESS = re.compile(r"_(free|release|destroy|prefetch|verbose|fail|profile|unlock)|assert", re.I)
FAMILIES = (("lib/kernels/plan", "plan"), ("lib/kernels/", None), ("lib/fusion/", "passes"), ("lib/graph/", "shapes"), ("lib/runtime/", "runtime"))


def family_of(path):
    """None: of a room whose faults are not drawn."""
    for prefix, name in FAMILIES:
        if path.startswith(prefix):
            return name or path.split("/")[2]
    return None


def level_of(path):
    name = os.path.basename(path)
    return next((level for level in ("amx", "avx512", "avx2") if level in name), "any")


def bare(text):
    """The text with comments and strings as blanks, so that every character keeps its place."""
    blank = lambda match: re.sub(r"[^\n]", " ", match.group())
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)


def faults_of(line, code):
    """The lines that may stand instead; code is the line without comments and strings."""
    if code.lstrip().startswith("#") or "\\" in line or HARMLESS.search(code):
        return
    for pattern in OPERATORS:
        for match in pattern.finditer(code):
            yield line[:match.start(1)] + EXCHANGES[match.group(1)] + line[match.end(1):]
    for match in NUMBER.finditer(code):
        yield line[:match.start(1)] + str(int(match.group(1)) + 1) + line[match.end(1):]
    match = CONDITION.search(code)
    if match:
        yield line[:match.start(1)] + "!(" + line[match.start(1):match.end(1)] + ")" + line[match.end(1):]
    if STATEMENT.match(code):
        yield re.match(r"\s*", line).group() + ";"


def places(path, text):
    """(search, replacement) of each fault that the file may get."""
    lines, codes = text.split("\n"), bare(text).split("\n")
    depth = 0
    for number, (line, code) in enumerate(zip(lines, codes)):
        # Declarations and tables outside functions are left alone.
        if depth:
            for fault in faults_of(line, code):
                first = last = number
                while text.count("\n".join(lines[first:last + 1])) != 1 and last - first < 4:
                    first, last = (first - 1, last) if (last - first) % 2 == 0 and first else (first, last + 1)
                planted = lines[first:number] + [fault] + lines[number + 1:last + 1]
                yield "\n".join(lines[first:last + 1]), "\n".join(planted)
        depth += code.count("{") - code.count("}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--files", default=r"^lib/(kernels|fusion|graph|runtime)/(?!opencl/|isa/)", metavar="REGEX")
    options = parser.parse_args()
    listed = subprocess.run(["git", "ls-files", "lib"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    drawn = []
    for path in listed:
        if path.endswith((".c", ".h")) and re.search(options.files, path) and family_of(path):
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                text = file.read()
            drawn += [(path, *fault) for fault in places(path, text) if text.count(fault[0]) == 1]
    random.Random(options.seed).shuffle(drawn)
    escape = lambda text: text.replace("\n", "\\n").replace("\t", "\\t")
    print(f"{len(drawn)} places", file=sys.stderr)
    for number, (path, search, replacement) in enumerate(drawn[:options.count], 1):
        print("\t".join((f"random-{options.seed}-{number}", family_of(path), level_of(path), path, escape(search), escape(replacement), "ci")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
