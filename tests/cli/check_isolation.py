"""What becomes of cases that crash, hang or take all memory: verdicts in whole reports, and no process that stays behind.
Usage: check_isolation.py FAULTY_GRAPH_BENCH, the program of faulty_main.c"""
import csv
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree as xml

PROGRAM = sys.argv[1]
GRAPH = """graph engine=cpu fpmath=strict
0: %1:f32:4x8 = {}(%0:f32:4x8)
"""
FAULTS = {"Tanh": "segv", "Exp": "abort", "Abs": "loop", "Sqrt": "memory", "Square": "wrong"}
GOOD = ["ReLU", "Sigmoid", "GELU"]


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Isolation(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)

    def path(self, name):
        return os.path.join(self.dir.name, name)

    def batch(self, kinds):
        for kind in kinds:
            with open(self.path(kind + ".gbt"), "w", encoding="utf-8") as file:
                file.write(GRAPH.format(kind))
        with open(self.path("batch"), "w", encoding="utf-8") as file:
            file.writelines(f"--reset --case={kind}.gbt\n" for kind in kinds)
        return "--batch=" + self.path("batch")

    def environment(self, faults):
        plain = {name + "_OPTIONS": os.environ.get(name + "_OPTIONS", "") + ":handle_segv=0:handle_abort=0"
                 for name in ("ASAN", "UBSAN", "TSAN")}  # signals end the worker with sanitizers, too
        return dict(os.environ, **plain, GB_TEST_FAULT=",".join(f"{kind}:{action}" for kind, action in faults.items()))

    def run_program(self, *arguments, faults):
        return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, env=self.environment(faults), timeout=300)

    def report(self):
        with open(self.path("report.json"), encoding="utf-8") as file:
            return json.load(file)

    def test_looking_into_a_failure_does_not_change_it(self):
        """What crashes or hangs then is told, and has a time of its own."""
        with open(self.path("pair.gbt"), "w", encoding="utf-8") as file:
            file.write(GRAPH.format("Square") + "1: %2:f32:4x8 = ReLU(%1)\n")
        for alone, told in (("segv", "SIGSEGV"), ("loop", "after 1 s")):
            result = self.run_program("--isolate=on", "--case-timeout=1s", "--json=" + self.path("report.json"), f"--case={self.path('pair.gbt')}",
                                      f"--case={self.path('pair.gbt')}", faults={"Square+ReLU": "wrong", "Square": alone})
            self.assertEqual(2, len(re.findall(r"(?m)^\d:FAILED \(errors:1 total:64\)", result.stdout.split("====")[0])), result.stdout)
            self.assertIn(f"[BLAME] not known: looking into it ended ({told})", result.stdout)
            self.assertEqual(["FAILED"] * 2, [case["status"] for case in self.report()["cases"]])
            self.assertEqual(1, len(self.report()["cases"][0]["partitions"]))

    def test_a_limit_that_is_given_holds(self):
        """For a case of the command line, and where times are measured."""
        self.batch(["Square"])
        case = f"--case={self.path('Square.gbt')}"
        for mode in "C", "P":
            result = self.run_program("--case-timeout=1s", f"--mode={mode}", "--max-ms-per-prb=20", case, faults={"Square": "loop"})
            self.assertIn("0:TIMEOUT", result.stdout, mode)
        self.assertIn("0:OUT_OF_MEMORY", self.run_program("--case-memory=600M", case, faults={"Square": "memory"}).stdout)

    def test_a_crash_is_seen_though_children_of_the_worker_go_on(self):
        begin = time.monotonic()
        result = self.run_program("--isolate=on", "--case-timeout=15s", self.batch(["Square"]), faults={"Square": "fork"})
        self.assertIn("0:CRASHED (SIGSEGV", result.stdout)
        self.assertLess(time.monotonic() - begin, 10)

    def test_a_case_that_ends_the_process_makes_no_good_run(self):
        result = self.run_program("--isolate=off", self.batch(["ReLU", "Square", "GELU"]), faults={"Square": "exit"})
        self.assertEqual(1, result.returncode)
        self.assertIn("a case ended the process", result.stderr)
        result = self.run_program("--isolate=on", self.batch(["ReLU", "Square", "GELU"]), faults={"Square": "exit"})
        self.assertIn("1:CRASHED (exit status 0", result.stdout)
        self.assertIn("2:PASSED", result.stdout)

    def test_the_seed_of_what_did_not_run_is_told(self):
        for action, verdict in (("second", "FAILED"), ("third", "CRASHED")):
            result = self.run_program("--isolate=on", "--seeds=4", "--seed=10", "--json=" + self.path("report.json"), self.batch(["Square"]),
                                      faults={"Square": action})
            seed = 10 if action == "second" else 11
            self.assertEqual(seed, self.report()["cases"][0]["seed"])
            self.assertRegex(result.stdout, rf"0:{verdict}.*\(seed {seed}\)")

    def test_reports_of_failures_are_json(self):
        """An error where the bound is 0 is infinitely far over it, which JSON has no number for."""
        self.run_program("--blame=off", "--json=" + self.path("report.json"), self.batch(["Square"]), faults=FAULTS)

        def refuse(word):
            raise ValueError(word)
        with open(self.path("report.json"), encoding="utf-8") as file:
            case = json.loads(file.read(), parse_constant=refuse)["cases"][0]
        self.assertEqual("FAILED", case["status"])
        self.assertGreater(case["partitions"][0]["margin"], 1)

    def test_what_is_wrong_but_no_element_of_the_first_result(self):
        """Inputs that change, results that change, bytes that are no booleans, memory behind a tensor: each is told, and what it is due to."""
        with open(self.path("GreaterEqual.gbt"), "w", encoding="utf-8") as file:
            file.write(GRAPH.format("Square") + "1: %3:boolean:4x8 = GreaterEqual(%1, %2:f32:4x8)\n")
        chain = GRAPH.format("Square") + "1: %2:f32:4x8 = ReLU(%1)\n"
        with open(self.path("chain.gbt"), "w", encoding="utf-8") as file:
            file.write(chain)
        alone = "op 0 Square is wrong alone"
        for case, fault, told, blamed in (("Square", "Square:input", "tensor 0 f32:4x8: an input was overwritten", alone),
                                          ("Square", "Square:second", "outputs changed between executions", alone),
                                          ("Square", "Square:behind", "memory behind the tensor was overwritten", alone),
                                          ("Square", "Square:once", "", "not seen again"),
                                          ("GreaterEqual", "GreaterEqual:mask", "a boolean is neither 0 nor 1", "op 1 GreaterEqual is wrong alone"),
                                          ("chain", "Square+ReLU:behind", "memory behind the tensor", "right op by op; partition")):
            self.batch(["Square"])
            kinds, action = fault.split(":")
            result = self.run_program("--isolate=off", "--expected-n-partitions=0", f"--case={self.path(case)}.gbt", faults={kinds: action})
            self.assertIn("0:FAILED", result.stdout, fault)
            self.assertEqual(1 if told else 0, result.stderr.count(told) if told else 0, fault + result.stderr)
            self.assertIn("[BLAME] " + blamed, result.stdout, fault)

    def test_what_is_timed_end_to_end_is_checked(self):
        """A partition that is wrong only when others run before it again: alone it makes what was checked."""
        with open(self.path("chain.gbt"), "w", encoding="utf-8") as file:
            file.write("graph engine=cpu fpmath=strict\n0: %1:f32:4x8 = SoftMax(%0:f32:4x8)\n1: %2:f32:4x8 = LogSoftmax(%1:f32:4x8)\n")
        command = ["--mode=CP", "--fix-times-per-prb=3", "--expected-n-partitions=2", "--case=" + self.path("chain.gbt")]
        good = self.run_program(*command, faults={})
        self.assertEqual(0, good.returncode, good.stderr)
        for kind in ("SoftMax", "LogSoftmax"):
            result = self.run_program(*command, faults={kind: "between"})
            self.assertIn("0:FAILED", result.stdout)
            self.assertRegex(result.stderr, r"end to end: tensor 2 has other bits than the partitions made alone")

    def test_a_case_is_not_to_blame_for_a_worker_that_died_before_it(self):
        """The worker has nothing to do while a case is measured in the program itself."""
        self.batch(["ReLU"])
        measured = ["--mode=P", "--visits=1", "--fix-times-per-prb=3"]
        with open(self.path("batch"), "w", encoding="utf-8") as file:
            file.write("\n".join(["--mode=C", "--case=ReLU.gbt", *measured, "--case=ReLU.gbt", "--mode=C", "--case=ReLU.gbt"]))
        result = self.run_program("--batch=" + self.path("batch"), faults={"ReLU": "children"})
        self.assertEqual(0, result.returncode, result.stderr)
        self.assertRegex(result.stdout, r"(?s)0:PASSED.*\nperf,cpu,.*\n2:PASSED")

    def check_batch(self, *mode):
        kinds = [GOOD[0], "Tanh", GOOD[1], "Exp", "Abs", "Sqrt", "Square", GOOD[2]]
        files = [f"--{form}={self.path('report.' + form)}" for form in ("json", "junit", "csv")]
        result = self.run_program(*mode, "--case-timeout=15", "--case-memory=600M", *files, self.batch(kinds), faults=FAULTS)
        self.assertEqual(1, result.returncode, result.stderr)
        report = self.report()
        self.assertEqual("complete", report["ended"])
        self.assertEqual(kinds, [case["file"][:-4] for case in report["cases"]])
        verdicts = {case["file"][:-4]: case["status"] for case in report["cases"]}
        good = "EXECUTED" if "--mode=R" in mode else "PASSED"
        wrong = "EXECUTED" if "--mode=R" in mode else "FAILED"
        self.assertEqual(dict({kind: good for kind in GOOD}, Tanh="CRASHED", Exp="CRASHED", Abs="TIMEOUT", Sqrt="OUT_OF_MEMORY",
                              Square=wrong), verdicts)
        reasons = {case["file"][:-4]: case["reason"] for case in report["cases"]}
        self.assertRegex(reasons["Tanh"], "^SIGSEGV, execute, [a-z]+")
        self.assertRegex(reasons["Exp"], "^SIGABRT, execute, [a-z]+")
        self.assertRegex(reasons["Abs"], "^after 15 s, execute, [a-z]+")
        self.assertRegex(reasons["Sqrt"], "^more than 0.586 GiB, execute, [a-z]+")
        self.assertEqual(2, report["summary"]["CRASHED"])
        self.assertIsNotNone(report["environment"]["engine"])
        suite = xml.parse(self.path("report.junit")).getroot()
        self.assertEqual(("8", "4"), (suite.get("tests"), suite.get("errors")))
        with open(self.path("report.csv"), encoding="utf-8", newline="") as file:
            self.assertEqual(8, len({row["index"] for row in csv.DictReader(file)}))
        self.assertIn("1:CRASHED (SIGSEGV, execute", result.stdout)

    def test_a_batch_ends_with_all_verdicts(self):
        self.check_batch("--mode=C")

    def test_so_it_does_when_cases_only_run(self):
        self.check_batch("--mode=R")

    def test_measured_cases_run_in_workers_when_asked(self):
        result = self.run_program("--mode=CP", "--isolate=on", "--max-ms-per-prb=250", "--json=" + self.path("report.json"),
                                  self.batch(["ReLU", "Tanh", "Sigmoid"]), faults={"Tanh": "segv"})
        self.assertEqual(1, result.returncode)
        cases = self.report()["cases"]
        self.assertEqual(["PASSED", "CRASHED", "PASSED"], [case["status"] for case in cases])
        for case in (cases[0], cases[2]):
            part = case["partitions"][0]
            self.assertGreaterEqual(len(part["visits"]), 2)
            self.assertLessEqual(part["low_ns"], part["median_ns"])
            self.assertIn(part["stopped_by"], ("converged", "noisy", "budget"))

    def test_without_workers_a_crash_ends_the_run(self):
        result = self.run_program("--isolate=off", self.batch(["ReLU", "Tanh"]), faults={"Tanh": "abort"})
        self.assertEqual(-signal.SIGABRT, result.returncode)

    def test_verdicts_are_the_same_with_and_without(self):
        batch = self.batch(GOOD + ["Square"])
        lines = []
        for isolate in ("on", "off"):
            self.run_program("--isolate=" + isolate, "--blame=0", "--json=" + self.path("report.json"), batch,
                             faults={"Square": "wrong"})
            keys = ("index", "status", "reason", "digest", "errors", "compared", "mismatches", "messages", "repro")
            lines.append([[case[key] for key in keys] for case in self.report()["cases"]])
        self.assertEqual(lines[0], lines[1])

    def test_kernels_are_limited_case_by_case(self):
        """Each limit has a worker of its own, and none raises what the environment allows."""
        self.batch(["ReLU"])
        for limits, given, used in ((["baseline"], None, "baseline"), (["baseline", "machine", "baseline"], None, "baseline"),
                                    (["avx512"], "baseline", "baseline"), (["amx"], "baseline", "baseline")):
            with open(self.path("batch"), "w", encoding="utf-8") as file:
                file.writelines(f"--isa={limit} --case=ReLU.gbt\n" for limit in limits)
            environment = self.environment({})
            environment.pop("GB_MAX_ISA", None)
            environment.update({"GB_MAX_ISA": given} if given else {})
            subprocess.run([PROGRAM, "--isolate=off", "--json=" + self.path("report.json"), "--batch=" + self.path("batch")],
                           check=True, capture_output=True, env=environment, timeout=300)
            report = self.report()
            self.assertIn(used, report["environment"]["engine"])
            for limit, case in zip(limits, report["cases"]):
                self.assertEqual(limit != "machine", f"--isa={limit} " in case["repro"], case["repro"])

    def test_what_is_told_does_not_depend_on_the_number_of_workers(self):
        """Neither do the lines in front of verdicts, nor their order: the first case ends last."""
        kinds = ["Abs", *GOOD, "Tanh", "Square", "GELU", "Exp", *GOOD]
        told = []
        for jobs in (1, 3):
            result = self.run_program(f"--jobs={jobs}", "--case-timeout=5", "--json=" + self.path("report.json"), "--start=1",
                                      self.batch([GOOD[0], *kinds]), "--case=" + self.path("Square.gbt"),
                                      faults={"Abs": "loop", "Tanh": "segv", "Square": "wrong", "Exp": "abort"})
            keys = ("index", "status", "reason", "digest", "errors", "compared", "mismatches", "messages", "repro")
            lines = [re.sub(r" \(\d+ ms\)", "", line) for line in result.stdout.splitlines() if not line.startswith("total")]
            told.append((result.returncode, lines, result.stderr, [[case[key] for key in keys] for case in self.report()["cases"]]))
        self.assertEqual(told[0], told[1])
        self.assertIn("1:TIMEOUT (after 5 s", "".join(told[0][1]))

    def test_workers_that_lack_memory_together_take_turns(self):
        if b"libasan" in subprocess.run(["ldd", PROGRAM], capture_output=True, check=True).stdout:
            self.skipTest("a sanitizer takes more memory than the limit")
        begun = []
        for jobs in (1, 2):
            held = self.path(f"held{jobs}")
            environment = dict(self.environment({"Abs": "hold", "Exp": "hold"}), GB_TEST_HELD=held, OMP_STACKSIZE="1M")
            result = subprocess.run([PROGRAM, f"--jobs={jobs}", self.batch(["Abs", "Exp", "ReLU"])], capture_output=True, text=True,
                                    env=environment, timeout=300,
                                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30)))
            self.assertEqual(0, result.returncode, result.stdout + result.stderr)
            begun.append(os.path.getsize(held))
        self.assertEqual(begun[0] + 1, begun[1])  # a case begins once more

    def test_an_interrupted_run_tells_of_cases_behind_one_that_hangs(self):
        program = subprocess.Popen([PROGRAM, "--jobs=2", "--json=" + self.path("report.json"), self.batch(["Abs", "ReLU", "Square"])],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=self.environment({"Abs": "loop", "Square": "wrong"}))
        time.sleep(5)
        program.send_signal(signal.SIGTERM)
        printed, _ = program.communicate(timeout=60)
        self.assertEqual(["PASSED", "FAILED"], [case["status"] for case in self.report()["cases"]])
        self.assertRegex(printed, r"(?s)^1:PASSED.*exp:.*\n2:FAILED")

    def start_hanging(self):
        program = subprocess.Popen([PROGRAM, "--jobs=1", "--json=" + self.path("report.json"), self.batch(["ReLU", "Abs", "Tanh"])],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=self.environment({"Abs": "loop"}))
        self.assertIn("0:PASSED", program.stdout.readline())
        workers = []
        while not workers:
            with open(f"/proc/{program.pid}/task/{program.pid}/children", encoding="utf-8") as file:
                workers = file.read().split()
        return program, workers[0]

    def test_signals_leave_a_report_and_no_worker(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            program, worker = self.start_hanging()
            program.send_signal(number)
            program.communicate(timeout=60)
            self.assertEqual(128 + number, program.returncode)
            report = self.report()
            self.assertEqual("interrupted", report["ended"])
            self.assertEqual(["PASSED"], [case["status"] for case in report["cases"]])
            self.wait_for_end(worker)

    def test_a_worker_does_not_outlive_a_program_that_is_killed(self):
        program, worker = self.start_hanging()
        program.kill()
        program.communicate(timeout=60)
        self.wait_for_end(worker)

    def wait_for_end(self, pid):
        for _ in range(100):
            if not is_alive(pid):
                return
            time.sleep(0.1)
        self.fail("the worker lives on")


unittest.main(argv=sys.argv[:1])
