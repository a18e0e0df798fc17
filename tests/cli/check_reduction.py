"""Failures explain themselves: large graphs with a planted fault are reduced to a few ops, and the op, pattern or pass to blame is
named. Usage: check_reduction.py FAULTY_GRAPH_BENCH, the program of faulty_main.c"""
import glob
import json
import os
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile

PROGRAM = os.path.abspath(sys.argv[1])
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


def write_lines(path, *lines):
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(("graph engine=cpu fpmath=strict",) + lines) + "\n")


def write_npy(path, shape, values):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}f", *values))


def write_model(path):
    """tanh(linear(x, w)), as torch.export writes it, with elements of w that make those of the product large."""
    def tensor(name):
        return {"as_tensor": {"name": name}}

    def meta(*sizes):
        return {"dtype": 7, "sizes": [{"as_int": n} for n in sizes], "strides": [{"as_int": sizes[1]}, {"as_int": 1}]}

    def node(target, inputs, output):
        return {"target": f"torch.ops.aten.{target}.default", "outputs": [tensor(output)],
                "inputs": [{"name": name, "arg": tensor(value)} for name, value in inputs.items()]}

    graph = {"inputs": [tensor("x"), tensor("w")], "outputs": [tensor("z")], "sym_int_values": {},
             "nodes": [node("linear", {"input": "x", "weight": "w"}, "y"), node("tanh", {"self": "y"}, "z")],
             "tensor_values": {"x": meta(1, 4), "w": meta(2, 4), "y": meta(1, 2), "z": meta(1, 2)}}
    signature = {"input_specs": [{"user_input": {"arg": tensor("x")}},
                                 {"parameter": {"arg": {"name": "w"}, "parameter_name": "m.w"}}], "output_specs": []}
    weights = {"m.w": {"path_name": "weight_0", "is_param": True, "use_pickle": False,
                       "tensor_meta": dict(meta(2, 4), storage_offset={"as_int": 0})}}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("m/models/model.json", json.dumps({"graph_module": {"graph": graph, "signature": signature}}))
        archive.writestr("m/byteorder", "little")
        archive.writestr("m/data/weights/model_weights_config.json", json.dumps({"config": weights}))
        archive.writestr("m/data/weights/weight_0", struct.pack("<8f", *[1e6] * 8))


