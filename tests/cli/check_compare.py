"""compare, ab and history on reports whose differences are known: nothing here depends on how fast the machine is.
Usage: check_compare.py GRAPH_BENCH INPUTS_DIR"""
import concurrent.futures
import contextlib
import copy
import csv
import fcntl
import io
import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM, INPUTS = sys.argv[1], sys.argv[2]

# A program that leaves reports as graph-bench does, with times by chance.
DOUBLE = r'''#!%s
import fcntl, json, os, random, sys, time
factor = float(os.environ.get("FACTOR", "1"))
with open(os.path.join(os.path.dirname(sys.argv[0]), "runs"), "ab") as runs:  # the same noise in each run of the test
    noise = random.Random(runs.tell())
    runs.write(b".")
path = next(word[7:] for word in sys.argv if word.startswith("--json="))
listed = "--mode=P" not in sys.argv
if "HANG" in os.environ and not listed:
    held = open(os.environ["HANG"], "w")
    fcntl.flock(held, fcntl.LOCK_EX)  # as long as the process lives
    time.sleep(600)
ns = 1e6 * factor * noise.lognormvariate(0, 0.02)
part = {"id": 0, "ops": "MatMul", "median_ns": None if listed else int(ns),
        "visits": [] if listed else [{"median_ns": int(ns), "probe_flops": 1e11}]}
report = {"schema": "graph-bench-report", "schema_version": 1, "ended": "complete", "summary": {}, "environment": {},
          "cases": [{"index": 0, "repro": "--mode=L --graph --case=double.json", "status": "LISTED" if listed else "EXECUTED",
                     "digest": None if listed else os.environ.get("DIGEST", "0" * 16), "partitions": [part]}]}
json.dump(report, open(path, "w"))
'''


