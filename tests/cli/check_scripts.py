"""Scripts that compare with other programs. Drivers are doubles whose times are known; what becomes of graphs in ONNX is compared with
graph-bench where onnx and onnxruntime are installed. Usage: check_scripts.py GRAPH_BENCH INPUTS_DIR; GB_PYTHON names another Python."""
import importlib.util
import json
import os
import stat
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

if os.environ.get("GB_PYTHON") and not os.environ.get("GB_PYTHON_FOUND"):
    os.environ["GB_PYTHON_FOUND"] = "1"
    os.execvp(os.environ["GB_PYTHON"], [os.environ["GB_PYTHON"], *sys.argv])

PROGRAM, INPUTS = sys.argv[1], sys.argv[2]
SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts")
MISSING = [name for name in ("numpy", "onnx", "onnxruntime") if not importlib.util.find_spec(name)]
NO_TORCH = [name for name in ("numpy", "onnx", "torch") if not importlib.util.find_spec(name)]
sys.path.insert(0, SCRIPTS)

DRIVER = """#!%s
import sys
case = sys.argv[-1].rsplit("=", 1)[1]
if case == "bad.json":
    print("0:UNIMPLEMENTED (Case not supported) __REPRO: " + case)
else:
    print(f"perf,cpu,--mode=P --graph --case={case},{%g * (2 if case == 'b.json' else 1)},9")
"""


class Scripts(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)

    def path(self, name):
        return os.path.join(self.dir.name, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name), stat.S_IRWXU)
        return self.path(name)

    def script(self, name, *arguments):
        return subprocess.run([sys.executable, os.path.join(SCRIPTS, name), *arguments], capture_output=True, text=True)


class Drivers(Scripts):
    def setUp(self):
        super().setUp()
        self.sides = [self.write("ours", DRIVER % (sys.executable, 1)), self.write("peer", DRIVER % (sys.executable, 3))]

    def test_ratios_and_their_mean(self):
        cases = self.write("list", "# no case\n1\tfirst\t--case=a.json\n2\tno\t--case=bad.json\n--dt=bf16 --case=b.json\n")
        done = self.script("compare_drivers.py", "--blocks=2", f"--json={self.path('rows')}", f"--plot={self.path('plot')}", *self.sides, cases)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertRegex(done.stdout, r"1\.0000 +3\.0000  3\.00 \(3\.00 to 3\.00\) +1 first\n")
        self.assertRegex(done.stdout, r"skipped: (?:ours|peer): 0:UNIMPLEMENTED \(Case not supported\).*2 no\n")
        self.assertRegex(done.stdout, r"2\.0000 +6\.0000  3\.00 .* b\.json\n")
        self.assertIn("geometric mean 3.00 (3.00 to 3.00) of 2 cases, 0 below 1, 1 skipped", done.stdout)
        with open(self.path("rows"), encoding="utf-8") as file:
            rows = json.load(file)
        self.assertEqual([["--case=a.json"], ["--dt=bf16", "--case=b.json"]], [row["options"] for row in rows])
        for ratio in rows[0]["ratios"]:
            self.assertAlmostEqual(3, ratio)
        with open(self.path("plot"), encoding="utf-8") as file:
            drawn = [text.text for text in xml.etree.ElementTree.parse(file).iter("{http://www.w3.org/2000/svg}title")]
        self.assertEqual(["1 first", "3.00 (3.00 to 3.00)", "b.json", "3.00 (3.00 to 3.00)"], drawn)

    def test_exit_status(self):
        one = ["--blocks=1", *self.sides, "--", "--case=a.json"]
        self.assertEqual(0, self.script("compare_drivers.py", "--at-least=2.9", *one).returncode)
        self.assertEqual(1, self.script("compare_drivers.py", "--at-least=3.1", *one).returncode)
        self.assertEqual(1, self.script("compare_drivers.py", "--blocks=1", *self.sides, "--", "--case=bad.json").returncode)
        self.assertEqual(2, self.script("compare_drivers.py", self.sides[0], self.path("none"), "--", "--case=a.json").returncode)

    def test_intervals(self):
        import paired
        self.assertEqual((2.5, 2), (paired.median([1, 2, 3, 4]), paired.median([3, 1, 2])))
        logs = [0.1, 0.2, 0.3]
        self.assertEqual([1.22, 1.11, 1.35], [round(value, 2) for value in paired.ratio(logs)])  # few: their range
        middle, low, high = paired.ratio([0.01 * (i % 7) for i in range(40)])
        self.assertTrue(1 < low <= middle <= high < 1.06)
        mean, low, high = paired.geometric_mean([[0.0] * 5, [2.0] * 5])
        self.assertEqual([2.72] * 3, [round(value, 2) for value in (mean, low, high)])


