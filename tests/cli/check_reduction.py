"""Failures explain themselves: large graphs with a planted fault are reduced to a few ops, and the op, pattern or pass to blame is
named. Usage: check_reduction.py FAULTY_GRAPH_BENCH, the program of faulty_main.c"""
import os
import random
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv[1]
UNARY = ["ReLU", "Sigmoid", "HardSwish", "Abs"]


def write_graph(path, seed, n_ops, special):
    """A chain with branches of element-wise ops and products whose values stay near 1; `special` maps places to kinds."""
    chance = random.Random(seed)
    lines = ["graph engine=cpu fpmath=strict"]
    for i in range(n_ops):
        kind = special.get(i) or chance.choice(UNARY + ["Add", "MatMul", "Sigmoid"])
        straight = i < 2 or {i - 1, i} & special.keys() or chance.random() < 0.7
        source = i if straight else i - chance.randrange(2)
        inputs = [f"%{source}" + (":f32:16x32" if source == 0 else "")]
        if kind in ("Add", "Multiply"):
            inputs.append(f"%{i}" + (":f32:16x32" if i == 0 else ""))
        elif kind == "MatMul":
            inputs.append(f"%{1000 + i}:f32:32x32:constant")
        lines.append(f"{i}: %{i + 1}:f32:16x32 = {kind}({', '.join(inputs)})")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