class Comparisons(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)

    def path(self, name):
        return os.path.join(self.dir.name, name)

    def run_program(self, *arguments, **more):
        return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, **more)

    def write(self, name, document):
        with open(self.path(name), "w", encoding="utf-8") as file:
            json.dump(document, file)
        return self.path(name)

    def report(self):
        """A real report, with times that scatter by one in a hundred."""
        self.run_program(f"--input-dir={INPUTS}", "--mode=CP", "--max-ms-per-prb=20", f"--json={self.path('real.json')}",
                         "--case=op/relu.json", "--case=pattern/matmul_bias_relu.json")
        with open(self.path("real.json"), encoding="utf-8") as file:
            report = json.load(file)
        chance = random.Random(1)
        for probe in "probe_flops", "probe_l1_bytes_per_second", "probe_handshakes_per_second", "probe_clock":
            report["environment"].pop(probe)
        for case in report["cases"]:
            for part in case["partitions"]:
                visit = dict(part["visits"][0], probe_flops=1e11, probe_l1_bytes_per_second=2e11, probe_handshakes_per_second=2e7,
                             probe_clock=None, state="fast")
                part["flags"] = []
                report["environment"].pop("doctor", None)
                part["visits"] = [dict(visit, median_ns=int(1e6 * chance.uniform(.99, 1.01))) for _ in range(6)]
                part["median_ns"] = 1000000
        return report

    def scaled(self, report, factor, case=0):
        report = copy.deepcopy(report)
        for part in report["cases"][case]["partitions"]:
            part["median_ns"] = int(part["median_ns"] * factor)
            for visit in part["visits"]:
                visit["median_ns"] = int(visit["median_ns"] * factor)
        return report

    def compare(self, base, new, *more):
        result = self.run_program("compare", "--format=json", *more, self.write("base.json", base), self.write("new.json", new))
        return result, json.loads(result.stdout) if result.stdout else None

    def test_times_are_told_slower_faster_and_the_same(self):
        base = self.report()
        for factor, verdict, status in ((1, "SAME", 0), (1.1, "SLOWER", 1), (0.9, "FASTER", 0), (1.02, "SAME", 0)):
            result, differences = self.compare(base, self.scaled(base, factor))
            self.assertEqual(status, result.returncode, verdict)
            self.assertEqual([verdict, "SAME"], [row["verdict"] for row in differences["changes"]])
            self.assertAlmostEqual(factor - 1, differences["changes"][0]["change"], delta=0.002)
            self.assertEqual(1, differences["summary"][verdict] - (verdict == "SAME"))
        _, differences = self.compare(base, self.scaled(base, 1.04), "--floor=3%")
        self.assertEqual("SLOWER", differences["changes"][0]["verdict"])

    def test_a_change_no_larger_than_that_of_a_probe_is_unsure(self):
        for probe in "probe_flops", "probe_l1_bytes_per_second", "probe_bytes_per_second":
            base = self.report()
            for case in base["cases"]:
                for visit in case["partitions"][0]["visits"]:
                    visit[probe] = visit.get(probe) or 4e10  # a short visit has no probe of the memory
            for rate, verdict in ((0.92, "UNSURE"), (0.98, "SLOWER")):
                new = self.scaled(base, 1.08)
                for visit in new["cases"][0]["partitions"][0]["visits"]:
                    visit[probe] *= rate
                _, differences = self.compare(base, new)
                self.assertEqual([verdict, "SAME"], [row["verdict"] for row in differences["changes"]], probe)

    def test_arithmetic_is_compared_at_equal_clock(self):
        base = self.report()
        for flops, clock, factor, verdict in ((6e7, 0.92, 1 / 0.92, "SAME"), (6e7, 1.06, 1.1 / 1.06, "SLOWER"),
                                              (6e7, 1, 1.1, "SLOWER"), (4e7, 1.06, 1.1 / 1.06, "SAME")):
            for case in base["cases"]:
                case["partitions"][0]["flops"] = flops
            new = self.scaled(base, factor)
            for visit in new["cases"][0]["partitions"][0]["visits"]:
                visit["probe_flops"] *= clock
            _, differences = self.compare(base, new)
            row = differences["changes"][0]
            self.assertEqual((verdict, flops > 5e7), (row["verdict"], row["equal_clock"]))
            if flops > 5e7:
                self.assertAlmostEqual(factor * clock - 1, row["change"], delta=0.002)
        text = self.run_program("compare", "--all", self.path("base.json"), self.path("base.json")).stdout
        self.assertNotIn("equal clock", text)

    def test_arithmetic_end_to_end_is_compared_at_equal_clock(self):
        base, new = self.report(), self.report()
        for report, clock in ((base, 1), (new, 0.92)):
            report["cases"][0]["end_to_end"] = dict(self.whole(2000000 / clock), flops=1.2e8)
            for visit in report["cases"][0]["end_to_end"]["visits"]:
                visit["probe_flops"] *= clock
        _, differences = self.compare(base, new)
        row = differences["changes"][1]
        self.assertEqual(("SAME", True, None), (row["verdict"], row["equal_clock"], row["partition"]))
        self.assertAlmostEqual(0, row["change"], delta=0.001)

    def whole(self, ns):
        visits = [{"median_ns": ns, "probe_flops": 1e11, "state": "fast"} for _ in range(6)]
        return {"ops": "end to end", "median_ns": ns, "low_ns": ns, "high_ns": ns, "flags": [], "visits": visits}

    def test_times_end_to_end_have_a_row(self):
        """Even where the numbers of partitions differ."""
        base = self.report()
        base["cases"][0]["end_to_end"] = self.whole(2000000)
        new = copy.deepcopy(base)
        new["cases"][0]["end_to_end"] = self.whole(2500000)
        result, differences = self.compare(base, new)
        self.assertEqual(1, result.returncode)
        self.assertEqual([(0, "SAME"), (None, "SLOWER"), (0, "SAME")],
                         [(row["partition"], row["verdict"]) for row in differences["changes"]])
        self.assertAlmostEqual(0.25, differences["changes"][1]["change"], delta=0.001)
        new["cases"][0]["partitions"] *= 2
        _, differences = self.compare(base, new)
        self.assertEqual([(None, "SLOWER"), (0, "SAME")], [(row["partition"], row["verdict"]) for row in differences["changes"]])
        text = self.run_program("compare", self.write("base.json", base), self.write("new.json", new)).stdout
        self.assertRegex(text, r"(?m)^SLOWER .* ms  end to end: .*op/relu\.json$")

    def test_times_of_a_slow_machine_are_unsure(self):
        base = self.report()
        slow = self.scaled(base, 2)
        slow["cases"][0]["partitions"][0]["flags"] = ["slow"]
        _, differences = self.compare(base, slow)
        self.assertEqual("UNSURE", differences["changes"][0]["verdict"])
        self.assertIn("slow", differences["changes"][0]["why"])
        bad = self.scaled(base, 1.2)
        bad["environment"]["doctor"] = [{"name": "load", "grade": "bad", "finding": "2 of 2 processors busy", "advice": "wait"}]
        result, differences = self.compare(base, bad)
        self.assertEqual((0, 2), (result.returncode, differences["summary"]["UNSURE"]))
        for case in slow["cases"]:
            for visit in case["partitions"][0]["visits"]:
                visit["probe_flops"] = 5e10
        _, differences = self.compare(base, slow)
        seldom = {("UNSURE", "the machine was slow too often, or its cores lay elsewhere")}
        self.assertEqual(seldom, {(row["verdict"], row["why"]) for row in differences["changes"]})
        slow["environment"]["probe_flops"] = 1e11  # it knew better
        _, differences = self.compare(slow, slow)
        self.assertEqual(seldom, {(row["verdict"], row["why"]) for row in differences["changes"]})

    def test_times_of_one_state_of_the_machine_are_compared(self):
        """The fastest that has five visits of both reports."""
        near, far = {"probe_handshakes_per_second": 2e7}, {"probe_handshakes_per_second": 4e6}

        def report(states, ns):
            report = self.scaled(self.report(), ns / 1e6)
            visits = report["cases"][0]["partitions"][0]["visits"]
            report["cases"][0]["partitions"][0]["visits"] = [
                dict(visits[i % 6], **state, median_ns=None if slow else visits[i % 6]["median_ns"],
                     slow_median_ns=visits[i % 6]["median_ns"] * 2 if slow else None)
                for i, (state, slow) in enumerate(states)]
            return report

        mixed = [(near, False)] * 4 + [(far, True)] * 6
        both = [(near, False)] * 7 + [(far, True)] * 6
        for new, states, change, verdict, count in (
                (1.2e6, mixed, 0.2, "SLOWER", 6),               # far ones
                (1.2e6, [(far, True)] * 5, 0.2, "SLOWER", 5),
                (1.2e6, [(far, False)] * 5, -0.4, "FASTER", 5),  # it did not know that it was slow
                (1.2e6, [(near, False)] * 6, None, "UNSURE", 6)):
            _, differences = self.compare(report(mixed, 1e6), report(states, new))
            row = differences["changes"][0]
            self.assertEqual((verdict, count), (row["verdict"], row["new_values"]))
            if change:
                self.assertAlmostEqual(change, row["change"], delta=0.01)
        _, differences = self.compare(report(both, 1e6), report(both, 1.2e6))
        self.assertEqual(("SLOWER", 7), (differences["changes"][0]["verdict"], differences["changes"][0]["base_values"]))
        self.assertAlmostEqual(1e6, differences["changes"][0]["base_ns"], delta=1e4)

    def test_times_of_cores_that_lay_elsewhere_are_unsure(self):
        """Each probe of the cores says so, and another run of the same place does not."""
        for probe, rates in (("probe_l1_bytes_per_second", (0.9, 0.78)), ("probe_handshakes_per_second", (0.7, 0.2))):
            base = self.report()
            for case in base["cases"]:
                for visit in case["partitions"][0]["visits"]:
                    visit[probe] = 2e7
            for rate, verdict in zip(rates, ("SAME", "UNSURE")):
                new = copy.deepcopy(base)
                for case in new["cases"]:
                    for visit in case["partitions"][0]["visits"]:
                        visit[probe] *= rate
                _, differences = self.compare(base, new)
                self.assertEqual({verdict}, {row["verdict"] for row in differences["changes"]}, (probe, rate))

    def test_half_a_microsecond_is_noise(self):
        base = self.report()
        for us, verdict in ((4, "UNSURE"), (6, "SLOWER")):
            short = self.scaled(base, us * 1000 / base["cases"][0]["partitions"][0]["median_ns"])
            _, differences = self.compare(short, self.scaled(short, 1.1))
            self.assertEqual(verdict, differences["changes"][0]["verdict"], us)

    def test_what_is_no_time_is_told_too(self):
        base = self.report()
        new = copy.deepcopy(base)
        new["cases"][0]["status"] = "FAILED"
        new["cases"][0]["digest"] = "0123456789abcdef"
        new["cases"][1]["partitions"] *= 2
        base["cases"].append(dict(base["cases"][0], repro="--case=gone.json"))
        result, differences = self.compare(base, new)
        self.assertEqual(1, result.returncode)
        told = {note["text"]: note["worse"] for note in differences["notes"]}
        self.assertEqual({"PASSED -> FAILED": True, "results have other bits": False, "1 -> 2 partitions": True, "case is gone": True},
                         told)

    def test_what_a_budget_left_out_is_not_gone(self):
        base, new = self.report(), self.report()
        new["cases"].pop()
        for ended, told, status in (("complete", "case is gone", 1), ("interrupted", "case is gone", 1), ("budget", "case was not reached", 0)):
            new["ended"] = ended
            result, differences = self.compare(base, new)
            self.assertEqual(status, result.returncode)
            self.assertIn(told, [note["text"] for note in differences["notes"]])

    def test_a_result_that_cannot_be_written_is_not_taken_for_another_machine(self):
        self.write("a.json", self.report())
        result = self.run_program("compare", "-o", self.dir.name, self.path("a.json"), self.path("a.json"))
        self.assertEqual(2, result.returncode, result.stderr)

    def test_what_is_divided_otherwise_is_compared_end_to_end(self):
        base = self.report()
        part = base["cases"][0]["partitions"][0]
        base["cases"][0]["partitions"] = [dict(part, ops="MatMul+Sigmoid"), dict(part, ops="Multiply")]
        base["cases"][0]["end_to_end"] = self.whole(1000000)
        for ops, ns, verdict in ((["MatMul", "Sigmoid+Multiply"], 1000000, "SAME"), (["MatMul"], 5000000, "SLOWER"), (["MatMul"], 500000, "FASTER")):
            new = copy.deepcopy(base)
            case = new["cases"][0]
            case["partitions"] = [dict(part, ops=text) for text in ops]
            case["end_to_end"] = self.whole(ns)
            if len(ops) == 1:
                case["partitions"][0].update(dict(case.pop("end_to_end"), ops=ops[0]))
            result, differences = self.compare(base, new)
            self.assertEqual([verdict, "SAME"], [row["verdict"] for row in differences["changes"]], ops)
            self.assertEqual(int(verdict == "SLOWER"), result.returncode)
            self.assertEqual(["2 -> 1 partitions" if len(ops) == 1 else "partitions of other ops"], [note["text"] for note in differences["notes"]])

    def notes(self, base, new):
        result, differences = self.compare(base, new)
        told = {note["text"]: note["worse"] for note in differences["notes"]}
        self.assertEqual(int(any(told.values())), result.returncode)
        return told

    def test_what_fails_or_does_not_run_any_more_is_worse(self):
        base = self.report()
        lost = {"status": "SKIPPED", "partitions": [], "digest": None}
        for before, after, told in (
                ({}, lost, {"PASSED -> SKIPPED": True}), (lost, {}, {"SKIPPED -> PASSED": False}),
                (lost, {"status": "CRASHED"}, {"SKIPPED -> CRASHED": True}), ({"status": "FAILED"}, lost, {"FAILED -> SKIPPED": False}),
                ({"status": "FAILED"}, {"status": "TIMEOUT"}, {"FAILED -> TIMEOUT": False}),
                ({}, {"status": "MISTRUSTED"}, {"PASSED -> MISTRUSTED": False}),
                ({}, {"status": "MELTED"}, {"PASSED -> MELTED": True}),  # no verdict of this program
                ({}, dict(lost, status="UNIMPLEMENTED", expected="known"), {"PASSED -> UNIMPLEMENTED (expected)": False}),
                (dict(lost, expected="known"), {"status": "FAILED"}, {"SKIPPED (expected) -> FAILED": True}),
                ({"status": "FAILED", "expected": "known"}, {"status": "FAILED"}, {"FAILED (expected) -> FAILED": True})):
            reports = copy.deepcopy(base), copy.deepcopy(base)
            for report, change in zip(reports, (before, after)):
                report["cases"][0].update(change)
            self.assertEqual(told, self.notes(*reports))

    def test_new_cases_and_runs_that_went_wrong(self):
        base = self.report()
        for status, expected, told in (("PASSED", None, {"new case: PASSED": False}), ("FAILED", None, {"new case: FAILED": True}),
                                       ("FAILED", "known", {"new case: FAILED (expected)": False})):
            new = copy.deepcopy(base)
            new["cases"].append(dict(new["cases"][0], repro="--case=new.json", status=status, expected=expected))
            self.assertEqual(told, self.notes(base, new))
        new = copy.deepcopy(base)
        new["summary"]["option_errors"] = 2
        new["ended"] = "stopped"
        self.assertEqual({"0 -> 2 wrong options or unreadable batch files": True, "the run ended: complete -> stopped": False},
                         self.notes(base, new))
        self.assertEqual({"2 -> 0 wrong options or unreadable batch files": False, "the run ended: stopped -> complete": False},
                         self.notes(new, base))

    def test_times_that_are_lost_are_worse(self):
        base = self.report()
        base["cases"][1]["partitions"] *= 2
        base["cases"][1]["end_to_end"] = self.whole(2000000)
        new = copy.deepcopy(base)
        new["cases"][0]["partitions"][0].update(median_ns=None, visits=[])
        new["cases"][1]["end_to_end"] = None
        self.assertEqual({"partition 0: no time any more": True, "end to end: no time any more": True}, self.notes(base, new))
        self.assertEqual({}, self.notes(new, base))
        for case in new["cases"]:
            case["status"] = "FAILED"  # said of the case
        self.assertEqual({"PASSED -> FAILED": True}, self.notes(base, new))

    def test_cold_times_are_no_warm_times(self):
        case = ["--mode=P", "--max-ms-per-prb=20", "--case=op/matmul.json"]
        for name, cold in (("base", "none"), ("new", "all")):
            self.run_program(f"--input-dir={INPUTS}", f"--cold-cache={cold}", f"--json={self.path(name)}", *case)
        result = self.run_program("compare", "--format=json", self.path("base"), self.path("new"))
        differences = json.loads(result.stdout)
        self.assertEqual((1, []), (result.returncode, differences["changes"]))
        self.assertEqual({"new case: EXECUTED", "case is gone"}, {note["text"] for note in differences["notes"]})

    def test_other_machines_are_not_compared(self):
        base, new = self.report(), None
        for change in ({"engine": "cpu, isa baseline, 64 threads"}, {"cpu": {"model": "another"}}):
            new = copy.deepcopy(base)
            new["environment"].update(change)
            result, differences = self.compare(base, new)
            self.assertEqual((3, None), (result.returncode, differences))
            self.assertIn("not comparable", result.stderr)
            result, differences = self.compare(base, new, "--force")
            self.assertEqual(0, result.returncode)
            self.assertEqual(2, differences["summary"]["SAME"])

    def test_text_and_markdown(self):
        base = self.report()
        a, b = self.write("a.json", base), self.write("b.json", self.scaled(base, 1.2))
        text = self.run_program("compare", a, b).stdout
        self.assertRegex(text, r"(?m)^SLOWER  \+20\.0 % \(\+1\d\.\d to \+2\d\.\d\) .*op/relu\.json$")
        self.assertIn("2 times: 1 SLOWER, 0 FASTER, 1 SAME, 0 UNSURE", text)
        self.assertNotIn("matmul_bias_relu", text)
        self.assertIn("matmul_bias_relu", self.run_program("compare", "--all", a, b).stdout)
        self.run_program("compare", "--format=markdown", "-o", self.path("c.md"), a, b)
        with open(self.path("c.md"), encoding="utf-8") as file:
            self.assertRegex(file.read(), r"(?m)^\| SLOWER \| \+20\.0 % .* \| 0 `ReLU` \| `.*op/relu\.json` \|$")

    def test_wrong_usage(self):
        report = self.write("a.json", self.report())
        for arguments in (["compare", report], ["compare", report, self.path("none.json")], ["compare", "--floor=x", report, report],
                          ["compare", "--format=pdf", report, report], ["compare", "--nonsense", report, report],
                          ["ab", "--case=a.json"], ["ab", "--blocks=0", "--", "--", "--case=op/relu.json"],
                          ["ab", "--", "--", "--case=none.json"], ["history"], ["history", "forget", "x"],
                          ["history", "report", self.path("none.db")], ["history", "add", self.path("h.db"), self.path("none.json")],
                          ["env", "foo"]):
            result = self.run_program(*arguments)
            self.assertIn(result.returncode, (2, 3), arguments)
            self.assertIn("error", result.stderr, arguments)
            self.assertEqual("", result.stdout)

    def double(self):
        with open(self.path("double"), "w", encoding="utf-8") as file:
            file.write(DOUBLE % sys.executable)
        os.chmod(self.path("double"), stat.S_IRWXU)
        return self.path("double")

    def ab(self, b, blocks):
        double = self.double()
        result = self.run_program("ab", "--format=json", f"--blocks={blocks}", double, "--", *b, double, "--", "--case=double.json")
        return result, json.loads(result.stdout)

    def test_ab_finds_three_percent_and_no_difference_where_there_is_none(self):
        result, differences = self.ab(["FACTOR=1.03"], 28)
        self.assertEqual((1, "SLOWER"), (result.returncode, differences["changes"][0]["verdict"]))
        self.assertAlmostEqual(0.03, differences["changes"][0]["change"], delta=0.015)
        result, differences = self.ab([], 10)
        self.assertEqual(0, result.returncode)
        self.assertIn(differences["changes"][0]["verdict"], ("SAME", "UNSURE"))

    def test_ab_compares_outputs(self):
        _, differences = self.ab(["DIGEST=ffffffffffffffff"], 1)
        self.assertEqual(["results have other bits"], [note["text"] for note in differences["notes"]])

    def test_ab_runs_options_and_variables_on_the_program_itself(self):
        result = self.run_program("ab", "--format=json", "--blocks=1", "--ms=10", "GB_MAX_ISA=baseline", "--", "--threads=1",
                                  "--policy=debug", "--", f"--input-dir={INPUTS}", "--in-shapes=0:3x5", "--case=op/relu.json")
        differences = json.loads(result.stdout)
        self.assertEqual((0, "UNSURE"), (result.returncode, differences["changes"][0]["verdict"]))
        self.assertGreater(differences["changes"][0]["base_ns"], 0)

    def test_ab_passes_on_what_its_sides_complain_of(self):
        cases = ["--", f"--input-dir={INPUTS}", "--in-shapes=0:3x5", "--case=op/relu.json"]
        result = self.run_program("ab", "--format=json", "--blocks=1", "--ms=10", "GB_MAX_ISA=BASELINES", "--", *cases)
        told = [line for line in result.stderr.splitlines() if "means nothing here" in line]
        self.assertEqual((0, 1), (result.returncode, len(told)), result.stderr)
        self.assertTrue(told[0].startswith("side A: graphbench,error,GB_MAX_ISA,"), told)
        result = self.run_program("ab", "--format=json", "--blocks=1", "--ms=10", "--", "--frob", *cases, "--mb=0,0")
        told = [line for line in result.stderr.splitlines() if line.startswith("side ")]
        self.assertEqual((1, 1), (result.returncode, len(told)), result.stderr)  # once, and not for each case
        self.assertTrue(told[0].startswith('side B: graph-bench: error: unknown option "--frob"'), told)

    def test_ab_compares_what_is_divided_otherwise_end_to_end(self):
        result = self.run_program("ab", "--format=json", "--blocks=1", "--ms=10", "--", "--policy=debug", "--", f"--input-dir={INPUTS}",
                                  "--expected-n-partitions=0", "--case=pattern/matmul_swish.json")
        differences = json.loads(result.stdout)
        self.assertEqual(["end to end"], [row["ops"] for row in differences["changes"]])
        self.assertIn("the sides have other partitions, 1 and 3: compared end to end", [note["text"] for note in differences["notes"]])

    def test_ab_tells_of_cases_that_are_not_measured(self):
        for faulty, note, told in (("--case=none.json", "not measured: UNTESTED_FAILED (Cannot load graph)", "cannot open none.json"),
                                   ("--batch=nosuch", "1 wrong options or unreadable batch files", "cannot open nosuch")):
            result = self.run_program("ab", "--format=json", "--blocks=1", "--ms=10", "--", "--", f"--input-dir={INPUTS}", faulty,
                                      "--case=op/relu.json")
            differences = json.loads(result.stdout)
            self.assertEqual((1, 1), (result.returncode, len(differences["changes"])))
            self.assertEqual([(note, True)], [(note["text"], note["worse"]) for note in differences["notes"]])
            self.assertIn(told, result.stderr)
        result = self.run_program("ab", "--format=json", "--blocks=1", "--ms=10", "--", "--", f"--input-dir={INPUTS}", "--start=1",
                                  "--case=none.json", "--case=op/relu.json")
        self.assertEqual([("not measured: SKIPPED (Skip-start option hit)", False)],
                         [(note["text"], note["worse"]) for note in json.loads(result.stdout)["notes"]])

    def test_ab_takes_a_reproducer_line(self):
        result = self.run_program("ab", "--format=json", "--blocks=1", "--ms=10", "--", "--", f"--input-dir={INPUTS}", "--mode=P",
                                  "--in-shapes=0:3x5", "--graph", "--case=op/relu.json")
        self.assertEqual((0, ""), (result.returncode, result.stderr))
        self.assertEqual(1, len(json.loads(result.stdout)["changes"]))

    def test_ab_measures_what_a_batch_names_beside_itself(self):
        os.mkdir(self.path("beside"))
        shutil.copy(os.path.join(INPUTS, "op/relu.json"), self.path("beside/alone.json"))
        with open(self.path("beside/batch"), "w", encoding="utf-8") as file:
            file.write("--case=alone.json\n")
        result = self.run_program("ab", "--format=json", "--blocks=1", "--ms=10", "--", "--", f"--batch={self.path('beside/batch')}")
        differences = json.loads(result.stdout)
        self.assertEqual((0, [], 1), (result.returncode, differences["notes"], len(differences["changes"])))

    def end_ab(self, number, file, size, *b):
        """Sends a signal as soon as a file has a size."""
        os.mkdir(self.path("temporary"))
        double = self.double()
        process = subprocess.Popen([PROGRAM, "ab", "--format=json", "--blocks=100000", "--floor=0.001%", double, "--", *b, double,
                                    "--", "--case=double.json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=dict(os.environ, TMPDIR=self.path("temporary")))
        for _ in range(300):
            time.sleep(0.1)
            if os.path.exists(self.path(file)) and os.stat(self.path(file)).st_size >= size:
                break
        os.kill(process.pid, number)
        output, told = process.communicate(timeout=60)
        self.assertEqual((128 + number, []), (process.returncode, os.listdir(self.path("temporary"))))
        self.assertIn("interrupted; the blocks so far", told)
        os.rmdir(self.path("temporary"))
        return json.loads(output)

    def test_ab_tells_what_it_knows_when_a_signal_ends_it(self):
        differences = self.end_ab(signal.SIGINT, "runs", 10)
        self.assertGreater(differences["changes"][0]["base_values"], 0)
        self.assertEqual([], differences["notes"])
        differences = self.end_ab(signal.SIGTERM, "held", 0, f"HANG={self.path('held')}")
        self.assertEqual(([], []), (differences["changes"], differences["notes"]))
        for _ in range(50):  # what takes too long is ended, too
            with open(self.path("held"), encoding="utf-8") as held, contextlib.suppress(BlockingIOError):
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            time.sleep(0.1)
        self.fail("the run goes on")

    def dated(self, number, factor=1):
        report = self.scaled(self.history_report, factor)
        report["environment"]["time"] = "2026-01-%02dT00:00:00Z" % (number + 1)
        report["environment"]["build"]["commit"] = "c%011d" % number
        return self.write(f"r{number}.json", report)

    def test_history_finds_steps_and_is_exported(self):
        self.history_report = self.report()
        chance = random.Random(2)
        reports = [self.dated(i, chance.uniform(.99, 1.01) * (1 if i < 12 else 1.08)) for i in range(24)]
        order = reports[12:] + reports[:12]  # by time, not by the order of adding
        self.assertEqual(0, self.run_program("history", "add", self.path("h.db"), *order).returncode)
        text = self.run_program("history", "report", self.path("h.db")).stdout
        self.assertEqual(2, text.count("\n"), text)
        self.assertRegex(text, r"SLOWER  \+[78]\.\d % .* at 2026-01-13T00:00:00Z c00000000012 .*op/relu\.json")
        self.assertIn("2 series, 1 steps", text)
        rows = list(csv.DictReader(io.StringIO(self.run_program("history", "export", self.path("h.db")).stdout)))
        self.assertEqual(48, len(rows))
        self.assertEqual("c00000000000", rows[0]["commit_id"])

    def count(self, path, table):
        with contextlib.closing(sqlite3.connect(path)) as database:
            return database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]

    def add(self, *reports, told=()):
        """Adds them to the history; `told`: those of them that it has already."""
        result = self.run_program("history", "add", self.path("h.db"), *reports)
        self.assertEqual(0, result.returncode, result.stderr)
        self.assertEqual([f"graph-bench: warning: {path}: this report is in the history already" for path in told],
                         result.stderr.splitlines())

    def test_history_knows_a_report_by_all_that_is_in_it(self):
        report = self.report()
        one = self.write("one.json", report)
        self.add(one, one, told=[one])
        with open(self.path("spaced.json"), "w", encoding="utf-8") as file:
            json.dump(report, file, indent=3)
        self.add(self.path("spaced.json"), told=[self.path("spaced.json")])
        report["environment"]["host"] = "another"  # equal in all else, in the same second
        self.add(self.write("another.json", report))
        del report["environment"]["arguments"]
        self.add(self.write("bare.json", report))
        self.add(self.path("bare.json"), told=[self.path("bare.json")])
        self.assertEqual((3, 6), (self.count(self.path("h.db"), "runs"), self.count(self.path("h.db"), "results")))

    def test_history_takes_a_merged_report_beside_its_shards(self):
        base = self.report()
        shards = [self.write(f"k{i}.json", base | {"cases": [case], "shard": {"number": i + 1, "count": 2, "division": 0}})
                  for i, case in enumerate(base["cases"])]
        self.run_program("merge", *shards, "-o", self.path("k.json"))
        self.add(shards[0])
        self.add(self.path("k.json"))
        self.add(shards[1], self.path("k.json"), told=[self.path("k.json")])
        self.assertEqual((3, 4), (self.count(self.path("h.db"), "runs"), self.count(self.path("h.db"), "results")))

    def age(self):
        """Makes a file of version 1 of the history."""
        with contextlib.closing(sqlite3.connect(self.path("h.db"))) as database:
            database.executescript("""
                CREATE TABLE old(id INTEGER PRIMARY KEY, time TEXT NOT NULL, commit_id TEXT, machine TEXT NOT NULL, compiler TEXT,
                                 arguments TEXT, UNIQUE(time, machine, arguments));
                INSERT INTO old SELECT id, time, commit_id, machine, compiler, arguments FROM runs;
                DROP TABLE runs; ALTER TABLE old RENAME TO runs; PRAGMA user_version = 1;""")

    def test_history_of_an_older_version_is_read_and_taken_over(self):
        self.history_report = base = self.report()
        reports = [self.dated(i, 1 if i < 6 else 1.1) for i in range(12)]
        self.add(*reports)
        told = self.run_program("history", "report", self.path("h.db")).stdout
        self.assertIn("2 series, 1 steps", told)
        self.age()
        with open(self.path("h.db"), "rb") as file:
            before = file.read()
        self.assertEqual(told, self.run_program("history", "report", self.path("h.db")).stdout)
        result, _ = self.compare(base, base, f"--history={self.path('h.db')}")
        self.assertEqual((0, ""), (result.returncode, result.stderr))
        with open(self.path("h.db"), "rb") as file:
            self.assertEqual(before, file.read())
        with open(reports[0], encoding="utf-8") as file:
            other = self.write("other.json", self.scaled(json.load(file), 1.01))  # in the same second
        self.add(reports[0], other, other, told=[reports[0], other])
        self.assertEqual((13, 26), (self.count(self.path("h.db"), "runs"), self.count(self.path("h.db"), "results")))

    def test_history_of_an_older_version_has_two_writers(self):
        self.history_report = self.report()
        self.add(self.dated(0))
        self.age()
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            results = list(pool.map(lambda path: self.run_program("history", "add", self.path("h.db"), path),
                                    [self.dated(i) for i in range(8)]))
        self.assertEqual([0] * 8, [result.returncode for result in results], results)
        self.assertEqual((8, 16), (self.count(self.path("h.db"), "runs"), self.count(self.path("h.db"), "results")))

    def test_history_tells_all_steps(self):
        """Twenty-four of a tenth: each is measured up to the next one, the last one, too."""
        self.history_report = self.report()
        self.add(self.dated(0))
        with contextlib.closing(sqlite3.connect(self.path("h.db"))) as database, database:
            run = database.execute("SELECT time, machine FROM runs").fetchone()
            rows = [("2026-02-%02dT%02d:00:00Z" % (level + 1, at), int(1e6 * 1.1 ** level) + at % 3) for level in range(25) for at in range(8)]
            for row, (time, ns) in enumerate(rows):
                database.execute("INSERT INTO runs(id, time, machine) VALUES(?, ?, ?)", (row + 2, time, run[1]))
                database.execute("INSERT INTO results(run, repro, part, median_ns) VALUES(?, 'stairs', 0, ?)", (row + 2, ns))
        text = self.run_program("history", "report", self.path("h.db")).stdout
        steps = [line.split()[:2] for line in text.splitlines() if "stairs" in line]
        self.assertEqual([["SLOWER", "+10.0"]] * 24, steps)

    def broken(self):
        """Files that are no whole history, by name, with what is told of them."""
        self.history_report = self.report()
        self.add(self.dated(0))

        def write(name, content):
            with open(self.path(name), "wb") as file:
                file.write(content)

        def change(name, script, source=None):
            if source:
                shutil.copy(self.path(source), self.path(name))
            with contextlib.closing(sqlite3.connect(self.path(name))) as database:
                database.executescript(script)
        write("empty.db", b"")
        write("text.db", b"This is no database.\n" * 100)
        change("notes.db", "CREATE TABLE notes(text)")
        change("runs.db", "CREATE TABLE runs(id INTEGER); CREATE TABLE results(run, repro); PRAGMA user_version = 1")
        change("new.db", "PRAGMA user_version = 99", "h.db")
        change("column.db", "ALTER TABLE results RENAME median_ns TO median", "h.db")
        change("table.db", "DROP TABLE results", "h.db")
        with open(self.path("h.db"), "rb") as file:
            whole = file.read()
        page = int.from_bytes(whole[16:18], "big")
        with contextlib.closing(sqlite3.connect(self.path("h.db"))) as database:
            root = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'results'").fetchone()[0]
        write("page.db", whole[:(root - 1) * page] + b"\xff" * page + whole[root * page:])
        return {"none.db": "unable to open", "empty.db": "empty", "text.db": "not a database", "notes.db": "another program's",
                "runs.db": "no such column", "new.db": "version 99", "column.db": "median_ns", "table.db": "another program's",
                "page.db": "damaged"}

    def content(self, name):
        if not os.path.exists(self.path(name)):
            return None
        with open(self.path(name), "rb") as file:
            return file.read()

    def test_what_is_no_history_is_an_error_and_stays_as_it_is(self):
        files, report = self.broken(), self.path("r0.json")
        for name, told in files.items():
            path, before = self.path(name), self.content(name)
            commands = [["history", "report", path], ["history", "export", path], ["compare", f"--history={path}", report, report],
                        ["report", f"--history={path}", report, "-o", self.path("x.html")]]
            commands += [["history", "add", path, report]] if name not in ("none.db", "empty.db", "page.db") else []
            for command in commands:
                result = self.run_program(*command)
                self.assertEqual((2, ""), (result.returncode, result.stdout), command)
                self.assertIn(path, result.stderr)
                self.assertIn(told, result.stderr)
                self.assertEqual(before, self.content(name), command)
        for name in "none.db", "empty.db":
            self.assertEqual(0, self.run_program("history", "add", self.path(name), report).returncode)
            self.assertEqual(2, self.count(self.path(name), "results"))
        result = self.run_program("history", "report", self.path("h.db"), "-o", self.path("nowhere/x"))
        self.assertEqual(3, result.returncode)
        self.assertEqual(3, self.run_program("history", "add", self.path("nowhere/h.db"), report).returncode)

    def test_history_keeps_times_end_to_end_apart(self):
        self.history_report = self.report()
        for run in range(12):
            self.history_report["cases"][0]["end_to_end"] = self.whole(2000000 + run % 3 * 1000 + 500000 * (run >= 6))
            self.run_program("history", "add", self.path("h.db"), self.dated(run))
        text = self.run_program("history", "report", self.path("h.db")).stdout
        self.assertRegex(text, r"SLOWER  \+25\.\d % .* at 2026-01-07T00:00:00Z c00000000006  end to end: .*op/relu\.json")
        self.assertIn("3 series, 1 steps", text)

    def test_history_tells_compare_how_noisy_a_case_is(self):
        self.history_report = self.report()
        chance = random.Random(3)
        reports = [self.dated(i, chance.uniform(.9, 1.1)) for i in range(20)]
        self.run_program("history", "add", self.path("h.db"), *reports)
        base = self.history_report
        _, differences = self.compare(base, self.scaled(base, 1.1))
        self.assertEqual("SLOWER", differences["changes"][0]["verdict"])
        _, differences = self.compare(base, self.scaled(base, 1.1), f"--history={self.path('h.db')}")
        self.assertEqual("UNSURE", differences["changes"][0]["verdict"])

    def with_option(self, report):
        """As a batch file has the cases: with --expected-n-partitions=1 in their lines, which older reports have not."""
        report = copy.deepcopy(report)
        for case in report["cases"]:
            case["repro"] = case["repro"].replace("--case=", "--expected-n-partitions=1 --case=")
        return report

    def test_lines_of_batches_are_the_same_with_and_without_their_option(self):
        base = self.report()
        for reports in ((base, self.with_option(base)), (self.with_option(base), base)):
            result, differences = self.compare(*reports)
            self.assertEqual((0, [], 2), (result.returncode, differences["notes"], differences["summary"]["SAME"]))
        chance = random.Random(3)
        reports = []
        for run in range(20):
            self.history_report = base if run < 10 else self.with_option(base)
            reports.append(self.dated(run, chance.uniform(.9, 1.1)))
        self.run_program("history", "add", self.path("h.db"), *reports)
        self.assertIn("2 series, ", self.run_program("history", "report", self.path("h.db")).stdout)
        for own in (base, self.with_option(base)):
            _, differences = self.compare(own, self.scaled(own, 1.1), f"--history={self.path('h.db')}")
            self.assertEqual("UNSURE", differences["changes"][0]["verdict"])
            self.run_program("report", self.write("own.json", own), f"--history={self.path('h.db')}", "-o", self.path("own.html"))
            with open(self.path("own.html"), encoding="utf-8") as file:
                inside = file.read().split('<script type="application/json" id="data">\n')[1].split("</script>")[0]
            self.assertEqual([20, 20], [len(series["points"]) for series in json.loads(inside)["history"]])

    def test_history_has_two_writers(self):
        self.history_report = self.report()
        reports = [self.dated(i) for i in range(24)]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            results = list(pool.map(lambda path: self.run_program("history", "add", self.path("h.db"), path), reports))
        self.assertEqual([0] * 24, [result.returncode for result in results], results)
        with sqlite3.connect(self.path("h.db")) as database:
            self.assertEqual((24, 48), (database.execute("SELECT count(*) FROM runs").fetchone()[0],
                                        database.execute("SELECT count(*) FROM results").fetchone()[0]))
            database.execute("PRAGMA user_version = 99")
        database.close()
        result = self.run_program("history", "report", self.path("h.db"))
        self.assertEqual(2, result.returncode)
        self.assertIn("version 99", result.stderr)

    def test_reports_that_find_no_room_are_not_compared(self):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        report = self.write("report.json", self.report())
        result = self.run_program("compare", report, report, preexec_fn=limit)
        self.assertEqual((2, ""), (result.returncode, result.stdout))
        self.assertIn("results cannot be kept in a temporary file in ", result.stderr)
        result = self.run_program("history", "add", self.path("times.db"), report, env=dict(os.environ, TMPDIR=self.path("missing")))
        self.assertEqual(3, result.returncode)
        self.assertIn("results cannot be kept in a temporary file in ", result.stderr)

    def test_a_result_that_cannot_be_written_is_told_at_once(self):
        report, cases = self.write("report.json", self.report()), [f"--input-dir={INPUTS}", "--case=op/relu.json"]
        for path in (self.dir.name, self.path("no/x")):
            for command, *words in (["compare", report, report], ["ab", "--", "--", *cases]):
                result = self.run_program(command, "-o", path, *words)
                self.assertEqual((2, ""), (result.returncode, result.stdout), command)
                self.assertRegex(result.stderr, f"{path}: cannot be written: (Is a directory|No such file or directory)")
        self.assertEqual(["real.json", "report.json"], sorted(os.listdir(self.dir.name)))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