class Reduction(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.big, self.small = (os.path.join(self.dir.name, name) for name in ("big.gbt", "small.gbt"))

    def environment(self, fault, **variables):
        plain = {name + "_OPTIONS": os.environ.get(name + "_OPTIONS", "") + ":handle_segv=0:handle_abort=0"
                 for name in ("ASAN", "UBSAN", "TSAN")}
        return dict(os.environ, **plain, GB_TEST_FAULT=fault, **variables)

    def run_program(self, *arguments, fault, cwd=None, **variables):
        return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=300, cwd=cwd,
                              env=self.environment(fault, **variables))

    def run_command(self, folder, fault):
        """What the script in a folder prints, from elsewhere."""
        programs = os.path.join(self.dir.name, "bin")
        os.makedirs(programs, exist_ok=True)
        if not os.path.exists(programs + "/graph-bench"):
            os.symlink(PROGRAM, programs + "/graph-bench")
        return subprocess.run(["sh", os.path.join(folder, "command")], capture_output=True, text=True, timeout=300, cwd="/",
                              env=self.environment(fault, PATH=programs + ":" + os.environ["PATH"])).stdout

    def repro_folder(self, *arguments, fault, **others):
        """The folder of the one case, which fails."""
        folders = os.path.join(self.dir.name, "folders")
        result = self.run_program("--blame=0", "--repro-dir=" + folders, *arguments, fault=fault, **others)
        self.assertEqual(1, result.returncode, result.stdout + result.stderr)
        return re.search(r"(?m)^\[REPRO\] (.*)$", result.stdout)[1]

    def reduce(self, *arguments, fault, **others):
        """The ops that are left, and what the printed command prints."""
        result = self.run_program("reduce", *arguments, "-o", self.small, fault=fault, **others)
        self.assertEqual(0, result.returncode, result.stdout + result.stderr)
        again = self.run_program(*result.stdout.splitlines()[1].split()[1:], fault=fault)
        return self.small_ops(), again.stdout

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

    def test_a_graph_that_cannot_be_loaded_is_another_failure(self):
        write_lines(self.big, "0: %1:f32:4x8 = Abs(%0:f32:4x8)", "1: %2:f32:4x8 = Clamp(%1) min=-1.0 max=2.0")
        ops, again = self.reduce(f"--case={self.big}", fault="Clamp:fail")
        self.assertEqual(["Clamp"], ops)
        self.assertIn("0:UNTESTED_FAILED (Cannot run)", again)
        folder = self.repro_folder(f"--case={self.big}", fault="Clamp:fail")
        self.assertIn("the same failure: UNTESTED_FAILED (Cannot run)\n", self.run_program("repro", folder, fault="Clamp:fail").stdout)
        write_lines(os.path.join(folder, "graph.gbt"), "0: %1:f32:4x8 = Clamp(%0:f32:4x8) min=-1.0")
        self.assertIn("another failure: UNTESTED_FAILED (Cannot load graph), not UNTESTED_FAILED (Cannot run)",
                      self.run_program("repro", folder, fault="Clamp:fail").stdout)

    def test_models_keep_their_name_and_what_they_hold(self):
        model = os.path.join(self.dir.name, "model.pt2")
        write_model(model)
        folder = self.repro_folder("--policy=debug", "--case=" + model, fault="Tanh:large")
        self.assertIn("the same failure: FAILED", self.run_program("repro", folder, fault="Tanh:large").stdout)
        self.assertIn("0:FAILED", self.run_command(folder, "Tanh:large"))
        ops, again = self.reduce("--policy=debug", "--case=" + model, fault="Tanh:large")
        self.assertEqual(["Tanh"], ops)
        self.assertIn("0:FAILED", again)

    def test_loaded_tensors_are_found_from_anywhere_and_kept(self):
        write_lines(self.big, "0: %1:f32:2x4 = Abs(%0:f32:2x4)", "1: %2:f32:2x4 = Tanh(%1)", "2: %3:f32:2x4 = Sigmoid(%2)")
        data = os.path.join(self.dir.name, "data")
        os.mkdir(data)
        write_npy(data + "/in_0.f32.npy", (2, 4), [100] * 8)
        arguments = ["--policy=debug", "--load-tensors=data", f"--case={self.big}"]
        for fault, verdict in (("Tanh:large", "FAILED"), ("Abs:large", "FAILED")):
            folder = self.repro_folder(*arguments, fault=fault, cwd=self.dir.name)
            self.assertIn("0:" + verdict, self.run_command(folder, fault))
            self.assertIn("the same failure: " + verdict, self.run_program("repro", folder, fault=fault).stdout)
            ops, again = self.reduce(*arguments, fault=fault, cwd=self.dir.name)
            self.assertEqual([fault.split(":")[0]], ops)
            self.assertIn("0:" + verdict, again)
        self.assertEqual(["in_0.f32.npy"], os.listdir(data))

    def test_dims_get_small_where_the_layout_matters(self):
        for layout, small in (("4096x1x256x8", "1x2x2x1*4x1x2x2"), ("8192x512x32x1", "2x1x1x1*8192x512x32x1")):
            write_lines(self.big, f"0: %1:f32:4x8x16x32 = Abs(%0:f32:4x8x16x32*{layout})", "1: %2:f32:4x8x16x32 = Sigmoid(%1)")
            ops, again = self.reduce(f"--case={self.big}", fault="Abs:strided")
            self.assertEqual(["Abs"], ops)
            self.assertIn("0:FAILED", again)
            with open(self.small, encoding="utf-8") as file:
                self.assertIn(f"Abs(%0:f32:{small})", file.read())

    def test_limits_of_workers_stay(self):
        write_graph(self.big, 6, 4, {2: "Tanh"})
        for option, action, verdict in (("--case-timeout=1", "loop", "TIMEOUT"), ("--case-memory=200M", "memory", "OUT_OF_MEMORY"),
                                        ("--case-timeout=1", "segv", "CRASHED (SIGSEGV)")):
            fault = "Tanh:" + action
            folder = self.repro_folder("--isolate=on", option, f"--case={self.big}", fault=fault)
            self.assertIn("the same failure: " + verdict, self.run_program("repro", folder, fault=fault).stdout)
            self.assertIn("0:" + verdict.split(" ")[0], self.run_command(folder, fault))
            ops, again = self.reduce(option, f"--case={self.big}", fault=fault)
            self.assertEqual(["Tanh"], ops)
            self.assertIn("0:" + verdict.split(" ")[0], again)

    def test_the_command_has_the_variables_that_were_set(self):
        write_graph(self.big, 6, 4, {2: "Tanh"})
        folder = self.repro_folder(f"--case={self.big}", fault="Tanh:wrong", OMP_NUM_THREADS="1", GB_CHECK_MEMORY="on")
        with open(os.path.join(folder, "command"), encoding="utf-8") as file:
            self.assertRegex(file.read(), r"exec env OMP_NUM_THREADS='1' .*GB_CHECK_MEMORY='on' .*graph-bench --graph --case=graph.gbt\n")
        self.assertIn("0:FAILED", self.run_command(folder, "Tanh:wrong"))

    def interrupt(self, *arguments, fault, until):
        """Ends the program by a signal when `until` holds for the folder of its temporary files."""
        temporary = os.path.join(self.dir.name, "temporary")
        os.makedirs(temporary, exist_ok=True)
        with subprocess.Popen([PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=self.environment(fault, TMPDIR=temporary)) as process:
            while process.poll() is None and not until(temporary):
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=60)
        self.assertEqual(128 + signal.SIGINT, process.returncode, errors)
        self.assertEqual([], os.listdir(temporary))
        return output, errors

    def test_a_signal_leaves_the_smallest_graph_so_far(self):
        def was_cut(temporary):
            for path in glob.glob(temporary + "/*/candidate.json"):
                with open(path, encoding="utf-8") as file:
                    if 0 < file.read().count('"kind"') < 20:
                        return True
            return False

        write_graph(self.big, 6, 60, {41: "Tanh"})
        output, errors = self.interrupt("reduce", "--case-timeout=2", f"--case={self.big}", "-o", self.small,
                                        fault="Tanh:loop", until=was_cut)
        self.assertIn("the smallest graph so far", errors)
        self.assertRegex(output, "reduced: 60 ops to [0-9]+, TIMEOUT")
        self.assertIn("Tanh", self.small_ops())
        self.assertLess(len(self.small_ops()), 60)

    def test_a_signal_ends_random_graphs_with_the_summary(self):
        begin = time.monotonic()
        loops = ",".join(kind + ":loop" for kind in ("Add", "Multiply", "ReLU", "MatMul", "Convolution", "SoftMax", "Reorder", "TypeCast"))
        output, _ = self.interrupt("fuzz", "--time=0", "--repro-dir=" + self.dir.name + "/found", fault=loops,
                                   until=lambda _: time.monotonic() - begin > 2)
        self.assertIn("graphs:", output)
        self.assertFalse(os.path.exists(self.dir.name + "/found"))

    def test_temporary_files_lie_where_they_belong(self):
        write_graph(self.big, 6, 4, {2: "Tanh"})
        command = [PROGRAM, "reduce", "--case-timeout=1", f"--case={self.big}", "-o", self.small]
        seen = set()
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=self.environment("Tanh:loop", TMPDIR="")) as process:
            while process.poll() is None:
                seen |= set(glob.glob("/graph-bench-*"))
                time.sleep(0.02)
        self.assertEqual((0, set()), (process.returncode, seen))

    def fuzz(self, *arguments, fault, **others):
        folder = os.path.join(self.dir.name, "found")
        result = self.run_program("fuzz", "--time=0", "--repro-dir=" + folder, *arguments, fault=fault, **others)
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

    def test_runs_of_random_graphs_share_a_folder(self):
        found = os.path.join(self.dir.name, "found")
        runs = [subprocess.Popen([PROGRAM, "fuzz", "--time=0", "--graphs=60", f"--seed={seed}", "--repro-dir=" + found],
                                 stdout=subprocess.PIPE, text=True, env=self.environment("")) for seed in (1, 2)]
        for run in runs:
            output = run.communicate(timeout=300)[0]
            self.assertEqual((0, 0), (run.returncode, output.count("finding in")), output)
        os.makedirs(found, exist_ok=True)
        graphs = []
        for seed in (1, 2):
            output = self.fuzz("--graphs=20", f"--seed={seed}", fault="MatMul:wrong,ReLU:wrong,Add:wrong")[1]
            findings, repeated = (int(re.search(word + r":(\d+)", output)[1]) for word in ("findings", "repeated"))
            self.assertTrue(findings > 0 and repeated > 0, output)
            graphs.append({os.path.basename(path) for path in re.findall(r"(?m)--case=(.*\.gbt)$", output)})
            self.assertEqual(findings, len(graphs[-1]))
        self.assertEqual(set(), graphs[0] & graphs[1])
        self.assertEqual(graphs[0] | graphs[1], {name for name in os.listdir(found) if name.startswith("graph")})

    def test_an_empty_folder_for_findings_stays(self):
        found = os.path.join(self.dir.name, "found")
        os.mkdir(found)
        self.assertEqual(0, self.fuzz("--graphs=2", fault="")[0].returncode)
        self.assertEqual([], os.listdir(found))
        os.rmdir(found)
        with open(found, "w", encoding="utf-8"):
            self.assertEqual(3, self.fuzz("--graphs=2", fault="")[0].returncode)

    def test_findings_have_the_data_that_they_need(self):
        for name in ("pattern", "complex_fusion", "text", "excite"):  # near misses are made from the graphs there
            os.mkdir(os.path.join(self.dir.name, name))
            with open(os.path.join(self.dir.name, name, "ci"), "w", encoding="utf-8"):
                pass
        write_lines(os.path.join(self.dir.name, "pattern", "chain.gbt"), "0: %1:f32:8x8 = Add(%0:f32:8x8, %0)",
                    *(f"{i}: %{i + 1}:f32:8x8 = Add(%{i}, %{i})" for i in range(1, 12)), "12: %13:f32:8x8 = MatMul(%12, %14:f32:8x8)")
        output = self.fuzz("--graphs=40", "--seed=1", fault="MatMul:large", cwd=self.dir.name)[1]
        loaded = 0
        for folder in re.findall(r"(?m)^\[REPRO\] (.*)$", output):
            self.assertIn("the same failure: FAILED", self.run_program("repro", folder, fault="MatMul:large").stdout)
            with open(os.path.join(folder, "repro.json"), encoding="utf-8") as file:
                loaded += "--load-tensors=" in file.read()
        self.assertGreater(loaded, 0, output)

    def test_random_graphs_are_right_without_a_fault(self):
        result, output, folder = self.fuzz("--graphs=40", "--seed=1", fault="")
        self.assertEqual((0, 0), (result.returncode, output.count("finding in")), output)
        near_misses = int(re.search(r"graphs:40 near-misses:(\d+) ", output)[1])
        self.assertTrue(4 <= near_misses <= 20, output)
        self.assertFalse(os.path.exists(folder))
        for wrong in (["--time=soon"], ["--engine=abacus"], ["--against=abacus"], ["--against=gpu:99"], ["a.gbt"], ["--graphs=-1"],
                      ["--elements=0"], ["--elements=2e9"], ["--elements=100.5"], ["--graphs=0.5"], ["--graphs=1e1"]):
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

    def test_what_cannot_be_read_or_written_is_told_from_what_does_not_fail(self):
        write_graph(self.big, 8, 5, {2: "Tanh"})
        for small, status in ((self.dir.name, 2), (os.path.join(self.dir.name, "none", "small.gbt"), 2), ("/dev/full", 3)):
            result = self.run_program("reduce", f"--case={self.big}", "-o", small, fault="Tanh:wrong")
            self.assertEqual((status, ""), (result.returncode, result.stdout), result.stderr)
            self.assertRegex(result.stderr, f"reduce: {small}:? cannot be written")
        result = self.run_program("reduce", f"--case={self.dir.name}/none.json", "-o", self.small, fault="")
        self.assertEqual(2, result.returncode, result.stderr)
        self.assertIn("none.json", result.stderr)

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
