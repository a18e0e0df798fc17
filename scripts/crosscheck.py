#!/usr/bin/env python3
"""A second opinion: graphs run by another runtime on the same data; its results are held to our reference, as ours are, within the bounds of
docs/numerics.md (graph-bench --golden). Says for how many graphs all three agree, and names those where one does not; graphs that
scripts/graph_to_onnx.py cannot convert, or the runtime does not take, are counted by reason. The runtime is ONNX Runtime, a Python package
(onnxruntime; it needs onnx and numpy): without it, this skips aloud. Exit status: 0, 1 when a result lies outside, 2 for wrong usage.

  crosscheck.py --case=op/matmul.json --case=pattern/conv_bias_relu.json
  crosscheck.py --batch=op/ci --keep=build/crosscheck"""
import argparse
import collections
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

NEEDED = ("numpy", "onnx", "onnxruntime")


def list_cases(program, options):
    """Arguments of each case, as its reproducer line has them."""
    done = subprocess.run([program, "--mode=L", *options], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit((done.stderr or done.stdout).strip())
    lines = re.findall(r"(?m)__REPRO: (.*)$", done.stdout)
    return [[word for word in shlex.split(line) if word not in ("--mode=L", "--graph")] for line in lines]


def save(program, case, folder):
    """Data and the graph with all its shapes; False where graph-bench itself does not run it."""
    graph = os.path.join(folder, "graph.json")
    done = subprocess.run([program, "--mode=R", "--layouts=strided", "--expected-n-partitions=0", f"--save-tensors={folder}",
                           f"--save-graph={graph}", *case], capture_output=True, text=True)
    return done.returncode == 0 and os.path.exists(graph)


def run_there(folder, results):
    """The other runtime's results, beside the data."""
    import numpy
    import onnxruntime
    import graph_to_onnx
    model = os.path.join(folder, "model.onnx")
    given, made = graph_to_onnx.write(os.path.join(folder, "graph.json"), folder, model)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    inputs = {f"t{t['id']}": graph_to_onnx.load(folder, t) for t in given}
    known = {i.name for i in session.get_inputs()}
    values = session.run([f"t{t['id']}" for t in made], {name: value for name, value in inputs.items() if name in known})
    os.makedirs(results, exist_ok=True)
    for tensor, value in zip(made, values):
        numpy.save(graph_to_onnx.file_of(results, tensor, "out"), value)


def first_line(error):
    return re.sub(r"\s+", " ", str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__)[:100]


def prepare(program, cases, folder, reasons):
    """Lines of a batch that holds the other runtime's results to the reference."""
    import graph_to_onnx
    lines = []
    for number, case in enumerate(cases):
        place = os.path.join(folder, str(number))
        os.makedirs(place, exist_ok=True)
        if not save(program, case, place):
            reasons["graph-bench does not run it"] += 1
            continue
        try:
            run_there(place, os.path.join(place, "other"))
        except graph_to_onnx.NotConverted as error:
            reasons[f"not converted: {first_line(error)}"] += 1
        except Exception as error:  # a runtime raises what it likes; the case is told, and the others go on
            reasons[f"not run: {first_line(error)}"] += 1
        else:
            lines.append(f"--reset --layouts=strided --expected-n-partitions=0 --load-tensors={place} --golden={place}/other "
                         f"--case={place}/graph.json")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("--program", default=os.path.join(here, "../build/release/graph-bench"), help="graph-bench (build/release)")
    parser.add_argument("--keep", metavar="DIR", help="keep data, models and results in DIR")
    arguments, options = parser.parse_known_args()
    if not options:
        parser.error("no case: options of graph-bench are missing")
    missing = [name for name in NEEDED if not importlib.util.find_spec(name)]
    if missing:
        print(f"skipped: {sys.executable} has no {' and no '.join(missing)}")
        return 0
    cases, reasons = list_cases(arguments.program, options), collections.Counter()
    with tempfile.TemporaryDirectory() as temporary:
        folder = os.path.abspath(arguments.keep or temporary)
        os.makedirs(folder, exist_ok=True)
        lines = prepare(arguments.program, cases, folder, reasons)
        batch, report = os.path.join(folder, "batch"), os.path.join(folder, "report.json")
        with open(batch, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        if lines:
            done = subprocess.run([arguments.program, "--mode=C", f"--json={report}", f"--batch={batch}"], capture_output=True, text=True)
            if done.returncode not in (0, 1):
                sys.exit(f"{batch} was not run: {done.stderr.strip()}")
            with open(report, encoding="utf-8") as file:
                records = json.load(file)["cases"]
        else:
            records = []
    bad = [record for record in records if record["status"] not in ("PASSED", "MISTRUSTED")]
    for record in bad:
        number = int(os.path.basename(os.path.dirname(record["file"])))
        mismatch = (record["mismatches"] or [{"comparison": record["reason"] or "", "tensor": 0, "index": 0}])[0]
        print(f"{record['status']} ({mismatch['comparison']}): {' '.join(cases[number])}")
    for reason, count in reasons.most_common():
        print(f"{count:6d}  {reason}")
    print(f"cases:{len(cases)} compared:{len(records)} agree:{len(records) - len(bad)} outside:{len(bad)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
