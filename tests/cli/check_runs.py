"""What a run makes of its arguments, batch files and standard streams, and how it ends.
Usage: check_runs.py GRAPH_BENCH INPUTS_DIR"""
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree as xml

PROGRAM, INPUTS = (os.path.abspath(path) for path in sys.argv[1:3])
TWO_PARTITIONS = """graph engine=cpu fpmath=strict
0: %1:f32:8x8 = SoftMax(%0:f32:8x8) axis=1
1: %2:f32:8x8 = SoftMax(%1) axis=1
"""


class Runs(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)

    def path(self, name):
        return os.path.join(self.dir.name, name)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def run_program(self, *arguments, **more):
        command = [PROGRAM, f"--input-dir={INPUTS}", *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd=self.dir.name, **more)

    def report(self, name="report.json"):
        with open(self.path(name), encoding="utf-8") as file:
            return json.load(file)

    def verdicts(self, batch):
        output = self.run_program("--summary=no-failures", "--batch=" + self.write("batch", batch)).stdout
        return re.findall(r"(?m)^\d+:(\w+) .*__REPRO", output)

    def test_the_reproducer_line_of_a_batch_fails_as_the_case_did(self):
        self.write("two.gbt", TWO_PARTITIONS)
        batch = self.run_program("--repro-dir=folders", "--json=report.json", "--batch=" + self.write("batch", "--case=two.gbt\n"))
        line = re.search("(?m)^0:.*__REPRO: (.*)$", batch.stdout)[1]
        again = self.run_program(*shlex.split(line))
        self.assertEqual(1, again.returncode)
        self.assertIn("UNTESTED_FAILED (2 partitions, expected 1)", again.stdout)
        folder = os.path.join(self.path("folders"), os.listdir(self.path("folders"))[0])
        program_first = dict(os.environ, PATH=os.path.dirname(os.path.abspath(PROGRAM)) + ":" + os.environ["PATH"])
        self.assertEqual(1, subprocess.run([os.path.join(folder, "command")], capture_output=True, env=program_first).returncode)
        again = subprocess.run([PROGRAM, "repro", folder], capture_output=True, text=True)
        self.assertIn("the same failure", again.stdout)
        rerun = self.run_program("--rerun-failed=report.json", "--batch=batch")
        self.assertIn("failed:1", rerun.stdout)

    def test_every_wrong_option_of_a_batch_counts(self):
        failed, good = ["UNTESTED_FAILED"], ["PASSED"]
        for batch, expected in (("--dt=bogus\n--in-shapes=zz\n--in-shapes=\n--case=op/relu.json\n", failed),
                                ("--dt=bogus\n--foo\n--case=op/relu.json\n", failed),
                                ("--dt=bogus\n--foo --case=op/relu.json --dt=\n--case=op/relu.json", failed + good),
                                ("--dt=bogus --in-shapes=zz\n--reset\n--case=op/relu.json\n", good),
                                ("--dt\n--case=op/relu.json\n--dt=f32\n--case=op/relu.json\n", failed + good),
                                ("--mode=X --foo\n--case=op/relu.json\n", good),
                                ("--mode=X --foo --mode=C --case=op/relu.json\n", failed)):
            self.assertEqual(expected, self.verdicts(batch), batch)

    def test_directories_are_searched_whatever_their_names(self):
        with open(os.path.join(INPUTS, "op/relu.json"), encoding="utf-8") as file:
            self.write("x/a/only.json", file.read())
        first, second = self.write("x/ab/b1", "# nothing\n"), self.write("x/a/b2", "--case=only.json\n")
        for batches in ((first, second), (second, first)):
            result = self.run_program(*[f"--batch={batch}" for batch in batches])
            self.assertEqual(0, result.returncode, result.stderr)

    def without(self, streams, *arguments):
        """The program as a daemon may start it, without some of the standard streams."""
        command = shlex.join([PROGRAM, *arguments]) + "".join(f" {stream}>&-" for stream in streams)
        return subprocess.run(["sh", "-c", command], capture_output=True, text=True, cwd=self.dir.name)

    def test_closed_streams_take_no_files(self):
        cases = [f"--input-dir={INPUTS}", "--json=report.json", "--case=none.json", "--case=op/relu.json"]
        result = self.without([2], *cases)
        self.assertEqual(1, result.returncode)
        self.assertIn("tests:2 ", result.stdout)
        self.assertEqual(["UNTESTED_FAILED", "PASSED"], [case["status"] for case in self.report()["cases"]])
        for streams in ([1], [0, 1], [0, 1, 2]):
            result = self.without(streams, *cases)
            self.assertEqual(3, result.returncode)
            self.assertIn("" if 2 in streams else "standard output cannot be written", result.stderr)
            self.assertEqual("stopped", self.report()["ended"])
        self.assertEqual(3, self.without([1], f"--input-dir={INPUTS}", "--case=op/relu.json").returncode)
        self.run_program("--mode=P", "--max-ms-per-prb=10", "--json=report.json", "--case=op/relu.json")
        for command in (["merge", "report.json", "-o", "-"], ["compare", "report.json", "report.json"]):
            self.assertNotEqual(0, self.without([1], *command).returncode, command)

    def stall(self, *arguments):
        """A run whose output nobody reads; behind the first line and when the pipe is full."""
        self.write("batch", "--case=op/relu.json\n" * 3000)
        command = [PROGRAM, f"--input-dir={INPUTS}", "--mode=L", *arguments, "--batch=batch"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=self.dir.name)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        process.stdout.readline()
        time.sleep(1.5)
        return process

    def test_a_signal_ends_a_run_whose_output_nobody_reads(self):
        process = self.stall("--json=report.json")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(128 + signal.SIGTERM, process.wait(timeout=30))
        report = self.report()
        self.assertEqual("interrupted", report["ended"])
        self.assertEqual(len(report["cases"]), report["summary"]["LISTED"])
        self.assertGreater(len(report["cases"]), 100)

    def test_the_third_signal_ends_a_run_at_once(self):
        process = self.stall()
        begin = time.monotonic()
        for _ in range(3):
            process.send_signal(signal.SIGINT)
            time.sleep(0.2)
        self.assertEqual(128 + signal.SIGINT, process.wait(timeout=30))
        self.assertLess(time.monotonic() - begin, 1.9)

    def test_a_resumed_report_expects_what_is_expected_now(self):
        known = "--expect=" + self.write("known", "UNTESTED_FAILED *none* # known\n")
        cases = ["--json=report.json", "--junit=report.xml", "--case=none.json"]
        for before, now, status in (([known], [], 1), ([], [known], 0)):
            self.run_program(*before, *cases)
            result = self.run_program("--resume=report.json", *now, *cases)
            self.assertEqual(status, result.returncode)
            self.assertEqual("known" if now else None, self.report()["cases"][0]["expected"])
            self.assertEqual(str(status), xml.parse(self.path("report.xml")).getroot().get("errors"))

    def test_resuming_tells_of_reports_of_others(self):
        cases = ["--mode=R", "--case=op/relu.json"]
        self.run_program("--json=report.json", *cases)
        own = self.report()
        for changes in ({}, {("build", "commit"): "commit"}, {("build", "flags"): "compiler flags", ("cpu", "model"): "CPU"}):
            other = json.loads(json.dumps(own))
            for outer, inner in changes:
                other["environment"][outer][inner] = "mine"
            self.write("other.json", json.dumps(other))
            result = self.run_program("--resume=other.json", *cases)
            self.assertEqual((0, len(changes) > 0), (result.returncode, result.stderr.count("\n") == 1), result.stderr)
            self.assertEqual(sorted(changes.values()), sorted(re.findall(r"another ([\w ]+) \(mine, not ", result.stderr)))
            self.assertIn("tests:1 passed:1", result.stdout)
            self.assertNotIn("__REPRO", result.stdout)

    def test_cases_of_reports_without_the_option_of_batches_are_the_same(self):
        """Shards, --rerun-failed and patterns: reports of before the lines of batches had --expected-n-partitions=1. --resume takes a
        verdict over for the very line only: another one may expect another number of partitions."""
        option = "--expected-n-partitions=1 "
        cases = "--case=op/relu.json\n--case=none.json\n--case=op/exp.json\n--expected-n-partitions=0 --case=op/abs.json\n"
        batch = ["--mode=R", "--batch=" + self.write("batch", cases)]
        self.run_program("--json=report.json", *batch)
        report = self.report()
        lines = [case["repro"] for case in report["cases"]]
        self.assertEqual([True] * 3 + [False], [option in line for line in lines])
        for case in report["cases"]:
            case["repro"] = case["repro"].replace(option, "")
        self.write("old.json", json.dumps(report))
        result = self.run_program("--resume=old.json", "--json=new.json", *batch)
        self.assertEqual(["0", "1", "2"], re.findall(r"(?m)^(\d+):", result.stdout.split("====")[0]))
        self.assertEqual(lines, [case["repro"] for case in self.report("new.json")["cases"]])
        result = self.run_program("--rerun-failed=old.json", *batch)
        self.assertIn("tests:1 ", result.stdout)
        known = "--expect=" + self.write("known", "UNTESTED_FAILED *--graph --case=none.json # known\n")
        self.assertEqual(0, self.run_program(known, *batch).returncode)
        self.assertIn("tests:1 ", self.run_program("--filter=--case=op/relu.json", *batch).stdout)
        for shard in (1, 2, 3):
            alone = [word for line in cases.split()[:3] for word in ("--expected-n-partitions=", line)]
            shards = [self.run_program("--mode=L", f"--shard={shard}/3", *words).stdout for words in (batch[1:], alone)]
            first, second = (set(re.findall(r"--case=(?!op/abs)(\S+)", text)) for text in shards)
            self.assertEqual(first, second)

    def test_a_report_that_has_both_lines_of_a_case_keeps_them_apart(self):
        self.write("two.gbt", TWO_PARTITIONS)
        cases = ["--json=report.json", "--case=two.gbt", "--expected-n-partitions=1", "--case=two.gbt"]
        self.run_program(*cases)
        verdicts = [case["status"] for case in self.report()["cases"]]
        self.assertEqual(["PASSED", "UNTESTED_FAILED"], verdicts)
        self.run_program("--resume=report.json", *cases)
        self.assertEqual(verdicts, [case["status"] for case in self.report()["cases"]])

    def test_what_was_skipped_is_not_done(self):
        cases = ["--json=report.json", "--case=op/relu.json", "--case=op/exp.json"]
        self.run_program("--start=1", *cases)
        result = self.run_program("--resume=report.json", *cases)
        self.assertEqual(["0"], re.findall("(?m)^([0-9]+):PASSED", result.stdout))
        self.assertEqual(["PASSED", "PASSED"], [case["status"] for case in self.report()["cases"]])

    def test_what_a_batch_names_twice_is_resumed_as_often(self):
        batch = ["--json=report.json", "--batch=" + self.write("batch", "--case=op/relu.json\n--case=op/exp.json\n--case=op/relu.json\n")]
        self.run_program(*batch)
        report = self.report()
        report["cases"][0]["status"] = "FAILED"
        report["cases"].pop()
        self.write("old.json", json.dumps(report))
        result = self.run_program("--resume=old.json", *batch)
        self.assertEqual(["2"], re.findall("(?m)^([0-9]+):PASSED", result.stdout))
        self.assertEqual((1, ["FAILED", "PASSED", "PASSED"]), (result.returncode, [case["status"] for case in self.report()["cases"]]))

    def test_what_failed_is_told_alike_by_all(self):
        """Expected failures are none; what this program does not know is one."""
        cases = ["--mode=R", "--case=op/relu.json", "--case=op/exp.json", "--case=op/abs.json"]
        self.run_program("--json=report.json", *cases)
        report = self.report()
        report["cases"][0].update(status="FAILED", expected="known")
        report["cases"][1]["status"] = "MELTED"
        self.write("old.json", json.dumps(report))
        result = self.run_program("--rerun-failed=old.json", *cases)
        self.assertIn("tests:1 passed:1", result.stdout)
        self.assertIn("op/exp.json", result.stdout)

    def test_a_part_of_the_cases_does_not_outdate_expectations(self):
        known = ["--strict", "--mode=R", "--expect=" + self.write("known", "UNTESTED_FAILED *none.json # known\n")]
        cases = ["--case=none.json", "--case=op/relu.json"]
        for shard in (1, 2):
            self.assertNotIn("as expected here", self.run_program(*known, f"--shard={shard}/2", *cases).stderr)
        self.assertEqual(0, self.run_program(*known, "--filter=*relu*", *cases).returncode)
        self.assertEqual(1, self.run_program(*known, cases[1]).returncode)
        result = self.run_program("--strict", "--expect=.", cases[1])
        self.assertEqual(2, result.returncode)
        self.assertIn("cannot read .: ", result.stderr)

    def test_which_nan_it_is_says_nothing(self):
        """Whole vectors return that of the one operand, last ones that of the other; strides, and both executions, change which are which."""
        self.write("sum.gbt", 'graph engine=cpu fpmath=strict\n0: %1:f32:16x2x200 = BiasAdd(%0:f32:16x2x200, %2:f32:200) data_format="NXC"\n')
        for caches in ("4096:4096:4096", "4096:8192:16384"):
            result = self.run_program("--fill=bits", "--seeds=3", f"--caches={caches}", "--case=sum.gbt")
            self.assertIn("0:PASSED", result.stdout, result.stderr)

    def test_strictness_asks_for_no_case_where_all_are_left_to_others(self):
        strict = ["--strict", "--mode=R", "--case=op/relu.json"]
        self.assertEqual([0] * 5, [self.run_program(f"--shard={shard}/5", *strict).returncode for shard in range(1, 6)])
        self.run_program("--json=report.json", *strict)
        self.assertEqual(0, self.run_program("--rerun-failed=report.json", *strict).returncode)
        for more in ["--filter=nosuch"], ["--filter=nosuch", "--shard=1/2"]:
            self.assertEqual(1, self.run_program(*more, *strict).returncode, more)

    def test_reports_say_why_strictness_was_not_content(self):
        stale = "--expect=" + self.write("stale", "FAILED *relu* # known\n")
        for options, reasons in (([], []), (["--filter=nosuch"], ["no case ran"]), (["--start=1"], ["1 skipped, 0 mistrusted"]),
                                 (["--budget=1e-9s"], ["no case ran", "--budget ended the run before its last case"]),
                                 ([stale], ["1 lines of --expect are of no use"])):
            result = self.run_program("--strict", "--json=r.json", "--junit=r.xml", "--mode=R", *options, "--case=op/relu.json")
            self.assertEqual(1 if reasons else 0, result.returncode, options)
            self.assertEqual(reasons, re.findall("error: --strict: (.*)", result.stderr))
            self.assertEqual(reasons, self.report("r.json")["strict"])
            errors = [error.get("message") for error in xml.parse(self.path("r.xml")).getroot().iter("error")]
            self.assertEqual(["; ".join(reasons)] if reasons else [], errors)
        self.assertEqual(1, subprocess.run([PROGRAM, "merge", "--check", "r.json", "-o", "m.json"], capture_output=True, cwd=self.dir.name).returncode)
        self.assertEqual(self.report("r.json")["strict"], self.report("m.json")["strict"])

    def test_a_run_that_its_budget_ends_says_so(self):
        for options, told in (([], 0), (["--budget=1e-9s"], 1)):
            result = self.run_program("--mode=R", *options, "--case=op/relu.json")
            self.assertEqual((0, told), (result.returncode, result.stderr.count("--budget ended the run before its last case")))

    def test_a_resumed_report_knows_the_machine_of_the_first(self):
        cases = ["--mode=P", "--max-ms-per-prb=20", "--json=report.json", "--case=op/relu.json"]
        self.run_program(*cases)
        first = self.report()["environment"]
        self.run_program("--resume=report.json", *cases)
        again = self.report()["environment"]
        for name in "engine", "probe_flops":
            self.assertIsNotNone(first[name], name)
            self.assertEqual(first[name], again[name], name)

    def test_names_do_not_say_where_files_are(self):
        """Two checkouts of the same graphs, by two users."""
        for folder in "a b", "c":
            self.write(f"{folder}/g.gbt", TWO_PARTITIONS)
            self.run_program("--mode=P", "--max-ms-per-prb=20", f"--json={folder}.json", f"--input-dir={self.path(folder)}", "--case=g.gbt")
        differences = self.run_program_as_it_is("compare", "--force", "--format=json", "--floor=99%", "a b.json", "c.json")
        notes = json.loads(differences.stdout)["notes"]
        self.assertEqual([], [note["text"] for note in notes if "case" in note["text"]])
        result = self.run_program_as_it_is("history", "add", "h.db", "a b.json", "c.json")
        if "this build has no" not in result.stderr:
            self.assertIn("3 series", self.run_program_as_it_is("history", "report", "h.db").stdout)

    def test_reports_are_written_where_links_and_descriptors_lead(self):
        self.write("real.json", "old")
        os.symlink("real.json", self.path("link.json"))
        os.symlink("/proc/self/fd/1", self.path("stdout"))
        self.assertEqual(0, self.run_program("--json=link.json", "--case=op/relu.json").returncode)
        self.assertTrue(os.path.islink(self.path("link.json")))
        self.assertEqual("complete", self.report("real.json")["ended"])
        for name in "/dev/stdout", "/proc/self/fd/1", "/dev/fd/1", "stdout", "-":
            with open(self.path("log"), "w", encoding="utf-8") as log:
                command = [PROGRAM, f"--input-dir={INPUTS}", f"--json={name}", "--case=op/relu.json"]
                result = subprocess.run(command, stdout=log, stderr=subprocess.PIPE, text=True, cwd=self.dir.name)
            self.assertEqual(0, result.returncode)
            self.assertRegex(result.stderr, r"(?m)^0:PASSED", name)
            self.assertEqual("complete", self.report("log")["ended"])
        self.assertTrue(os.path.islink(self.path("stdout")))
        self.assertEqual(["link.json", "log", "real.json", "stdout"], sorted(os.listdir(self.dir.name)))

    def test_a_report_has_the_standard_output_for_itself(self):
        cases = ["-v1", "--summary=impl", "--isolate=on", "--case=op/relu.json", "--seed=random", "--mode=R", "--case=op/exp.json"]
        for arguments in (["--json=-", *cases], [*cases, "--json=/dev/stdout"], ["--batch=" + self.write("batch", "--json=-\n" + "\n".join(cases))]):
            result = self.run_program(*arguments)
            self.assertEqual(0, result.returncode)
            self.assertEqual(["PASSED", "EXECUTED"], [case["status"] for case in json.loads(result.stdout)["cases"]])
            for line in ("run: ", "partition [0-9]+: ", "0:PASSED", "1:EXECUTED", "seed: ", "kernels used", "tests:2 "):
                self.assertRegex(result.stderr, "(?m)^" + line)
        result = self.run_program("--csv=-", *cases)
        self.assertEqual(["index", "0", "1"], [line.split(",")[0] for line in result.stdout.splitlines()])
        result = self.run_program("--junit=-", *cases)
        self.assertEqual("2", xml.fromstring(result.stdout).get("tests"))
        self.assertIn("Usage: ", self.run_program("--json=-", "--help").stdout)
        result = self.without([2], f"--input-dir={INPUTS}", "--json=-", "--case=op/relu.json", "--case=op/exp.json")
        self.assertEqual((0, 2), (result.returncode, len(json.loads(result.stdout)["cases"])))
        self.assertEqual(3, self.without([1], f"--input-dir={INPUTS}", "--json=-", "--case=op/relu.json").returncode)

    def test_what_was_not_measured_has_no_perf_line(self):
        self.write("open.gbt", "graph engine=cpu fpmath=strict\n0: %1:f32:... = ReLU(%0:f32:?x3)\n")
        for more in ["--case=open.gbt"], ["--isolate=on", "--case-timeout=0.001s", "--case=model/resnet50_small_f32.json"]:
            result = self.run_program("--mode=CP", "--max-ms-per-prb=10", *more)
            self.assertNotIn("perf,", result.stdout.replace("Output template", ""), more)

    def test_few_samples_do_not_converge(self):
        for count, interval in ((1, False), (2, True)):
            self.run_program("--mode=P", f"--fix-times-per-prb={count}", "--json=report.json", "--samples", "--case=op/relu.json")
            part = self.report()["cases"][0]["partitions"][0]
            samples = [ns for visit in part["visits"] for ns in visit["samples_ns"]]
            self.assertEqual(count, len(samples))
            self.assertEqual(sum(samples) // count, part["median_ns"])
            self.assertEqual(interval, part["low_ns"] is not None)

    def test_tensors_have_the_shape_of_their_files(self):
        self.write("plain.gbt", "graph engine=cpu fpmath=strict\n0: %1:f32:2x3 = ReLU(%0:f32:2x3)\n")
        self.assertEqual(0, self.run_program("--save-tensors=t", "--case=plain.gbt").returncode)
        self.assertEqual(0, self.run_program("--load-tensors=t", "--case=plain.gbt").returncode)
        name = self.path("t/in_0.f32.npy")
        with open(name, "rb") as file:
            good = file.read()
        self.assertIn(b"(2, 3,)", good)
        for shape in b"(3, 2,)", b"(6,)   ", b"(2,3  )", b"(2,)   ", b"(-2,-3)":
            with open(name, "wb") as file:
                file.write(good.replace(b"(2, 3,)", shape))
            result = self.run_program("--load-tensors=t", "--case=plain.gbt")
            fits = shape == b"(2,3  )"
            self.assertEqual(0 if fits else 1, result.returncode, shape)
            self.assertEqual(fits, "tensor 0 (2, 3" not in result.stderr, result.stderr)

    def test_what_cannot_be_kept_of_a_failure_ends_no_run(self):
        batch = "--batch=" + self.write("batch", "--case=nosuch.json\n--case=op/relu.json\n")
        result = self.run_program("--repro-dir=folders", batch)
        self.assertEqual(1, result.returncode)
        self.assertIn("--repro-dir keeps no copy", result.stderr)
        self.assertIn("1:PASSED", result.stdout)

    def test_attributes_that_tell_shapes_count(self):
        """Also where the file has none, or has dims that follow from others."""
        for option, op, shape in (
                ("src_shape:1x5x4", "%1:f32:1x6x4 = AvgPoolBackward(%0:f32:1x3x4) strides=[2] pads_begin=[1] pads_end=[1] kernel=[3] "
                 "exclude_pad=false", "1x5x4"),
                ("dst_shape:1x5x4", "%1:f32:1x6x4 = ConvolutionBackwardData(%0:f32:1x3x6, %2:f32:3x4x6) strides=[2] pads_begin=[1] pads_end=[1] "
                 "dilations=[1]", "1x5x4"),
                ("axes:0", "%1:f32:2x4 = ReduceSum(%0:f32:2x3x4, %2:s32:1)", "3x4"),
                ("begin_norm_axis:1", "%3:f32:2x3x4, %1:f32:2x3, %4:f32:2x3 = LayerNorm(%0:f32:2x3x4) use_affine=false", "2")):
            self.write("told.gbt", f"graph engine=cpu fpmath=strict\n0: {op}\n")
            result = self.run_program("--save-graph=out.gbt", f"--op-attrs=0:{option}", "--case=told.gbt")
            self.assertEqual(0, result.returncode, result.stdout + result.stderr)
            with open(self.path("out.gbt"), encoding="utf-8") as file:
                self.assertIn(f"%1:f32:{shape}", re.sub(r"[*][0-9x]+", "", file.read()))

    def test_layouts_without_strides_may_have_any(self):
        with open(os.path.join(INPUTS, "op/relu.json"), encoding="utf-8") as file:
            graph = json.load(file)
        for layout, strides, good in (("any", [], True), ("opaque", [94, -5], True), ("any", [1] * 20, True), ("strided", [94, -5], False),
                                      ("strided", [], False)):
            graph["graph"][0]["outputs"][0].update(layout_type=layout, stride=strides)
            self.write("odd.json", json.dumps(graph))
            self.assertEqual(0 if good else 1, self.run_program("--case=odd.json").returncode, (layout, strides))

    def test_byte_order_marks_are_no_text(self):
        mark = "\ufeff"
        self.write("plain.gbt", mark + TWO_PARTITIONS)
        known = "--expect=" + self.write("known", mark + "UNTESTED_FAILED *plain* # known\n")
        result = self.run_program(known, "--batch=" + self.write("batch", mark + "--expected-n-partitions=1 --case=plain.gbt\n"))
        self.assertEqual((0, ""), (result.returncode, result.stderr))
        self.assertIn("(2 partitions, expected 1)", result.stdout)

    def test_words_behind_a_border_are_words(self):
        self.run_program("--mode=R", "--json=a.json", "--case=op/relu.json")
        self.run_program("--mode=R", "--json=b.json", "--case=op/exp.json")
        self.assertEqual(0, self.run_program_as_it_is("merge", "-o", "m.json", "a.json", "--", "b.json").returncode)
        self.assertEqual(2, len(self.report("m.json")["cases"]))

    def run_program_as_it_is(self, *arguments):
        return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, cwd=self.dir.name)

    def test_there_is_nothing_behind_a_report(self):
        self.run_program("--mode=R", "--json=a.json", "--case=op/relu.json")
        with open(self.path("a.json"), encoding="utf-8") as file:
            text = file.read()
        for more, status in (("", 0), (" \n", 0), (text, 2), ("x", 2)):
            result = self.run_program_as_it_is("report", self.write("both.json", text + more), "-o", "out.csv")
            self.assertEqual(status, result.returncode, more)
            self.assertEqual(status == 2, "there is more behind the report" in result.stderr, result.stderr)

    def test_wrong_options_of_shards_are_counted_once(self):
        batch = "--batch=" + self.write("batch", "--nosuch=1\n--case=op/relu.json\n--case=op/exp.json\n")
        self.run_program("--mode=R", "--json=whole.json", batch)
        for shard in (1, 2):
            self.run_program("--mode=R", f"--json={shard}.json", f"--shard={shard}/2", batch)
        self.run_program_as_it_is("merge", "-o", "m.json", "1.json", "2.json")
        self.assertEqual([1, 1], [self.report(name)["summary"]["option_errors"] for name in ("whole.json", "m.json")])

    def test_a_run_has_one_of_each_file_that_it_reads(self):
        for name in ("e1", "e2"):
            self.write(name, f"UNTESTED_FAILED *{name}*\n")
        self.run_program("--json=r1", "--case=op/relu.json")
        self.run_program("--json=r2", "--case=op/relu.json")
        for option, files in (("expect", ("e1", "e2")), ("resume", ("r1", "r2")), ("rerun-failed", ("r1", "r2")), ("shard-costs", ("r1", "r2"))):
            twice = [f"--{option}={file}" for file in files]
            result = self.run_program(*twice, "--case=op/relu.json")
            self.assertEqual(2, result.returncode, option)
            self.assertIn(f"--{option}: a run has one, which is \"{files[0]}\"", result.stderr)
            self.assertEqual(0, self.run_program(twice[0], twice[0], "--case=op/relu.json").returncode)
        batch = "--batch=" + self.write("batch", "--expect=none\n--mode=L\n--expect=e1 --case=op/relu.json\n")
        result = self.run_program(batch)
        self.assertEqual(1, result.stderr.count("error:"), result.stderr)
        self.assertIn("0:LISTED", result.stdout)

    def test_each_report_has_a_file_of_its_own(self):
        os.symlink(self.dir.name, self.path("same"))
        for other in ("r", "./r", "same/r"):
            result = self.run_program("--json=r", f"--junit={other}", "--case=op/relu.json")
            self.assertEqual(2, result.returncode)
            self.assertIn("--json and --junit name the same file", result.stderr)
            self.assertEqual(["same"], os.listdir(self.dir.name))
        self.assertEqual(0, self.run_program("--json=/dev/null", "--junit=/dev/null", "--case=op/relu.json").returncode)

    def test_a_machine_is_known_from_earlier_runs(self):
        file = self.path("machine.json")

        def run(cache=file):
            self.run_program("--mode=P", "--threads=1", "--max-ms-per-prb=250", "--json=report.json", "--case=op/relu.json",
                             env=dict(os.environ, GB_MACHINE_CACHE=cache))
            report = self.report()
            return report["environment"]["probe_flops"], report["cases"][0]["partitions"][0]

        def kept():
            with open(file, encoding="utf-8") as text:
                return json.load(text)

        def plant(document):
            with open(file, "w", encoding="utf-8") as text:
                text.write(document if isinstance(document, str) else json.dumps(document))

        run("off")
        self.assertFalse(os.path.exists(file))
        best, _ = run()
        names = [name for name in kept() if name != "boot"]
        self.assertEqual(1, len(names))
        entry = kept()[names[0]]
        self.assertEqual(best, entry["flops"])
        for change, known in (({"flops": 1e18}, True), ({"flops": 1e18, "time": entry["time"] - 90000}, False),
                              ({"flops": 1e18, "time": entry["time"] + 90000}, False), ({"flops": "much", "l1": []}, False),
                              ({"flops": 1e18, "time": 1e300}, False), ({"flops": float("inf")}, False)):
            plant({"boot": kept()["boot"], names[0]: dict(entry, **change)})
            best, partition = run()
            self.assertEqual(known, best == 1e18, change)
            self.assertEqual(known, kept()[names[0]]["flops"] == 1e18, change)
            if known:
                self.assertIn("slow", partition["flags"])
                self.assertEqual({"slow"}, {visit["state"] for visit in partition["visits"]})
                self.assertLess(3, len(partition["visits"]), "it is visited again")
        for other in ({"boot": "another", names[0]: dict(entry, flops=1e18)}, "[", "[]", {"boot": 1}, {"boot": kept()["boot"], names[0]: 1}):
            plant(other)
            self.assertLess(run()[0], 1e18)
            self.assertIn(names[0], kept(), "it was written anew")
        self.assertEqual(["machine.json"], [name for name in os.listdir(self.dir.name) if "machine" in name])


unittest.main(argv=sys.argv[:1])
