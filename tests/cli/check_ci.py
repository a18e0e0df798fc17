"""The workflows of docs/ci.md: the script runs as written, what it leaves is there, failures and known ones count as they should.
Usage: check_ci.py GRAPH_BENCH INPUTS_DIR"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

try:
    import yaml
except ImportError:
    yaml = None

PROGRAM, INPUTS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
SCRIPT = os.path.join(ROOT, "examples/ci/ci.sh")


class Ci(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.batch("--case=op/relu.json", "--case=op/matmul.json")

    def path(self, name):
        return os.path.join(self.folder, name)

    def batch(self, *words):
        with open(self.path("batch"), "w", encoding="utf-8") as file:
            file.write("\n".join(words) + "\n")

    def run_script(self, **variables):
        environment = dict(os.environ, GRAPH_BENCH=PROGRAM, GRAPHBENCH_INPUT_DIR=INPUTS, MS="20", **variables)
        return subprocess.run([SCRIPT, "batch"], cwd=self.folder, env=environment, capture_output=True, text=True)

    def left(self, folder):
        return sorted(os.listdir(self.path(folder)))

    def baseline(self):
        with open(self.path("graph-bench-kept/baseline.json"), encoding="utf-8") as file:
            return json.load(file)

    def test_good_runs(self):
        result = self.run_script()
        if "this build has no" in result.stderr:
            self.skipTest("this build has no history")
        self.assertEqual(0, result.returncode, result.stderr)
        self.assertEqual(["baseline.json", "history.db"], self.left("graph-bench-kept"))
        first = self.baseline()
        slower = json.loads(json.dumps(first))  # than any machine: the second run is faster, or unsure
        for case in slower["cases"]:
            for part in case["partitions"]:
                for times in [part, *part["visits"]]:
                    times["median_ns"] = times["median_ns"] and times["median_ns"] * 100
        with open(self.path("graph-bench-kept/baseline.json"), "w", encoding="utf-8") as file:
            json.dump(slower, file)
        result = self.run_script()
        self.assertEqual(0, result.returncode, result.stderr)
        self.assertLessEqual({"changes.md", "junit.xml", "machine.txt", "times.html", "times.json", "verdicts.html", "verdicts.json"},
                             set(self.left("graph-bench-results")))
        self.assertIn("2 times", result.stdout)
        self.assertEqual(slower, self.baseline())
        self.assertEqual(0, self.run_script(UPDATE="1").returncode)
        self.assertNotIn(self.baseline(), (first, slower))

    def test_a_failed_case_fails_the_run(self):
        self.batch("--case=op/relu.json", "--case=none.json")
        self.assertEqual(1, self.run_script().returncode)
        self.assertEqual(["junit.xml", "verdicts.html", "verdicts.json"], self.left("graph-bench-results"))
        self.assertEqual("1", xml.parse(self.path("graph-bench-results/junit.xml")).getroot().get("errors"))
        with open(self.path("known"), "w", encoding="utf-8") as file:
            file.write("UNTESTED_FAILED none.json # not written yet\n")
        for _ in range(2):  # the second one is compared with the first
            result = self.run_script(EXPECTED="known", FLOOR="99%")
            self.assertEqual(0, result.returncode, result.stderr)
            self.assertIn("times.json", self.left("graph-bench-results"))
        self.batch("--case=op/relu.json")  # what does not fail any more
        self.assertEqual(1, self.run_script(EXPECTED="known").returncode)

    def test_a_run_that_went_wrong_is_none_that_is_slower(self):
        self.assertEqual(0, self.run_script().returncode)
        if "history.db" not in self.left("graph-bench-kept"):
            self.skipTest("this build has no history")
        with open(self.path("graph-bench-kept/baseline.json"), "w", encoding="utf-8") as file:
            file.write('{"broken')
        self.assertEqual(2, self.run_script().returncode)

    def test_half_a_run_is_no_baseline(self):
        result = self.run_script(BUDGET="0.0001s")
        self.assertEqual(0, result.returncode, result.stderr)
        self.assertNotIn("baseline.json", self.left("graph-bench-kept"))

    def test_an_earlier_run_does_not_count(self):
        self.assertEqual(0, self.run_script().returncode)
        with open(self.path("graph-bench-results/verdicts.json"), encoding="utf-8") as file:
            report = json.load(file)
        report["cases"][0]["status"] = "FAILED"
        with open(self.path("graph-bench-results/verdicts.json"), "w", encoding="utf-8") as file:
            json.dump(report, file)
        self.assertEqual(1, self.run_script(RESUME="1").returncode)  # goes on with what is there
        self.assertEqual(0, self.run_script().returncode)
        self.batch("--no-such-option")
        self.assertNotEqual(0, self.run_script().returncode)
        self.assertNotIn("times.json", self.left("graph-bench-results"))

    def test_the_workflow_names_what_is_there(self):
        with open(os.path.join(ROOT, "examples/ci/github-actions.yml"), encoding="utf-8") as file:
            text = file.read()
        for path in re.findall(r"(?:examples|inputs)/[\w./]+", text):
            self.assertTrue(os.path.exists(os.path.join(ROOT, path)), path)
        with open(os.path.join(ROOT, "CMakePresets.json"), encoding="utf-8") as file:
            presets = [preset["name"] for preset in json.load(file)["configurePresets"]]
        self.assertLessEqual(set(re.findall(r"--preset (\w+)", text)), set(presets))
        if not yaml:
            self.skipTest("the Python package yaml is missing")
        steps = yaml.safe_load(text)["jobs"]["graph-bench"]["steps"]
        self.assertIn("examples/ci/ci.sh inputs/graph/demo", [step.get("run") for step in steps])


unittest.main(argv=sys.argv[:1])