class Reduction(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.big, self.small = (os.path.join(self.dir.name, name) for name in ("big.gbt", "small.gbt"))

    def run_program(self, *arguments, fault):
        plain = {name + "_OPTIONS": os.environ.get(name + "_OPTIONS", "") + ":handle_segv=0:handle_abort=0"
                 for name in ("ASAN", "UBSAN", "TSAN")}
        return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=300,
                              env=dict(os.environ, **plain, GB_TEST_FAULT=fault))

    def small_ops(self):
        with open(self.small, encoding="utf-8") as file:
            return re.findall(r" = (\w+)\(", file.read())

    def check(self, seed, n_ops, special, fault, kinds, verdict):
        write_graph(self.big, seed, n_ops, special)
        result = self.run_program("reduce", f"--case={self.big}", "-o", self.small, fault=fault)
        self.assertEqual(0, result.returncode, result.stdout + result.stderr)
        self.assertIn(f"reduced: {n_ops} ops to {len(kinds)}, {verdict}", result.stdout)
        self.assertEqual(sorted(kinds), sorted(self.small_ops()))
        arguments = result.stdout.splitlines()[1].split()[1:]
        again = self.run_program("--isolate=on", "--blame=0", *arguments, fault=fault)
        self.assertEqual(1, again.returncode, again.stdout)
        self.assertIn("0:" + verdict.split(" ")[0], again.stdout)

    def test_one_wrong_op_is_left(self):
        for seed, n_ops in ((1, 30), (2, 77), (3, 150)):
            self.check(seed, n_ops, {n_ops // 2: "Tanh"}, "Tanh:wrong", ["Tanh"], "FAILED")

    def test_one_crashing_op_is_left(self):
        for action, number in (("segv", "SIGSEGV"), ("abort", "SIGABRT")):
            self.check(4, 60, {33: "Tanh"}, "Tanh:" + action, ["Tanh"], f"CRASHED ({number})")

    def test_a_wrong_pattern_stays_as_small_as_it_can_be(self):
        self.check(5, 60, {20: "MatMul", 21: "Tanh", 22: "Square"}, "MatMul+Square:wrong", ["MatMul", "Square"], "FAILED")

    def test_a_hang_is_reduced(self):
        write_graph(self.big, 6, 6, {3: "Tanh"})
        result = self.run_program("reduce", "--case-timeout=1", f"--case={self.big}", "-o", self.small, fault="Tanh:loop")
        self.assertIn("TIMEOUT", result.stdout)
        self.assertEqual(["Tanh"], self.small_ops())

    def test_sizes_get_small_and_the_same_case_gives_the_same_graph(self):
        graphs = []
        for _ in range(2):
            self.check(7, 40, {11: "Tanh"}, "Tanh:wrong", ["Tanh"], "FAILED")
            with open(self.small, encoding="utf-8") as file:
                graphs.append(file.read())
        self.assertEqual(graphs[0], graphs[1])
        self.assertIn(":f32:1x1 = Tanh", graphs[0])

    def test_values_that_a_failure_needs_are_kept(self):
        lines = ["graph engine=cpu fpmath=strict", "0: %1:f32:4x8 = Add(%0:f32:4x8, %0)"]
        lines += [f"{i}: %{i + 1}:f32:4x8 = Add(%{i}, %{i})" for i in range(1, 12)] + ["12: %13:f32:4x8 = Tanh(%12)"]
        with open(self.big, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        result = self.run_program("reduce", "--policy=debug", f"--case={self.big}", "-o", self.small, fault="Tanh:large")
        self.assertIn("reduced: 13 ops to 1, FAILED", result.stdout)
        self.assertEqual(["in_12.f32.npy"], os.listdir(self.small + ".tensors"))
        again = self.run_program(*result.stdout.splitlines()[1].split()[1:], fault="Tanh:large")
        self.assertIn("0:FAILED", again.stdout)

    def test_a_folder_shows_the_failure_again(self):
        folders = os.path.join(self.dir.name, "folders")
        write_graph(self.big, 14, 12, {5: "Tanh"})
        batch = os.path.join(self.dir.name, "batch")
        with open(batch, "w", encoding="utf-8") as file:
            file.write(f"--reset --expected-n-partitions=0 --mb=,4 --case={self.big}\n")
        for action, verdict in (("wrong", "FAILED at tensor"), ("segv", "CRASHED (SIGSEGV)")):
            result = self.run_program("--seed=3", "--blame=0", f"--repro-dir={folders}", f"--batch={batch}", fault="Tanh:" + action)
            self.assertEqual(1, result.returncode)
            paths = re.findall(r"(?m)^\[REPRO\] (.*)$", result.stdout)
            self.assertEqual([f"{folders}/000{i}-{verdict.split(' ')[0]}-big" for i in (0, 1)], paths)
            for path in paths:
                tensors = {"tensors"} if action == "wrong" else set()
                self.assertEqual({"graph.gbt", "rewritten.json", "repro.json", "command"} | tensors, set(os.listdir(path)))
                again = self.run_program("repro", path, fault="Tanh:" + action)
                self.assertIn("the same failure: " + verdict, again.stdout)
                self.assertEqual(1, again.returncode)
                self.assertIn("no failure: PASSED, not " + verdict, self.run_program("repro", path, fault="").stdout)
                self.assertIn("another failure: CRASHED (SIGABRT)", self.run_program("repro", path, fault="Tanh:abort").stdout)
        with open(os.path.join(paths[1], "rewritten.json"), encoding="utf-8") as file:
            self.assertIn("[4, 32]", file.read())  # of --mb
        self.assertEqual(2, self.run_program("repro", folders, fault="").returncode)

    def fuzz(self, *arguments, fault):
        folder = os.path.join(self.dir.name, "found")
        result = self.run_program("fuzz", "--time=0", "--repro-dir=" + folder, *arguments, fault=fault)
        return result, re.sub(r" \([0-9]+ graphs per second\)", "", result.stdout), folder

    def test_random_graphs_find_a_fault_and_the_same_seed_finds_the_same(self):
        outputs = []
        for _ in range(2):
            result, output, folder = self.fuzz("--graphs=80", "--seed=5", fault="Tanh:wrong,Exp:segv")
            self.assertEqual(1, result.returncode, result.stderr)
            self.assertRegex(output, r"finding in graph \d+: FAILED: Tanh\n")
            self.assertRegex(output, r"finding in graph \d+: CRASHED \(SIGSEGV\): Exp\n")
            self.assertIn("graphs:80 ", output)
            outputs.append(output)
        self.assertEqual(outputs[0], outputs[1])
        for path in re.findall(r"(?m)^\[REPRO\] (.*)$", outputs[0]):
            again = self.run_program("repro", path, fault="Tanh:wrong,Exp:segv")
            self.assertIn("the same failure: ", again.stdout)
        self.assertNotEqual(outputs[0], self.fuzz("--graphs=80", "--seed=6", fault="Tanh:wrong,Exp:segv")[1])

    def test_random_graphs_are_right_without_a_fault(self):
        result, output, folder = self.fuzz("--graphs=40", "--seed=1", fault="")
        self.assertEqual((0, 0), (result.returncode, output.count("finding in")), output)
        near_misses = int(re.search(r"graphs:40 near-misses:(\d+) ", output)[1])
        self.assertTrue(4 <= near_misses <= 20, output)
        self.assertFalse(os.path.exists(folder))
        for wrong in (["--time=soon"], ["--engine=abacus"], ["--against=abacus"], ["--against=gpu:99"], ["a.gbt"], ["--graphs=-1"],
                      ["--elements=0"], ["--elements=2e9"]):
            self.assertEqual(2, self.fuzz(*wrong, fault="")[0].returncode)

    def test_random_graphs_of_long_tensors_find_faults_too(self):
        graphs = "--graphs=150"  # enough whatever graphs of the project the near misses are made of
        small = self.fuzz(graphs, "--seed=6", fault="Tanh:wrong,Exp:segv")[1]
        found = [self.fuzz(graphs, "--seed=6", "--elements=200000", fault="Tanh:wrong,Exp:segv")[1] for _ in range(2)]
        self.assertRegex(found[0], r"finding in graph \d+: CRASHED \(SIGSEGV\): Exp\n")
        self.assertEqual(*found)
        self.assertNotEqual(small, found[0])
        result, output, _ = self.fuzz("--graphs=30", "--seed=1", "--elements=200000", fault="")
        self.assertEqual((0, 0), (result.returncode, output.count("finding in")), output)

    def test_random_graphs_run_on_another_engine_too(self):
        cases = []
        for against in ("none", "cpu"):
            result, output, folder = self.fuzz("--graphs=12", "--seed=1", "--against=" + against, fault="")
            self.assertEqual(0, result.returncode, output)
            cases.append(int(re.search(r"cases:(\d+) ", output)[1]))
        self.assertEqual(12, cases[1] - cases[0])

    def test_what_does_not_fail_is_not_reduced(self):
        write_graph(self.big, 8, 5, {})
        result = self.run_program("reduce", f"--case={self.big}", "-o", self.small, fault="Tanh:wrong")
        self.assertEqual(1, result.returncode)
        self.assertIn("does not fail", result.stderr)
        self.assertFalse(os.path.exists(self.small))
        for wrong in ([], [f"--case={self.big}"], ["-o", self.small], [f"--case={self.big}", "--mb=1,2", "-o", self.small]):
            self.assertEqual(2, self.run_program("reduce", *wrong, fault="").returncode)

    def blame(self, fault):
        result = self.run_program("--expected-n-partitions=0", f"--case={self.big}", fault=fault)
        self.assertEqual(1, result.returncode, result.stdout)
        return re.search(r"(?m)^\[BLAME\] (.*)$", result.stdout)[1]

    def test_blame_names_the_op(self):
        for seed, place in ((9, 12), (10, 25), (11, 3)):
            write_graph(self.big, seed, 30, {place: "Tanh"})
            self.assertRegex(self.blame("Tanh:wrong"), rf"^op {place} Tanh is wrong alone \(.*tensor {place + 1}\[0\]")

    def test_blame_names_the_pass(self):
        write_graph(self.big, 12, 30, {7: "MatMul", 8: "Square"})
        for name in ("views", "layouts", "hoist_elementwise"):
            self.assertTrue(self.blame("MatMul+Square:wrong@" + name).startswith(f"right without the pass {name}:"))

    def test_blame_names_the_pattern(self):
        write_graph(self.big, 13, 30, {7: "MatMul", 8: "Square"})
        self.assertRegex(self.blame("MatMul+Square:wrong"), r"^right op by op; partition \d+, MatMul\+Square.*, pattern \w+, kernels")


unittest.main(argv=sys.argv[:1])