class Runtimes(Scripts):
    @unittest.skipIf(MISSING, f"{sys.executable} has no {', no '.join(MISSING)}")
    def test_graphs_in_onnx_compute_the_same(self):
        import graph_to_onnx
        import numpy
        import onnxruntime
        models = [f"model/{name}_small_f32.json" for name in ("bert_base", "llama_decode", "llama_prefill", "resnet50", "unet")]
        ops = [f"op/{name}.json" for name in ("avgpool", "batchnorminference", "clamp", "concat", "convolution", "dequantize_channels", "gelu",
                                               "groupnorm", "interpolate", "matmul", "maxpool", "pow", "quantize", "reducesum_axes", "rmsnorm",
                                               "select", "softmax", "softplus", "squareddifference", "statictranspose")]
        for case in models + ops:
            with tempfile.TemporaryDirectory() as folder:
                graph, model = os.path.join(folder, "graph.json"), os.path.join(folder, "model.onnx")
                subprocess.run([PROGRAM, f"--input-dir={INPUTS}", "--mode=R", f"--save-tensors={folder}", f"--save-graph={graph}",
                                f"--case={case}"], check=True, capture_output=True)
                given, results = graph_to_onnx.write(graph, folder, model)
                session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
                found = session.run(None, {f"t{tensor['id']}": graph_to_onnx.load(folder, tensor) for tensor in given})
                self.assertGreater(len(results), 0)
                for tensor, got in zip(results, found):
                    expected = graph_to_onnx.load(folder, tensor, "out").astype(float)
                    error = numpy.abs(got.astype(float) - expected).max() / numpy.abs(expected).max()
                    self.assertLess(error, 1e-5, case)

    @unittest.skipIf(NO_TORCH, f"{sys.executable} has no {', no '.join(NO_TORCH)}")
    def test_models_for_torch_give_what_ours_do(self):
        import graph_to_onnx
        import numpy
        import onnx_to_torch
        import torch
        for name in ("bert_base", "llama_decode", "llama_prefill", "resnet50", "unet"):
            with tempfile.TemporaryDirectory() as folder:
                graph, model = os.path.join(folder, "graph.json"), os.path.join(folder, "model.onnx")
                subprocess.run([PROGRAM, f"--input-dir={INPUTS}", "--mode=R", f"--save-tensors={folder}", f"--save-graph={graph}",
                                f"--case=model/{name}_small_f32.json"], check=True, capture_output=True)
                given, results = graph_to_onnx.write(graph, folder, model)
                inputs = {f"t{tensor['id']}": graph_to_onnx.load(folder, tensor) for tensor in given}
                module = onnx_to_torch.Module(model).eval()
                with torch.no_grad():
                    found = dict(zip(module.results, module(*[torch.from_numpy(inputs[own]) for own in module.names])))
                for tensor in results:
                    expected = graph_to_onnx.load(folder, tensor, "out").astype(float)
                    error = numpy.abs(found[f"t{tensor['id']}"].numpy() - expected).max() / numpy.abs(expected).max()
                    self.assertLess(error, 1e-5, name)

    @unittest.skipIf(MISSING, f"{sys.executable} has no {', no '.join(MISSING)}")
    def test_what_cannot_be_converted_is_named(self):
        done = self.script("compare_runtimes.py", f"--program={PROGRAM}", "--peers=onnxruntime", "--rounds=1", "--ms=5",
                           os.path.join(INPUTS, "op/prelu.json"), os.path.join(INPUTS, "model/bert_base_small_f32.json"))
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"(?m)^skipped: .*prelu\.json: not converted: PReLU$")
        self.assertRegex(done.stdout, r"(?m)^\| bert_base_small_f32\.json \| [\d.]+ \| [\d.]+: [\d.]+ \(.*\) \|$")
        self.assertIn("of 1 graphs", done.stdout)

    @unittest.skipIf(MISSING, f"{sys.executable} has no {', no '.join(MISSING)}")
    def test_a_second_opinion(self):
        folder = self.path("kept")
        cases = [f"--input-dir={INPUTS}", "--case=op/matmul.json", "--case=pattern/conv_bias_relu.json", "--case=op/prelu.json"]
        done = self.script("crosscheck.py", f"--program={PROGRAM}", f"--keep={folder}", *cases)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.assertIn("     1  not converted: PReLU\n", done.stdout)
        self.assertIn("cases:3 compared:2 agree:2 outside:0", done.stdout)
        # A result that is off by more than the bounds, as the batch that the script leaves finds it.
        import numpy
        result = [name for name in os.listdir(os.path.join(folder, "0/other"))][0]
        values = numpy.load(os.path.join(folder, "0/other", result))
        values.flat[1] += 0.01
        numpy.save(os.path.join(folder, "0/other", result), values)
        again = subprocess.run([PROGRAM, "--mode=C", f"--batch={os.path.join(folder, 'batch')}"], capture_output=True, text=True)
        self.assertRegex(again.stdout, r"(?m)^0:FAILED")
        self.assertIn("passed:1", again.stdout)
        self.assertEqual(2, self.script("crosscheck.py", f"--program={PROGRAM}").returncode)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
