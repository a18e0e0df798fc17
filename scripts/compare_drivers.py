#!/usr/bin/env python3
"""Two programs that speak the graph driver's grammar, ours and another one's, on the same cases: processes in blocks ABBA or BAAB as
chance has it, so that what changes steadily falls on both alike. A table of the best times, the ratio PEER / OURS of each case with
its interval (of five blocks and fewer: their range), and the geometric mean. Standard library only.

LIST has a case on each line: options and --case=FILE, as behind `--graph` on a command line; fields in front of a tab are its name,
lines that begin with # are left out. Instead of LIST, `-- OPTIONS --case=FILE` is one case."""
import argparse
import json
import math
import os
import random
import shlex
import subprocess
import sys

import paired


def read_cases(path):
    cases = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            line = line.rstrip("\n")
            if not line.strip() or line.startswith("#"):
                continue
            *name, words = line.split("\t")
            cases.append((" ".join(name[:3]) or words.rsplit("--case=", 1)[-1], shlex.split(words)))
    return cases


def run(program, words, arguments):
    """(best, average) in milliseconds as the program's perf line has them, or why there is none."""
    command = [program, "--mode=P", f"--max-ms-per-prb={arguments.ms}", "--graph", *words]
    try:
        done = subprocess.run(command, cwd=arguments.inputs, capture_output=True, text=True, timeout=arguments.timeout)
    except subprocess.TimeoutExpired:
        return None, f"no end after {arguments.timeout} s"
    except OSError as error:
        return None, str(error)
    lines = [line for line in done.stdout.splitlines() if line.startswith("perf,")]
    try:
        best, average = (float(field) for field in lines[-1].rsplit(",", 2)[1:])
    except (IndexError, ValueError):
        said = [line for line in (done.stdout + done.stderr).splitlines() if ":" in line]
        return None, next((line for line in said if "UNIMPLEMENTED" in line or "FAILED" in line or "error" in line), "no perf line")[:160]
    return (best, average), None


def run_case(words, programs, arguments, chance):
    """Logarithms of the blocks' ratios, the best times of both sides, why one of them does not run."""
    logs, best = [], [math.inf, math.inf]
    for _ in range(arguments.blocks):
        first = chance.randrange(2)
        sums = [0, 0]
        for side in (first, 1 - first, 1 - first, first):
            times, why = run(programs[side], words, arguments)
            if times is None or times[0] <= 0:
                return [], best, f"{'ours' if side == 0 else 'peer'}: {why or 'no time'}"
            sums[side] += math.log(times[0]) / 2
            best[side] = min(best[side], times[0])
        logs.append(sums[1] - sums[0])
    return logs, best, None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     usage="%(prog)s [OPTION]... OURS PEER LIST\n       %(prog)s [OPTION]... OURS PEER -- OPTIONS --case=FILE")
    parser.add_argument("ours")
    parser.add_argument("peer")
    parser.add_argument("list", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--inputs", default=".", metavar="DIR", help="where both run and look for files (the working directory)")
    parser.add_argument("--ms", type=int, default=300, metavar="MS", help="budget of one process (%(default)s)")
    parser.add_argument("--blocks", type=int, default=3, metavar="N", help="blocks of each case, four processes each (%(default)s)")
    parser.add_argument("--timeout", type=float, default=600, metavar="SECONDS", help="of one process (%(default)s)")
    parser.add_argument("--at-least", type=float, metavar="R", help="exit with 1 when the geometric mean is below")
    parser.add_argument("--json", metavar="FILE", help="write all ratios")
    parser.add_argument("--plot", metavar="FILE", help="draw all ratios with their intervals (SVG)")
    before, single = sys.argv[1:], None
    if "--" in before:
        place = before.index("--")
        before, single = before[:place] + ["-"], before[place + 1:]
    arguments = parser.parse_args(before)
    programs = [os.path.abspath(arguments.ours), os.path.abspath(arguments.peer)]
    for program in programs:
        if not os.access(program, os.X_OK):
            parser.error(f"{program} is no program")
    cases = [(single[-1].rsplit("=", 1)[-1], single)] if single else read_cases(arguments.list[0])
    chance, rows = random.Random(1), []
    print(f"{'ours, ms':>10} {'peer, ms':>10}  peer / ours")
    for name, words in cases:
        logs, best, why = run_case(words, programs, arguments, chance)
        if why:
            print(f"{'':>10} {'':>10}  skipped: {why}  {name}", flush=True)
            continue
        rows.append({"case": name, "options": words, "ours_ms": best[0], "peer_ms": best[1], "ratios": [math.exp(log) for log in logs]})
        print(f"{best[0]:10.4f} {best[1]:10.4f}  {paired.text(paired.ratio(logs)):24} {name}", flush=True)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    if not rows:
        sys.exit("no case was measured")
    logs = [[math.log(value) for value in row["ratios"]] for row in rows]
    if arguments.plot:
        paired.plot(arguments.plot, ["peer"], [(row["case"], {"peer": paired.ratio(case)}) for row, case in zip(rows, logs)])
    mean = paired.geometric_mean(logs)
    behind = sum(paired.median(case) < 0 for case in logs)
    print(f"geometric mean {paired.text(mean)} of {len(rows)} cases, {behind} below 1, {len(cases) - len(rows)} skipped")
    sys.exit(arguments.at_least is not None and mean[0] < arguments.at_least)


if __name__ == "__main__":
    main()
