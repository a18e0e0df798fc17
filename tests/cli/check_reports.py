"""The files that a run leaves: what they hold, that other readers understand them, and that they are there however the run
ends. Usage: check_reports.py GRAPH_BENCH INPUTS_DIR"""
import csv
import json
import os
import platform
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import zlib
import xml.etree.ElementTree as xml

try:
    import jsonschema
except ImportError:
    jsonschema = None

PROGRAM, INPUTS = sys.argv[1], sys.argv[2]
SCHEMA = os.path.join(os.path.dirname(__file__), "../../docs/json-report.schema.json")
MANY = ["--mode=R", "--batch=op/all"]  # some thousand cases, seconds


class Reports(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)

    def path(self, name):
        return os.path.join(self.dir.name, name)

    def run_program(self, *arguments, subcommand=None, **more):
        command = [PROGRAM, *(subcommand or [f"--input-dir={INPUTS}", *arguments])]
        return subprocess.run(command, capture_output=True, text=True, **more)

    def report(self, name="report.json"):
        with open(self.path(name), encoding="utf-8") as file:
            return json.load(file)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def test_a_report_says_where_it_comes_from(self):
        self.run_program(f"--json={self.path('report.json')}", "--case=op/relu.json")
        report = self.report()
        environment = report["environment"]
        self.assertEqual("complete", report["ended"])
        self.assertEqual(1, report["summary"]["PASSED"])
        self.assertIn("--case=op/relu.json", environment["arguments"])
        self.assertEqual({"commit", "compiler", "flags", "type"}, environment["build"].keys())
        self.assertIn("load", environment["cpu"])

    @unittest.skipUnless(jsonschema, "the Python package jsonschema is missing")
    def test_reports_are_as_their_schema_says(self):
        with open(SCHEMA, encoding="utf-8") as file:
            schema = json.load(file)
        self.run_program("--mode=CP", "--max-ms-per-prb=10", f"--json={self.path('report.json')}", "--case=op/relu.json",
                         "--case=none.json", "--expected-n-partitions=7", "--case=pattern/matmul_bias_relu.json",
                         "--expected-n-partitions=", "--case=model/bert_base_small_f32.json")
        jsonschema.validate(self.report(), schema)
        broken = self.report()
        del broken["cases"][3]["end_to_end"]["median_ns"]
        with self.assertRaises(jsonschema.ValidationError):
            jsonschema.validate(broken, schema)
        broken = self.report()
        del broken["cases"][0]["partitions"][0]["median_ns"]
        with self.assertRaises(jsonschema.ValidationError):
            jsonschema.validate(broken, schema)

    def test_what_was_not_measured_is_null(self):
        self.run_program(f"--json={self.path('report.json')}", "--case=op/relu.json")
        case = self.report()["cases"][0]
        self.assertIsNone(case["min_ms"])
        self.assertIsNone(case["average_ms"])
        self.assertIsNone(case["partitions"][0]["median_ns"])

    def test_visits_are_told_and_samples_on_request(self):
        arguments = ["--mode=CP", "--max-ms-per-prb=60", "--visits=3", "--ci=20%", f"--json={self.path('report.json')}",
                     "--case=op/relu.json", "--case=none.json", "--case=pattern/matmul_bias_relu.json"]
        result = self.run_program("--samples", *arguments)
        cases = self.report()["cases"]
        self.assertEqual([0, 1, 2], [case["index"] for case in cases])  # in order, though visited in another one
        self.assertEqual(["PASSED", "UNTESTED_FAILED", "PASSED"], [case["status"] for case in cases])
        self.assertLess(result.stdout.index("0:PASSED"), result.stdout.index("2:PASSED"))
        for case in (cases[0], cases[2]):
            part = case["partitions"][0]
            self.assertGreaterEqual(len(part["visits"]), 3)
            self.assertEqual(part["samples"], sum(len(visit["samples_ns"]) for visit in part["visits"]))
            self.assertLessEqual(part["low_ns"], part["median_ns"])
            self.assertLessEqual(part["median_ns"], part["high_ns"])
            self.assertIn(part["stopped_by"], ("converged", "noisy", "budget"))
            visit = part["visits"][0]  # without a state only where every sample of the visit was disturbed
            self.assertIn(visit["state"], ("fast", "slow") if visit["preempted"] < visit["samples"] else ("fast", "slow", None))
        self.run_program(*arguments)
        self.assertNotIn("samples_ns", self.report()["cases"][0]["partitions"][0]["visits"][0])

    def test_messages_of_later_visits_are_kept(self):
        """The graph comes through a pipe: the second visit gets another file than the first."""
        os.mkfifo(self.path("graph.json"))
        with open(os.path.join(INPUTS, "op/relu.json"), encoding="utf-8") as file:
            graph = file.read()
        command = [PROGRAM, "--mode=P", "--visits=3", "--fix-times-per-prb=3", f"--json={self.path('report.json')}", "--in-shapes=77:2x2",
                   f"--case={self.path('graph.json')}"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for text in (graph, "{ this is no graph"):
            with open(self.path("graph.json"), "w", encoding="utf-8") as file:
                file.write(text)
            time.sleep(1)  # it is read to its end before the next one comes
        told = process.communicate(timeout=60)[1]
        case = self.report()["cases"][0]
        self.assertEqual("FAILED", case["status"])
        self.assertIn("visit 2: ", case["reason"])
        warning, error = case["messages"]  # the warning of the first visit once
        self.assertIn("the graph has no tensor 77", warning)
        self.assertRegex(error, r"^error: .*graph\.json:1")
        self.assertIn(error, told)

    def test_several_partitions_are_timed_end_to_end(self):
        result = self.run_program("-v1", "--mode=CP", "--max-ms-per-prb=100", f"--json={self.path('report.json')}",
                                  f"--csv={self.path('report.csv')}", "--case=model/bert_base_small_f32.json", "--case=op/relu.json")
        model, op = self.report()["cases"]
        whole, parts = model["end_to_end"], model["partitions"]
        self.assertEqual("PASSED", model["status"])
        self.assertGreater(len(parts), 1)
        self.assertGreater(whole["min_ns"], 0)
        self.assertLessEqual(whole["low_ns"], whole["median_ns"])
        self.assertEqual(whole["samples"], sum(visit["samples"] for visit in whole["visits"]))
        self.assertIsNone(op["end_to_end"])  # its only partition is the whole
        self.assertEqual(1, len(re.findall(rf"(?m)^end to end: {len(parts)} partitions; min .*; sum of the partitions .* ms$", result.stdout)))
        # What scripts read are the times of the whole graph, as those of benchdnn are.
        lines = [line.rsplit(",", 2)[1:] for line in result.stdout.splitlines() if line.startswith("perf,cpu,")]
        for expected, printed in ((whole["min_ns"] / 1e6, lines[0][0]), (whole["average_ns"] / 1e6, lines[0][1]), (op["min_ms"], lines[1][0])):
            self.assertAlmostEqual(1, float(printed) / expected, delta=1e-5)  # six digits are printed
        self.assertAlmostEqual(model["min_ms"], sum(part["min_ns"] for part in parts) / 1e6, delta=1e-9)
        with open(self.path("report.csv"), newline="", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["index"] == "0"]
        self.assertEqual(len(parts) + 1, len(rows))
        self.assertEqual(("all", "end to end", str(whole["median_ns"])), tuple(rows[-1][key] for key in ("partition", "ops", "median_ns")))

    def test_cold_caches(self):
        """The report says which caches were cold; the bits stay the same. tests/test_measure.c sees what is flushed."""
        command = ["--mode=P", "--max-ms-per-prb=60", f"--json={self.path('report.json')}", "--tensor-property=1:constant",
                   "--in-shapes=0:1x1024+1:1024x1024", "--case=op/matmul.json", "--cold-cache=wei", "--case=op/matmul.json",
                   "--cold-cache=all", "--case=op/matmul.json", "--reset", "--case=op/relu.json", "--cold-cache=wei", "--case=op/relu.json"]
        self.run_program(*command)
        cases = self.report()["cases"]
        if platform.machine() != "x86_64":
            self.assertTrue(all("cannot be flushed" in case["reason"] for case in cases[1:]))
            self.skipTest("this processor's caches cannot be flushed")
        self.assertEqual(["none", "wei", "all", "all", "wei"], [case["cold_cache"] for case in cases])
        self.assertEqual(["EXECUTED"] * 4 + ["SKIPPED"], [case["status"] for case in cases])
        self.assertIn("neither constants nor weights", cases[4]["reason"])
        self.assertIn("--cold-cache=wei", cases[1]["repro"])
        part = cases[1]["partitions"][0]
        self.assertEqual({1}, {visit["calls_per_sample"] for visit in part["visits"]})
        self.assertEqual(cases[0]["digest"], cases[1]["digest"])
        wrong = self.run_program("--cold-cache=custom", "--case=op/relu.json")
        self.assertEqual(2, wrong.returncode)
        self.assertIn("none, wei or all", wrong.stderr)

    def test_a_fixed_count_is_exact(self):
        self.run_program("--mode=P", "--fix-times-per-prb=7", "--visits=2", f"--json={self.path('report.json')}", "--case=op/relu.json")
        part = self.report()["cases"][0]["partitions"][0]
        self.assertEqual((14, "fixed", [7, 7]), (part["samples"], part["stopped_by"], [v["samples"] for v in part["visits"]]))

    def test_a_doctor_looks_at_the_machine(self):
        checks = json.loads(self.run_program(subcommand=["env", "--json"]).stdout)["doctor"]
        self.assertLessEqual({"affinity", "quota", "load", "steal", "clock"}, {check["name"] for check in checks})
        crowd = dict(os.environ, OMP_NUM_THREADS="4096")  # more threads than any machine of today has
        text = self.run_program(subcommand=["env"], env=crowd)
        self.assertEqual(0, text.returncode)
        self.assertRegex(text.stdout, r"(?m)^BAD +affinity +4096 threads on \d+ processors; ")
        self.assertEqual(1, self.run_program(subcommand=["env", "--strict-env"], env=crowd).returncode)
        result = self.run_program("--mode=P", "--threads=4096", "--strict-env", "--case=op/relu.json")
        self.assertEqual(1, result.returncode)
        self.assertRegex(result.stdout, r"0:UNTESTED_FAILED \(--strict-env: affinity: 4096 threads on")
        self.run_program("--mode=P", f"--json={self.path('report.json')}", "--max-ms-per-prb=100", "--case=op/relu.json")
        environment = self.report()["environment"]
        self.assertEqual([check["name"] for check in checks], [check["name"] for check in environment["doctor"]])
        self.assertGreater(environment["chain_after_ns"], 0)

    def test_lists(self):
        cases = ["--policy=debug", f"--input-dir={INPUTS}", "--mb=0,2", "--case=pattern/matmul_bias_relu.json"]
        listed = self.run_program(subcommand=["list", "cases", *cases]).stdout.splitlines()
        self.assertEqual(["--case=pattern/matmul_bias_relu.json", "--mb=2 --case=pattern/matmul_bias_relu.json"], listed)
        self.assertEqual("     4  single_op\n", self.run_program(subcommand=["list", "patterns", *cases]).stdout)
        self.assertIn("gemm", self.run_program(subcommand=["list", "kernels", *cases]).stdout)
        self.assertEqual("     4  single_op\n", self.run_program(subcommand=["list", "patterns", "--mode=L", *cases]).stdout)
        self.assertIn("cpu:0", self.run_program(subcommand=["list", "devices"]).stdout)
        for what in ("cases", "patterns", "kernels"):
            for faulty, told in (("--batch=nosuch", "cannot open nosuch"), ("--case=none.json", "cannot open none.json")):
                result = self.run_program(subcommand=["list", what, *cases, faulty])
                self.assertEqual(1, result.returncode)
                self.assertIn(told, result.stderr)
                self.assertNotEqual("", result.stdout)
        wildcard = self.write("unknown.gbt", "graph engine=cpu fpmath=strict\n0: %1:f32:8x8 = Wildcard(%0:f32:8x8)\n")
        result = self.run_program(subcommand=["list", "patterns", f"--case={wildcard}"])
        self.assertEqual((1, 1), (result.returncode, result.stderr.count("unknown.gbt: U")))
        for wrong in (["list"], ["list", "cases"], ["list", "colours"], ["completion", "fish"], ["completion"]):
            self.assertEqual(2, self.run_program(subcommand=wrong).returncode)

    def complete(self, *words):
        """What bash offers in place of the last word, behind its last "=" or ":", and the options of readline that are set."""
        cut = ["graph-bench", *(part for word in words for part in re.split("([=:]+)", word) if part or not word)]
        script = self.run_program(subcommand=["completion", "bash"]).stdout + f"""
            compopt() {{ echo "$2" >&2; }}
            COMP_WORDS=({" ".join(map(shlex.quote, cut))}) COMP_CWORD={len(cut) - 1}
            _graph_bench; for found in "${{COMPREPLY[@]}}"; do echo "$found"; done"""
        result = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, cwd=self.dir.name)
        return sorted(result.stdout.splitlines()), result.stderr.split()

    def test_completion_follows_the_tables(self):
        self.assertEqual((["--mode="], ["nospace"]), self.complete("--mode"))
        self.assertEqual((["--help"], []), self.complete("env", "--he"))
        self.assertEqual((["compare", "completion"], []), self.complete("com"))
        self.assertEqual((["run"], []), self.complete("ru"))
        self.assertEqual((["--floor=", "--force", "--format="], ["nospace"]), self.complete("compare", "--f"))
        self.assertEqual((["add", "export", "report"], []), self.complete("history", ""))
        self.assertEqual((["cases", "devices", "kernels", "ops", "patterns"], []), self.complete("list", ""))
        self.assertEqual((["bash", "zsh"], []), self.complete("completion", ""))
        for command in ["reduce"], ["list", "cases"], ["ab", "GB_MAX_ISA=avx2", "--", "--", "--mb=1"], ["run"]:
            self.assertEqual(["--caches=", "--canonical=", "--case-memory=", "--case-timeout=", "--case="],
                             self.complete(*command, "--ca")[0], command)
        self.assertEqual(([], []), self.complete("compare", "--ca"))
        bash, zsh = (self.run_program(subcommand=["completion", shell]).stdout for shell in ("bash", "zsh"))
        self.assertIn("#compdef graph-bench", zsh)
        for option in re.findall(r"(?m)^  --([a-z-]+)=", self.run_program(subcommand=["--help"]).stdout):
            self.assertIn(f"'*--{option}=-[", zsh)
            self.assertIn(f"--{option}= ", bash)

    def test_completion_knows_values(self):
        self.assertEqual((["debug", "fusion", "max"], []), self.complete("--policy="))
        self.assertEqual((["C", "CF", "CP"], []), self.complete("list", "cases", "--mode=C"))
        self.assertEqual((["cpu", "gpu"], []), self.complete("fuzz", "--engine="))
        self.assertEqual((["json", "markdown", "text"], []), self.complete("compare", "--format="))
        self.assertEqual((["f32,bf16"], []), self.complete("--dt=f32,b"))
        self.assertEqual((["impl"], []), self.complete("--summary=i"))
        self.assertEqual(([], []), self.complete("--threads="))
        self.assertEqual(([], []), self.complete("--filter=op:"))
        self.assertEqual(([], []), self.complete("compare", "--floor="))

    def test_completion_finds_files(self):
        os.mkdir(self.path("inputs"))
        for name in ("a b.json", "inputs/one.json"):
            self.write(name, "")
        every = ["a b.json", "inputs"]
        for words in ["compare", ""], ["compare", "--all", "a b.json", ""], ["report", "a b.json", "-o", ""], ["history", "add", ""], \
                     ["ab", ""], ["--case="], ["--batch="], ["run", "--json="], ["reduce", "--case="], ["reduce", "-o", ""], \
                     ["list", "cases", "--case="], ["compare", "--history="]:
            self.assertEqual((every, ["filenames"]), self.complete(*words), words)
        self.assertEqual((["inputs"], ["filenames"]), self.complete("--case=in"))
        self.assertEqual((["inputs/one.json"], ["filenames"]), self.complete("--case=inputs/"))
        for words in ["repro", ""], ["--golden="], ["fuzz", "--repro-dir="]:
            self.assertEqual((["inputs"], ["filenames"]), self.complete(*words), words)
        for words in ["list", "ops", ""], ["env", ""], ["--mode=C", ""]:
            self.assertEqual(([], []), self.complete(*words), words)

    @unittest.skipUnless(shutil.which("zsh"), "zsh is missing")
    def test_completion_of_zsh(self):
        with open(self.path("_graph-bench"), "w", encoding="utf-8") as file:
            file.write(self.run_program(subcommand=["completion", "zsh"]).stdout)

        def specs(*words):
            """What zsh is told of the words that may follow, and the words that it looks at."""
            script = f"""
                _arguments() {{ print -rl -- "$@"; print -rl -- "$words[@]" >&2; }}
                _describe() {{ print -rl -- $commands; }}
                words=(graph-bench {" ".join(map(shlex.quote, words))}) CURRENT={len(words) + 1}
                source {shlex.quote(self.path("_graph-bench"))}"""
            result = subprocess.run(["zsh", "-fc", script], capture_output=True, text=True, check=True)
            return result.stdout.splitlines(), result.stderr.splitlines()

        self.assertIn("run:check and measure graphs", specs("")[0])
        told, words = specs("list", "cases", "--ca")
        self.assertEqual(["list", "cases", "--ca"], words)
        self.assertIn("1:what:(ops devices cases patterns kernels)", told)
        self.assertTrue(any(row.startswith("*--case=-[") and row.endswith(":FILE:_files") for row in told), told)
        self.assertTrue(any(row.startswith("*--policy=-[") and row.endswith(":WORD:(fusion debug max)") for row in told), told)
        self.assertEqual(told[:-1], specs("--ca")[0])
        self.assertIn("*:name:_files", specs("compare", "")[0])
        self.assertIn("*:name:_files -/", specs("repro", "")[0])
        self.assertFalse(any("--case=" in row for row in specs("compare", "")[0]))

    def test_subcommands_have_help(self):
        for command in re.findall(r"(?m)^  graph-bench (\w+)", self.run_program(subcommand=["--help"]).stdout):
            result = self.run_program(subcommand=[command, "--help"])
            self.assertEqual(0, result.returncode)
            self.assertTrue(result.stdout.startswith(f"Usage: graph-bench {command}"), command)

    def test_a_misspelt_subcommand_is_answered_with_the_nearest(self):
        graph = self.write("compare.json", json.dumps({"version": "3"}))
        for arguments in (["comapre", graph, graph], ["comapre", "--help"]):
            result = self.run_program(subcommand=arguments)
            self.assertEqual((2, ""), (result.returncode, result.stdout))
            self.assertEqual('graph-bench: error: "comapre" is no command; did you mean graph-bench compare?\n', result.stderr)
        self.assertIn("to run the graph: --case=compare.json", self.run_program(subcommand=["compare.json"]).stderr)
        self.assertEqual(0, self.run_program(subcommand=["run", f"--input-dir={INPUTS}", "--mode=L", "--case=op/relu.json"]).returncode)

    def test_what_new_users_write_is_answered_with_what_to_write(self):
        graph = self.write("graph.json", json.dumps({"version": "3"}))
        result = self.run_program(subcommand=[graph])
        self.assertEqual(2, result.returncode)
        self.assertIn(f"to run the graph: --case={graph}", result.stderr)
        result = self.run_program(subcommand=["--case", graph])
        self.assertIn("--case=FILE", result.stderr)
        result = self.run_program(f"--batch={graph}")
        self.assertEqual((1, 1), (result.returncode, result.stderr.count("error:")), result.stderr)
        self.assertIn(f"looks like a graph: --case={graph}", result.stderr)

    def test_messages_are_those_of_their_case(self):
        self.run_program(f"--json={self.path('report.json')}", "--case=op/relu.json", "--case=none.json",
                         "--in-shapes=77:2x2", "--case=op/relu.json")
        messages = [case["messages"] for case in self.report()["cases"]]
        self.assertEqual([], messages[0])
        self.assertIn("cannot open none.json", messages[1][0])
        self.assertIn("the graph has no tensor 77", messages[2][0])

    def test_mismatches_are_listed(self):
        folder = self.path("tensors")
        arguments = ["--in-shapes=0:3x5", "--case=op/relu.json"]
        self.run_program(f"--save-tensors={folder}", *arguments)
        golden = [name for name in os.listdir(folder) if name.startswith("out_")][0]
        with open(os.path.join(folder, golden), "r+b") as file:  # the last element becomes another number
            file.seek(-4, os.SEEK_END)
            file.write(b"\0\0\x80\x47")
        result = self.run_program(f"--json={self.path('report.json')}", f"--golden={folder}", *arguments)
        case = self.report()["cases"][0]
        self.assertEqual(1, result.returncode)
        self.assertEqual("FAILED", case["status"])
        self.assertIn((14, 65536.0), [(m["index"], m["expected"]) for m in case["mismatches"]])

    def test_junit_and_csv_are_read_by_stock_parsers(self):
        self.run_program("--mode=CP", "--max-ms-per-prb=10", f"--junit={self.path('r.xml')}", f"--csv={self.path('r.csv')}",
                         "--case=op/relu.json", "--case=a<b>&\"c\".json", "--in-shapes=0:2x3,0:4x5", "--case=op/relu.json")
        suite = xml.parse(self.path("r.xml")).getroot()
        self.assertEqual(("4", "0", "1"), tuple(suite.get(key) for key in ("tests", "failures", "errors")))
        error = suite.findall("testcase")[1].find("error")
        self.assertEqual("UNTESTED_FAILED", error.get("type"))
        self.assertIn("a<b>&\"c\".json", error.text)
        with open(self.path("r.csv"), newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(4, len(rows))
        self.assertEqual("a<b>&\"c\".json", rows[1]["file"])
        self.assertGreater(int(rows[0]["median_ns"]), 0)

    def test_names_that_are_no_utf8(self):
        """Reports can be read all the same, and select cases by their names."""
        with open(os.path.join(INPUTS, "op/relu.json"), "rb") as file:
            graph = file.read()
        names = [os.fsencode(self.dir.name) + name for name in (b"/a\xff\xed\xa0\x80.json", "/\u00e9\u20ac\U0001f600\uffff.json".encode(), b"/none\xff")]
        for name in names[:2]:
            with open(name, "wb") as file:
                file.write(graph)
        cases = [b"--case=" + name for name in names]
        self.run_program(f"--json={self.path('r.json')}", f"--junit={self.path('r.xml')}", *cases, errors="replace")
        files = [self.dir.name + name for name in ("/a\\xFF\\xED\\xA0\\x80.json", "/\u00e9\u20ac\U0001f600\uffff.json", "/none\\xFF")]
        self.assertEqual(files, [case["file"] for case in self.report("r.json")["cases"]])
        self.assertIn(f"--case={files[1]}", self.report("r.json")["environment"]["arguments"])
        suite = xml.parse(self.path("r.xml")).getroot()
        self.assertEqual([name.replace("\uffff", "?") for name in files], [case.get("classname") for case in suite])
        with open(self.path("r.json"), "rb") as file:
            damaged = file.read().replace(b"a\\\\xFF", b"a\xff")
        with open(self.path("old.json"), "wb") as file:
            file.write(damaged)
        self.assertEqual(0, self.run_program(subcommand=["report", self.path("old.json"), "-o", self.path("old.xml")]).returncode)
        self.assertEqual(files[0], xml.parse(self.path("old.xml")).getroot()[0].get("classname"))
        result = self.run_program(f"--resume={self.path('r.json')}", *cases, errors="replace")
        self.assertEqual(result.stdout.count("__REPRO"), result.stdout.count("(taken over)"))
        result = self.run_program(f"--rerun-failed={self.path('r.json')}", *cases, errors="replace")
        self.assertEqual({"2"}, set(re.findall(r"(?m)^(\d):", result.stdout)))

    def test_explanations_and_folders_of_failures_are_utf8(self):
        """Also where names are not; the folder of a failure leads to them all the same."""
        odd = os.fsencode(self.dir.name) + b"/a\xff"
        os.mkdir(odd)
        shutil.copy(os.path.join(INPUTS, "op/relu.json"), os.path.join(odd, b"relu.json"))
        case = [b"--in-shapes=0:3x5", b"--case=" + odd + b"/relu.json"]
        self.run_program("--mode=I", f"--explain=json:{self.path('explained.json')}", *case, errors="replace")
        self.assertEqual(self.path("a\\xFF/relu.json"), self.report("explained.json")["case"])
        self.run_program(b"--save-tensors=" + odd, *case, errors="replace")
        golden = [name for name in os.listdir(odd) if name.startswith(b"out_")][0]
        with open(os.path.join(odd, golden), "r+b") as file:  # the last element becomes another number
            file.seek(-4, os.SEEK_END)
            file.write(b"\0\0\x80\x47")
        self.run_program(f"--repro-dir={self.path('folders')}", b"--golden=" + odd, *case, errors="replace")
        folder = os.path.join("folders", os.listdir(self.path("folders"))[0])
        self.assertIn(f"--golden={self.path('a')}\\xFF", self.report(f"{folder}/repro.json")["arguments"])
        again = self.run_program(subcommand=["repro", self.path(folder)], errors="replace")
        self.assertIn("the same failure: FAILED", again.stdout)

    def junit(self, *arguments):
        """What JUnit's XML tells of a run as a whole: the exit status, and what became of each of its own test cases."""
        status = self.run_program(f"--junit={self.path('r.xml')}", f"--json={self.path('report.json')}", *arguments).returncode
        suite = xml.parse(self.path("r.xml")).getroot()
        self.assertEqual(len(suite), int(suite.get("tests")))
        self.assertEqual(len(suite.findall("testcase/error")), int(suite.get("errors")))
        self.assertEqual(len(suite.findall("testcase/skipped")), int(suite.get("skipped")))
        return status, {(case.get("name"), case[0].tag, case[0].get("message")) for case in suite if case.get("classname") == "graph-bench"}

    def test_junit_tells_of_a_run_that_went_wrong_without_a_case(self):
        self.assertEqual((0, set()), self.junit("--case=op/relu.json"))
        nested = self.write("batch", "--case=op/relu.json --batch=nosuch\n--colour=red\n")
        wrong = ("options", "error", "2 wrong options or unreadable batch files")
        self.assertEqual((1, {wrong}), self.junit(f"--batch={nested}"))
        budget = ("end of the run", "skipped", "the run did not come to its end: budget")
        self.assertEqual((0, {budget}), self.junit("--budget=0.05s", *MANY))
        report = self.report()
        for ended in ("interrupted", "running", "stopped", "partial"):
            self.write("r.json", json.dumps(dict(report, ended=ended)))
            self.run_program(subcommand=["report", self.path("r.json"), "-o", self.path("r.xml")])
            error = xml.parse(self.path("r.xml")).getroot().find("testcase/error")
            self.assertEqual(f"the run did not come to its end: {ended}", error.get("message"))

    def test_a_file_that_cannot_be_written_is_told_before_anything_runs(self):
        for option in ("json", "junit", "csv"):
            for path in (self.path("no/folder"), self.dir.name):
                result = self.run_program(f"--{option}={path}", "--case=op/relu.json")
                self.assertEqual(2, result.returncode, path)
                self.assertNotIn("PASSED", result.stdout)
                self.assertIn(f"--{option}={path}: cannot be written: ", result.stderr)
        file = self.write("file", "kept")
        os.symlink("nowhere", self.path("link"))
        for word, reason in ((f"save-graph={self.path('no/x')}", "No such file"), (f"save-graph={self.dir.name}", "Is a directory"),
                             (f"explain=json:{self.path('no/x')}", "No such file"), (f"save-tensors={file}", "Not a directory"),
                             ("save-tensors=/dev/null", "Not a directory"), (f"repro-dir={self.path('no/x')}", "No such file"),
                             ("repro-dir=/dev/null", "Not a directory")):
            option, path = word.split("=")
            good = {"save-graph": self.path("link"), "save-tensors": self.path("new"), "explain": "json:" + file}.get(option, self.path("repro"))
            for words in ([f"--{word}"], [f"--{option}={good}", "--case=op/exp.json", f"--{word}"]):
                result = self.run_program(*words, "--case=op/relu.json")
                self.assertEqual(2, result.returncode, word)
                self.assertEqual("", result.stdout)
                self.assertRegex(result.stderr, f"--{option}: {path.replace('json:', '')}: cannot be written: {reason}")
                self.assertEqual(["file", "link"], sorted(os.listdir(self.dir.name)))
        with open(file, encoding="utf-8") as text:
            self.assertEqual("kept", text.read())

    def test_a_file_of_a_batch_that_cannot_be_written_is_a_wrong_option(self):
        for word in (f"--json={self.path('no/x')}", f"--csv={self.dir.name}", f"--junit={self.path('report.json')}", f"--save-graph={self.dir.name}"):
            batch = self.write("batch", f"--case=op/exp.json\n{word} --case=op/relu.json\n--case=op/abs.json\n")
            result = self.run_program(f"--json={self.path('report.json')}", f"--batch={batch}")
            self.assertEqual(1, result.returncode, word)
            self.assertIn(f"batch:2: {word.split('=')[0]}" if "junit" not in word else "name the same file", result.stderr)
            self.assertEqual(["PASSED", "UNTESTED_FAILED", "PASSED"], [case["status"] for case in self.report()["cases"]], word)
            self.assertEqual(["batch", "report.json"], sorted(os.listdir(self.dir.name)))

    def test_a_small_graph_that_cannot_be_written_is_told_at_once(self):
        for path in (self.dir.name, self.path("no/x")):
            result = self.run_program(subcommand=["reduce", "-o", path, f"--input-dir={INPUTS}", "--case=op/relu.json"])
            self.assertEqual((2, ""), (result.returncode, result.stdout))
            self.assertRegex(result.stderr, f"{path}: cannot be written: (Is a directory|No such file or directory)")

    def test_a_full_disk_is_no_success(self):
        with open("/dev/full", "w") as full:
            command = [PROGRAM, f"--input-dir={INPUTS}", f"--json={self.path('report.json')}", *MANY]
            result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(3, result.returncode)
        self.assertIn("standard output cannot be written", result.stderr)
        self.assertEqual("stopped", self.report()["ended"])

    def in_little_room(self, *arguments):
        """With files of at most a KiB, as if the disk of temporary files were full."""
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
        return self.run_program(subcommand=arguments, preexec_fn=limit)

    def test_cases_that_cannot_be_kept_are_no_success(self):
        report, case = self.path("report.json"), ["--case=none.json", "--case=op/relu.json"]
        self.run_program(f"--json={report}", *case)
        for status, command in ((3, ["merge", report, "-o", self.path("m.csv")]), (3, ["merge", "--lost=2", report]),
                                (3, ["report", report, "-o", self.path("m.xml")]),
                                (2, [f"--rerun-failed={report}", *case]), (2, [f"--resume={report}", *case]),
                                (2, ["--shard=1/1", f"--shard-costs={report}", *case]), (3, ["--json=/dev/stdout", *case])):
            result = self.in_little_room(*command)
            self.assertEqual(status, result.returncode, command)
            self.assertIn("results cannot be kept in a temporary file in ", result.stderr)
            self.assertNotIn('"cases"', result.stdout)
            self.assertEqual(["report.json"], os.listdir(self.dir.name))

    def test_cases_are_kept_below_tmpdir(self):
        report, missing = self.path("report.json"), dict(os.environ, TMPDIR=self.path("missing"))
        self.assertEqual(0, self.run_program("--version", env=missing).returncode)
        self.assertEqual(0, self.run_program("--case=op/relu.json", env=missing).returncode)
        for arguments in ([f"--json={report}", "--case=op/relu.json"], [f"--json={report}", f"--batch={self.write('batch', '--case=op/relu.json')}"]):
            result = self.run_program(*arguments, env=missing)
            self.assertEqual(3, result.returncode)
            self.assertIn(f"{missing['TMPDIR']}: No such file or directory", result.stderr)
        self.assertEqual(["batch"], os.listdir(self.dir.name))
        self.run_program(f"--json={report}", "--case=op/relu.json")
        for command in (["report", report, "-o", self.path("page.html")], ["history", "add", self.path("times.db"), report]):
            self.assertNotEqual(0, self.run_program(subcommand=command, env=missing).returncode)

    def test_a_reader_that_goes_away_ends_the_run(self):
        command = [PROGRAM, f"--input-dir={INPUTS}", f"--json={self.path('report.json')}", *MANY]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        process.stdout.readline()
        process.stdout.close()
        self.assertEqual(3, process.wait())
        self.assertEqual("stopped", self.report()["ended"])

    def interrupt(self, number, arguments):
        def no_core():
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            signal.signal(signal.SIGINT, signal.default_int_handler)
        command = [PROGRAM, f"--input-dir={INPUTS}", f"--json={self.path('report.json')}", *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=no_core)
        process.stdout.readline()
        while not os.path.exists(self.path("report.json")):  # written behind the first line
            time.sleep(0.01)
        os.kill(process.pid, number)
        process.communicate()
        return process.returncode

    def test_a_signal_leaves_a_report_of_what_was_done(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self.assertEqual(128 + number, self.interrupt(number, MANY))
            report = self.report()
            self.assertEqual("interrupted", report["ended"])
            self.assertEqual(len(report["cases"]), sum(report["summary"].values()))

    def test_options_of_the_run_may_stand_behind_the_cases(self):
        command = [PROGRAM, f"--input-dir={INPUTS}", *MANY, f"--json={self.path('report.json')}"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        process.stdout.readline()
        while process.poll() is None and not os.path.exists(self.path("report.json")):
            time.sleep(0.01)
        process.kill()
        process.communicate()
        self.assertEqual("running", self.report()["ended"])
        result = self.run_program(*MANY, f"--json={self.path('budget.json')}", "--budget=0.001s")
        self.assertEqual("budget", self.report("budget.json")["ended"], result.stdout[-300:])

    def test_a_signal_does_not_wait_for_a_long_case(self):
        begin = time.monotonic()
        arguments = ["--case=op/relu.json", "--mode=P", "--fix-times-per-prb=1000000", "--in-shapes=0:1x64x128x128",
                     "--case=op/relu.json"]
        self.assertEqual(128 + signal.SIGTERM, self.interrupt(signal.SIGTERM, arguments))
        self.assertLess(time.monotonic() - begin, 30)
        self.assertEqual(["PASSED"], [case["status"] for case in self.report()["cases"]])

    def test_resume_ends_as_if_nothing_had_happened(self):
        names = ("index", "status", "repro", "digest", "mismatches")
        self.run_program(f"--json={self.path('whole.json')}", *MANY)
        whole = [[case[name] for name in names] for case in self.report("whole.json")["cases"]]
        self.interrupt(signal.SIGKILL, MANY)
        part = len(self.report()["cases"])
        self.assertLess(part, len(whole))
        result = self.run_program(f"--json={self.path('report.json')}", f"--resume={self.path('report.json')}", *MANY)
        self.assertEqual(0, result.returncode, result.stderr)
        self.assertEqual(whole, [[case[name] for name in names] for case in self.report()["cases"]])
        self.assertEqual(len(whole) - part, result.stdout.count("__REPRO"))

    def test_rerun_failed_runs_what_failed(self):
        cases = ["--case=op/relu.json", "--case=none.json", "--in-shapes=0:2x2", "--case=op/relu.json"]
        self.run_program(f"--json={self.path('report.json')}", *cases)
        result = self.run_program(f"--rerun-failed={self.path('report.json')}", *cases)
        self.assertEqual(1, result.stdout.splitlines()[-2].count("tests:1 "), result.stdout)
        self.assertIn("1:UNTESTED_FAILED", result.stdout)

    def test_a_wrong_report_is_wrong_usage(self):
        wrong = {"empty.json": "", "text.json": "{\"a\": 1,\n  oops}", "other.json": "{\"cases\": 3}", "half.json": "{\"cases\": ["}
        told = {"empty.json": "empty", "text.json": "text.json:2:3", "other.json": "no report", "half.json": "ends too early"}
        for name, text in wrong.items():
            result = self.run_program(f"--resume={self.write(name, text)}", "--case=op/relu.json")
            self.assertEqual(2, result.returncode)
            self.assertIn(told[name], result.stderr)

    def test_filters(self):
        def files(*filters):
            output = self.run_program("--mode=L", *[f"--filter={word}" for word in filters], "--case=op/relu.json",
                                      "--case=op/matmul.json", "--expected-n-partitions=0", "--case=pattern/matmul_bias_relu.json")
            return [line.rsplit("=", 1)[1] for line in output.stdout.splitlines() if "__REPRO" in line]
        self.assertEqual(["op/relu.json"], files("*op/relu*"))
        self.assertEqual(["op/matmul.json", "pattern/matmul_bias_relu.json"], files("op:MatMul"))
        self.assertEqual(["op/relu.json", "pattern/matmul_bias_relu.json"], files("op:ReLU"))
        self.assertEqual(["op/relu.json"], files("op:ReLU", "op/*"))
        self.assertEqual(3, len(files()))
        batch = self.write("batch", "--expected-n-partitions=0\n--case=op/relu.json\n--case=op/matmul.json\n--case=pattern/matmul_bias_relu.json\n")
        for jobs in (1, 2):  # cases that workers leave out
            for word, kept in (("op:ReLU", 2), ("pattern:matmul_*", 1)):
                result = self.run_program(f"--filter={word}", f"--jobs={jobs}", f"--batch={batch}")
                self.assertIn(f"tests:{kept} passed:{kept}", result.stdout, word)
        result = self.run_program("--filter=pattern:matmul*", "--case=op/relu.json", "--case=pattern/matmul_bias_relu.json")
        self.assertIn("tests:1 passed:1", result.stdout)

    def test_expectations(self):
        good = self.write("good", "# known\nUNTESTED_FAILED none.json # not written yet\n\nPASSED *relu*\n")
        result = self.run_program(f"--expect={good}", "--strict", "--case=none.json", "--case=op/relu.json")
        self.assertEqual(0, result.returncode, result.stderr)
        self.assertIn("(expected: not written yet)", result.stdout)
        self.assertIn("expected:2", result.stdout)
        self.run_program(f"--expect={good}", f"--junit={self.path('r.xml')}", "--case=none.json", "--case=op/relu.json")
        suite = xml.parse(self.path("r.xml")).getroot()
        self.assertEqual(("0", "0", "2"), tuple(suite.get(key) for key in ("failures", "errors", "skipped")))
        stale = self.write("stale", "FAILED *relu*\n")
        self.assertEqual(0, self.run_program(f"--expect={stale}", "--case=op/relu.json").returncode)
        result = self.run_program(f"--expect={stale}", "--strict", "--case=op/relu.json")
        self.assertEqual(1, result.returncode)
        self.assertIn("stale:1: no case ended FAILED", result.stderr)
        for text, told in (("GREEN *\n", ":1: \"GREEN\" is no verdict"), ("\nFAILED # none\n", ":2: which case?")):
            result = self.run_program(f"--expect={self.write('wrong', text)}", "--case=op/relu.json")
            self.assertEqual(2, result.returncode)
            self.assertIn(told, result.stderr)

    def test_strict(self):
        self.assertEqual(0, self.run_program("--batch=" + self.write("batch", "# nothing\n")).returncode)
        self.assertEqual(1, self.run_program("--strict", "--batch=" + self.write("batch", "# nothing\n")).returncode)
        self.assertEqual(1, self.run_program("--strict", "--start=1", "--case=op/relu.json").returncode)
        self.assertEqual(0, self.run_program("--strict", "--case=op/relu.json").returncode)

    def test_budget(self):
        result = self.run_program("--budget=0.05s", f"--json={self.path('report.json')}", *MANY)
        self.assertEqual(0, result.returncode)
        self.assertEqual("budget", self.report()["ended"])
        self.assertEqual(1, self.run_program("--budget=0.05s", "--strict", *MANY).returncode)
        for wrong in ("x", "3d", "-1s", "5mm", "nan"):
            self.assertEqual(2, self.run_program(f"--budget={wrong}", "--case=op/relu.json").returncode)

    def test_shards_merge_to_the_whole(self):
        names = ("index", "status", "repro", "digest")
        self.run_program(f"--json={self.path('whole.json')}", "--mode=R", "--batch=ci")
        for shard in (1, 2, 3):
            result = self.run_program(f"--shard={shard}/3", f"--json={self.path(f'{shard}.json')}", "--mode=R", "--batch=ci")
            self.assertEqual(0, result.returncode)
        merged = self.path("all.json")
        result = self.run_program(subcommand=["merge", *[self.path(f"{shard}.json") for shard in (3, 1, 2)], "-o", merged])
        self.assertEqual(0, result.returncode, result.stderr)
        whole, parts = self.report("whole.json"), self.report("all.json")
        self.assertEqual(len(whole["cases"]), len({case["repro"] for case in whole["cases"]}), "a case is in the batch twice")
        self.assertEqual([[case[name] for name in names] for case in whole["cases"]],
                         [[case[name] for name in names] for case in parts["cases"]])
        self.assertEqual(whole["summary"], parts["summary"])
        self.assertEqual("complete", parts["ended"])
        if jsonschema:
            with open(SCHEMA, encoding="utf-8") as file:
                jsonschema.validate(parts, json.load(file))
        result = self.run_program(subcommand=["merge", self.path("1.json"), self.path("3.json"), "-o", merged])
        self.assertEqual(1, result.returncode)
        self.assertIn("shard 2 of 3 is missing", result.stderr)
        self.assertEqual("partial", self.report("all.json")["ended"])

    def test_shards_of_different_runs_are_told(self):
        for name, shard, case in (("1", 1, "relu"), ("2", 2, "relu"), ("other", 2, "exp")):
            self.run_program(f"--shard={shard}/2", f"--json={self.path(name + '.json')}", "--mode=R", f"--case=op/{case}.json", "--case=op/abs.json")
        for second, status in (("2", 0), ("other", 1)):
            result = self.run_program(subcommand=["merge", self.path("1.json"), self.path(f"{second}.json"), "-o", self.path("all.json")])
            self.assertEqual((status, status), (result.returncode, result.stderr.count("a shard of other cases than ")), result.stderr)
            self.assertEqual("partial" if status else "complete", self.report("all.json")["ended"])

    def test_a_shard_without_cases_hides_no_engine(self):
        reports = [self.path(f"{shard}.json") for shard in (1, 2)]
        for shard, report in enumerate(reports):
            self.run_program(f"--shard={shard + 1}/2", f"--json={report}", "--mode=R", "--case=op/relu.json")
        for order in reports, reports[::-1]:
            self.run_program(subcommand=["merge", *order, "-o", self.path("all.json")])
            self.assertIn("cpu", self.report("all.json")["environment"]["engine"])

    def test_merge_keeps_what_a_batch_names_twice(self):
        once, twice = ["--case=op/relu.json"], ["--case=op/relu.json", "--case=op/exp.json", "--case=op/relu.json"]
        for name, cases in (("once.json", once), ("twice.json", twice), ("again.json", twice)):
            self.run_program(f"--json={self.path(name)}", "--mode=R", *cases)
        result = self.run_program(subcommand=["merge", *[self.path(f"{name}.json") for name in ("once", "twice", "again")],
                                              "-o", self.path("all.json")])
        self.assertIn("3 cases, 4 of them twice or more", result.stderr)
        self.assertEqual(["op/relu.json", "op/exp.json", "op/relu.json"],
                         [case["file"] for case in self.report("all.json")["cases"]])

    def test_merge_and_costs_take_lines_of_batches_with_and_without_their_option(self):
        batch = "--batch=" + self.write("batch", "--case=op/relu.json\n--case=op/matmul.json\n")
        self.run_program(f"--json={self.path('new.json')}", "--mode=R", batch)
        old = self.report("new.json")
        for case, ns in zip(old["cases"], (100, 1)):
            case["repro"] = case["repro"].replace("--expected-n-partitions=1 ", "")
            case["elapsed_ns"] = ns
        self.write("old.json", json.dumps(old))
        result = self.run_program(subcommand=["merge", self.path("old.json"), self.path("new.json"), "-o", self.path("all.json")])
        self.assertIn("2 cases, 2 of them twice or more", result.stderr)
        for shard, file in ((1, "op/relu.json"), (2, "op/matmul.json")):
            self.run_program(f"--shard={shard}/2", f"--shard-costs={self.path('old.json')}", f"--json={self.path('s.json')}", "--mode=R", batch)
            self.assertEqual([file], [case["file"] for case in self.report("s.json")["cases"]])

    def test_shards_by_cost(self):
        cases = [f"--case=op/{op}.json" for op in ("relu", "matmul", "softmax", "add", "gelu", "concat", "exp")]
        self.run_program(f"--json={self.path('costs.json')}", "--mode=R", *cases[:6])
        costs = self.report("costs.json")
        times = (100, 40, 30, 20, 5, 5)  # the longest is as long as all others
        for case, ns in zip(costs["cases"], times):
            case["elapsed_ns"] = ns
        self.write("costs.json", json.dumps(costs))
        def shard(number, count=2, *options):
            name = self.path(f"{number}.json")
            result = self.run_program(f"--shard={number}/{count}", f"--json={name}", "--mode=R", *options, *cases)
            self.assertEqual(0, result.returncode, result.stderr)
            return [case["file"] for case in self.report(f"{number}.json")["cases"]], self.report(f"{number}.json")["shard"]
        by_costs = f"--shard-costs={self.path('costs.json')}"
        (first, one), (second, two) = shard(1, 2, by_costs), shard(2, 2, by_costs)
        self.assertEqual(sorted(case[7:] for case in cases), sorted(first + second))
        self.assertIn("op/relu.json", first)
        self.assertEqual(["op/matmul.json", "op/softmax.json", "op/add.json", "op/gelu.json", "op/concat.json"],
                         [file for file in second if file != "op/exp.json"])  # exp, without a cost, goes by its hash
        self.assertEqual(one["division"], two["division"])
        merge = ["merge", self.path("1.json"), self.path("2.json"), "-o", self.path("all.json")]
        result = self.run_program(subcommand=merge)
        self.assertEqual(0, result.returncode, result.stderr)
        self.interrupt(signal.SIGKILL, ["--shard=1/2", by_costs, *MANY])
        self.assertEqual(one["division"], self.report()["shard"]["division"])  # written as the run goes on
        shard(1)  # by hash: cases may be in no shard
        result = self.run_program(subcommand=merge)
        self.assertEqual(1, result.returncode)
        self.assertIn("divided otherwise", result.stderr)

    def test_shard_options_that_do_nothing_are_told(self):
        self.run_program(f"--json={self.path('costs.json')}", "--mode=L", "--case=op/relu.json")
        result = self.run_program(f"--shard-costs={self.path('costs.json')}", "--mode=L", "--case=op/relu.json")
        self.assertIn("--shard-costs has no effect without --shard", result.stderr)
        result = self.run_program("--mode=L", "--case=op/relu.json", "--shard=1/2", "--case=op/add.json")
        self.assertIn("--shard stands behind cases", result.stderr)
        self.assertEqual(2, self.run_program("--shard=1/2", "--shard-costs=missing.json", "--case=op/relu.json").returncode)

    def test_lost_shards_are_named(self):
        for shard in (1, 4):
            self.run_program(f"--shard={shard}/6", f"--json={self.path(f'{shard}.json')}", "--mode=L", "--batch=op/ci")
        cut = self.report("4.json")
        cut["ended"] = "interrupted"
        self.write("cut.json", json.dumps(cut))
        self.write("torn.json", json.dumps(cut)[:-9])
        def lost(n, *names):
            result = self.run_program(subcommand=["merge", f"--lost={n}", *[self.path(name) for name in names]])
            self.assertEqual(0, result.returncode)
            return result.stdout
        self.assertEqual("2-3,5-6\n", lost(6, "1.json", "4.json", "torn.json"))
        self.assertEqual("2-6\n", lost(6, "1.json", "cut.json", "none.json"))
        self.assertEqual("1-5\n", lost(5, "1.json", "4.json"))  # shards of another division
        for wrong in ("0", "x", "1.5", "2000000"):
            self.assertEqual(2, self.run_program(subcommand=["merge", f"--lost={wrong}"]).returncode)

    def test_a_failed_case_fails_the_merge_on_request(self):
        self.run_program(f"--json={self.path('a.json')}", "--case=op/relu.json", "--case=none.json")
        merge = ["merge", self.path("a.json"), "-o", self.path("b.json")]
        self.assertEqual(0, self.run_program(subcommand=merge).returncode)
        self.assertEqual(1, self.run_program(subcommand=[*merge, "--check"]).returncode)
        good = self.report("a.json")
        self.write("a.json", json.dumps(dict(good, cases=[dict(case, status="MELTED") for case in good["cases"]])))
        self.assertEqual(1, self.run_program(subcommand=[*merge, "--check"]).returncode)  # no verdict of this program
        good["cases"][1]["expected"] = "not written yet"
        self.write("a.json", json.dumps(good))
        self.assertEqual(0, self.run_program(subcommand=[*merge, "--check"]).returncode)

    def test_reports_are_read_in_any_layout(self):
        self.run_program(f"--json={self.path('a.json')}", "--mode=R", "--case=op/relu.json", "--case=op/matmul.json")
        report = self.report("a.json")
        ended = report.pop("ended")
        report["ended"] = ended  # behind the cases
        self.run_program(subcommand=["report", self.path("a.json"), "-o", self.path("same.json")])
        self.assertEqual(self.report("a.json"), self.report("same.json"))
        for name, indent in (("one.json", None), ("two.json", 2), ("four.json", 4)):
            self.write(name, json.dumps(report, indent=indent))
            result = self.run_program(subcommand=["report", self.path(name), "-o", self.path("b.json")])
            self.assertEqual(0, result.returncode, result.stderr)
            self.assertEqual(report, self.report("b.json"))
        lines = json.dumps(report, indent=2).split("\n")
        number = next(i for i, line in enumerate(lines) if '"file"' in line)
        lines[number] = lines[number].replace(":", "=", 1)
        result = self.run_program(subcommand=["report", self.write("c.json", "\n".join(lines)), "-o", self.path("b.json")])
        self.assertEqual(2, result.returncode)
        self.assertIn(f"c.json:{number + 1}:", result.stderr)

    def places(self, value, place=()):
        """Where a document holds something: of a list, its first member."""
        if isinstance(value, (dict, list)):
            for key in value if isinstance(value, dict) else range(min(1, len(value))):
                yield (*place, key)
                yield from self.places(value[key], (*place, key))

    def damaged(self, document):
        """Copies of a document with other things in one place."""
        for place in self.places(document):
            for value in (None, 5, [None]):
                copy = json.loads(json.dumps(document))
                inside = copy
                for key in place[:-1]:
                    inside = inside[key]
                inside[place[-1]] = value
                yield copy

    def test_damaged_reports_end_no_program(self):
        self.run_program("--mode=CP", "--max-ms-per-prb=10", f"--json={self.path('a.json')}", "--case=model/bert_base_small_f32.json")
        report = self.report("a.json")
        case = report["cases"][0]
        case.update(mismatches=[{"index": 0}], messages=["told"], partitions=case["partitions"][:2])
        for times in (case["end_to_end"], *case["partitions"]):
            times["flags"] = ["slow"]
        cases = list(self.damaged(case))
        base = self.write("a.json", json.dumps(dict(report, cases=[case] * len(cases))))
        for document in [dict(report, cases=cases), *self.damaged({"ended": "complete", "summary": {"option_errors": 1}})]:
            new = self.write("b.json", json.dumps({**report, **document}))
            for command in (["compare", "--force", base, new], *[["report", new, "-o", self.path(f"c.{form}")] for form in ("csv", "xml")]):
                status = self.run_program(subcommand=command).returncode
                self.assertGreaterEqual(status, 0, command)

    def test_merge_tells_what_does_not_fit(self):
        for name in ("a", "b"):
            self.run_program(f"--json={self.path(name + '.json')}", "--mode=R", "--case=op/relu.json")
        other = self.report("b.json")
        other["cases"][0]["status"] = "FAILED"
        other["environment"]["build"]["commit"] = "another"
        self.write("b.json", json.dumps(other))
        result = self.run_program(subcommand=["merge", self.path("a.json"), self.path("b.json"), "-o", self.path("c.json")])
        self.assertEqual(1, result.returncode)
        self.assertIn("another commit", result.stderr)
        self.assertIn("ended as \"FAILED", result.stderr)
        self.assertEqual(1, len(self.report("c.json")["cases"]))

    def test_subcommands_tell_wrong_usage(self):
        self.run_program(f"--json={self.path('a.json')}", "--mode=R", "--case=op/relu.json")
        report = self.path("a.json")
        for arguments, told in ((["report", report], "-o FILE is missing"), (["report", "-o", "x.html"], "one report is needed"),
                                (["report", report, "-x"], "-x"), (["report", report, "-o", self.path("x.pdf")], ".html"),
                                (["merge", self.path("none.json"), "-o", "x.json"], "none.json")):
            result = self.run_program(subcommand=arguments)
            self.assertEqual(2, result.returncode, arguments)
            self.assertIn(told, result.stderr)
        for wrong in ("0/2", "3/2", "1", "1/2x", "/"):
            self.assertEqual(2, self.run_program(f"--shard={wrong}", "--case=op/relu.json").returncode)

    def test_a_page_holds_its_report(self):
        self.run_program(f"--json={self.path('a.json')}", "--mode=CP", "--max-ms-per-prb=10", "--case=op/relu.json",
                         "--case=</script><b>.json", "--case=<!--<script>.json")
        result = self.run_program(subcommand=["report", self.path("a.json"), "-o", self.path("a.html")])
        self.assertEqual(0, result.returncode, result.stderr)
        with open(self.path("a.html"), encoding="utf-8") as file:
            page = file.read()
        inside = re.search('<script type="application/json" id="data">\n(.*?)</script>', page, re.S)[1]
        self.assertEqual(self.report("a.json"), json.loads(inside))
        self.assertNotIn("<", inside)  # "<!--<script>" would hide where the data ends
        self.assertNotRegex(page, 'src=|href=|url\\(|@import')  # nothing is loaded

    def test_a_page_shows_the_history_of_its_cases(self):
        self.run_program(f"--json={self.path('r.json')}", "--mode=P", "--max-ms-per-prb=10", "--case=op/relu.json", "--case=op/matmul.json")
        report = self.report("r.json")
        for run in range(20):
            for case in report["cases"]:
                case["partitions"][0].update(median_ns=1000000 + 1000 * (run % 3), low_ns=None, high_ns=None)
            if run >= 10:
                report["cases"][0]["partitions"][0]["median_ns"] += 100000
            report["environment"]["time"] = f"2026-01-{run + 1:02d}T00:00:00Z"
            report["environment"]["build"]["commit"] = f"c{run:011d}"
            result = self.run_program(subcommand=["history", "add", self.path("h.db"), self.write("r.json", json.dumps(report))])
            if "this build has no history" in result.stderr:
                self.skipTest("this build has no history")
            self.assertEqual(0, result.returncode, result.stderr)
        page = ["report", self.path("r.json"), f"--history={self.path('h.db')}", "-o"]
        self.assertEqual(0, self.run_program(subcommand=[*page, self.path("a.html")]).returncode)
        with open(self.path("a.html"), encoding="utf-8") as file:
            inside = json.loads(re.search('<script type="application/json" id="data">\n(.*?)</script>', file.read(), re.S)[1])
        self.assertEqual([20, 20], [len(series["points"]) for series in inside["history"]])
        self.assertEqual([[10], []], [[at for at, change in series["steps"]] for series in inside["history"]])
        self.assertEqual(["2026-01-11T00:00:00Z", "c00000000010", 1101000], inside["history"][0]["points"][10][:3])
        if shutil.which("chromium"):
            drawn = self.browse("--dump-dom").split('id="data"')[0]
            self.assertEqual(2, drawn.count('aria-label="History of 20 runs'))
            self.assertEqual(1, drawn.count('class="step"'))
            self.assertRegex(drawn, r"\+\d+\.\d % at 2026-01-11T00:00:00Z c00000000010")
        self.assertEqual(2, self.run_program(subcommand=[*page, self.path("b.xml")]).returncode)
        page[2] = f"--history={self.path('none.db')}"
        self.assertEqual(2, self.run_program(subcommand=[*page, self.path("b.html")]).returncode)

    @unittest.skipUnless(shutil.which("node"), "node, which runs the page's script, is missing")
    def test_a_page_tells_expected_cases_and_unknown_verdicts(self):
        known = self.write("known", "UNTESTED_FAILED none.json # not written yet\nPASSED *relu*\nUNTESTED_FAILED bare.json\n")
        self.run_program(f"--expect={known}", f"--json={self.path('a.json')}", "--case=none.json", "--case=bare.json", "--case=op/relu.json",
                         "--case=op/abs.json", "--case=lost.json", "--case=op/exp.json", "--case=op/elu.json")
        report = self.report("a.json")
        self.assertEqual(["UNTESTED_FAILED", "UNTESTED_FAILED", "PASSED", "PASSED", "UNTESTED_FAILED", "PASSED", "PASSED"],
                         [case["status"] for case in report["cases"]])
        report["cases"][5]["status"] = "EXPLODED"  # as a later version may have it
        del report["cases"][4]["expected"]  # as an earlier one had none
        drawn = self.draw(report)
        self.assertEqual([["1", "bad", "exploded"], ["2", "good", "passed"], ["1", "good", "passed (expected)"], ["1", "bad", "untested failed"],
                          ["2", "warn", "untested failed (expected)"], ["3", "bad", "option errors"]],
                         drawn["counts"])
        self.assertEqual(["EXPLODED", "PASSED", "PASSED (expected)", "UNTESTED_FAILED", "UNTESTED_FAILED (expected)"], drawn["options"])
        reason = report["cases"][0]["reason"]
        self.assertEqual([["UNTESTED_FAILED (expected)", "warn", f"{reason}; expected: not written yet"],
                          ["UNTESTED_FAILED (expected)", "warn", f"{reason}; expected"], ["PASSED (expected)", "good", "expected"],
                          ["PASSED", "good", ""], ["UNTESTED_FAILED", "bad", reason], ["EXPLODED", "bad", ""], ["PASSED", "good", ""]],
                         drawn["rows"])
        self.assertEqual(["UNTESTED_FAILED (expected)"] * 2, drawn["chosen"])
        self.assertEqual(["UNTESTED_FAILED ", "EXPLODED "], drawn["failures"])

    def draw(self, report):
        """What the page's script makes of a report, in a document that keeps the elements and no more."""
        report["summary"]["option_errors"] = 3
        self.run_program(subcommand=["report", self.write("b.json", json.dumps(report)), "-o", self.path("b.html")])
        with open(self.path("b.html"), encoding="utf-8") as file:
            data, script = re.search('id="data">\n(.*?)</script>\n<script>\n(.*)</script>', file.read(), re.S).groups()
        self.write("page.js", """
            class Element {
              constructor(text) { this.children = []; this.textContent = text ?? ''; this.value = ''; this.style = {}; this.className = ''; }
              append(...more) { this.children.push(...more); }
              prepend(...more) { this.children.unshift(...more); }
              replaceChildren(...all) { this.children = all; }
              setAttribute() {}
            }
            const elements = {};
            globalThis.Option = class extends Element { constructor(text, value) { super(text); this.value = value; } };
            globalThis.addEventListener = () => {};
            globalThis.document = { createElement: () => new Element(), createElementNS: () => new Element(),
              getElementById: id => elements[id] ??= new Element() };
            document.getElementById('data').textContent = """ + json.dumps(data) + ";" + script + """
            const rows = () => elements.rows.children.map(row => row.children), told = x => x.textContent + '';
            const drawn = {options: elements.only.children.map(told), rows: rows().map(row => [told(row[1]), row[1].className, told(row[3])]),
              counts: elements.counts.children.map(x => [told(x.children[0]), x.children[0].className, told(x)]),
              failures: document.getElementById('failures').children.map(x => told(x.children[0].children[0]))};
            elements.only.value = drawn.options[drawn.options.length - 1];
            elements.only.onchange();
            console.log(JSON.stringify({...drawn, chosen: rows().map(row => told(row[1]))}));""")
        result = subprocess.run(["node", self.path("page.js")], capture_output=True, text=True)
        self.assertEqual("", result.stderr)
        return json.loads(result.stdout)

    def browse(self, *options, page="a.html"):
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={self.path('u')}",
                   *options, f"file://{self.path(page)}"]
        return subprocess.run(command, capture_output=True, text=True, timeout=120).stdout

    def corner(self, scheme):
        """The colour of the first pixel of a screenshot: PNG with 8 bits a channel, whose first row is filtered by differences at most."""
        path = self.path(f"{scheme}.png")
        self.browse(f"--blink-settings=preferredColorScheme={scheme}", f"--screenshot={path}", "--window-size=600,400")
        with open(path, "rb") as file:
            data = file.read()
        packed, at = b"", 8
        while at < len(data):
            length = int.from_bytes(data[at:at + 4], "big")
            packed += data[at + 8:at + 8 + length] if data[at + 4:at + 8] == b"IDAT" else b""
            at += 12 + length
        return tuple(zlib.decompress(packed)[1:4])

    def test_colours_are_readable(self):
        """Contrasts of at least 4.5 to 1 between text and what is behind it (WCAG AA), light and dark."""
        with open(os.path.join(os.path.dirname(__file__), "../../cli/report/page.html"), encoding="utf-8") as file:
            schemes = re.findall(r":root \{(.*?)\}", file.read(), re.S)

        def light(colour):
            colour = colour * 2 if len(colour) == 3 else colour
            parts = [int(colour[i:i + 2], 16) / 255 for i in (0, 2, 4)]
            return sum(w * (c / 12.92 if c <= .04045 else ((c + .055) / 1.055) ** 2.4) for w, c in zip((.2126, .7152, .0722), parts))
        self.assertEqual(2, len(schemes))
        for scheme in schemes:
            colours = dict(re.findall(r"--(\w+): #(\w+)", scheme))
            for text in ("ink", "dim", "good", "bad", "warn"):
                for behind in ("page", "card"):
                    low, high = sorted(light(colours[name]) for name in (text, behind))
                    self.assertGreaterEqual((high + .05) / (low + .05), 4.5, (text, behind))

    @unittest.skipUnless(shutil.which("chromium"), "the browser chromium is missing")
    def test_a_page_is_dark_in_the_dark_and_light_on_paper(self):
        self.run_program(f"--json={self.path('a.json')}", "--mode=P", "--max-ms-per-prb=100", "--samples", "--case=op/relu.json", "--case=none.json")
        self.run_program(subcommand=["report", self.path("a.json"), "-o", self.path("a.html")])
        self.assertEqual((255, 255, 255), self.corner(1))
        self.assertEqual((0x15, 0x18, 0x1b), self.corner(0))
        self.browse("--blink-settings=preferredColorScheme=0", f"--print-to-pdf={self.path('a.pdf')}")
        if not shutil.which("pdftotext"):
            self.skipTest("pdftotext is missing")
        text = subprocess.run(["pdftotext", "-layout", self.path("a.pdf"), "-"], capture_output=True, text=True).stdout
        self.assertIn("cannot open none.json", text)  # the details of failures are open on paper
        self.assertIn("Time per partition", text)
        self.assertNotIn("all verdicts", text)

    @unittest.skipUnless(shutil.which("chromium"), "the browser chromium is missing")
    def test_a_browser_draws_the_page(self):
        self.run_program(f"--json={self.path('a.json')}", "--mode=P", "--max-ms-per-prb=200", "--samples", "--case=op/relu.json",
                         "--case=pattern/matmul_bias_relu.json", "--case=none.json")
        self.run_program(subcommand=["report", self.path("a.json"), "-o", self.path("a.html")])
        drawn = self.browse("--dump-dom")
        self.assertIn('aria-label="Roofline plot"', drawn)
        self.assertEqual(2, drawn.count('aria-label="Distribution of the samples'))
        self.assertIn("cannot open none.json", drawn[:drawn.index('id="data"')])  # among the failures
        self.assertEqual(2, len(re.findall(r"samples, (?:converged|noisy|budget)", drawn)))

    def test_threads(self):
        for n in (1, 2, 3):
            self.run_program(f"--threads={n}", f"--json={self.path('report.json')}", "--case=op/relu.json")
            self.assertIn(f"{n} thread", self.report()["environment"]["engine"])


unittest.main(argv=sys.argv[:1])
