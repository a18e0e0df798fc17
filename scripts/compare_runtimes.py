#!/usr/bin/env python3
"""Whole graphs on graph-bench, ONNX Runtime, OpenVINO and torch.compile: the same data, outputs bound ahead and compared with ours,
times taken in turn. A table of medians, the ratio PEER / OURS with its interval, and the geometric mean of BEST PEER / OURS.

Each peer is a process of its own that loads the model once and waits between its turns. Ours is the time end to end (docs/timing.md) of a
process in each turn. The peers are Python packages (onnxruntime, openvino, torch; all need onnx and numpy); those that are missing are
skipped, as are graphs that scripts/graph_to_onnx.py or scripts/onnx_to_torch.py cannot convert, aloud.

Graphs of bf16 are not converted. With --bf16 files are named NAME_bf16.json, and OpenVINO alone gets NAME_f32.json, which lies beside
them, to compute in bf16. Its outputs are compared with ours of f32: that takes a larger --tolerance, as 0.1."""
import argparse
import importlib.util
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time

import paired

PEERS = ("onnxruntime", "openvino", "torch")


# ---- the process of a peer ----

class OnnxRuntime:
    def __init__(self, model, threads, precision, inputs, outputs):
        import onnxruntime as ort
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 3
        self.session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.binding, self.kept = self.session.io_binding(), []
        for name, values in inputs.items():
            self.kept.append(ort.OrtValue.ortvalue_from_numpy(values))
            self.binding.bind_ortvalue_input(name, self.kept[-1])
        self.outputs = {name: ort.OrtValue.ortvalue_from_shape_and_type(list(values.shape), values.dtype) for name, values in outputs.items()}
        for name, value in self.outputs.items():
            self.binding.bind_ortvalue_output(name, value)

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def result(self, name):
        return self.outputs[name].numpy()


class OpenVino:
    def __init__(self, model, threads, precision, inputs, outputs):
        import numpy
        import openvino
        core = openvino.Core()
        compiled = core.compile_model(core.read_model(model), "CPU", {
            "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": precision})
        self.request = compiled.create_infer_request()
        self.inputs, self.outputs = inputs, {name: numpy.empty_like(values) for name, values in outputs.items()}
        for name, values in self.inputs.items():
            self.request.set_tensor(name, openvino.Tensor(values, shared_memory=True))
        for name, values in self.outputs.items():
            self.request.set_tensor(name, openvino.Tensor(values, shared_memory=True))

    def run(self):
        self.request.start_async()
        self.request.wait()

    def result(self, name):
        return self.outputs[name]


class TorchCompile:
    """PyTorch's default compiler, which takes weights for constants as the other runtimes do."""
    def __init__(self, model, threads, precision, inputs, outputs):
        import onnx_to_torch
        import torch
        import torch._inductor.config
        torch.set_num_threads(threads)
        torch._inductor.config.freezing = True
        module = onnx_to_torch.Module(model).eval()
        self.torch, self.outputs, self.compiled = torch, {name: None for name in module.results}, torch.compile(module)
        self.inputs = [torch.from_numpy(inputs[name]) for name in module.names]

    def run(self):
        with self.torch.no_grad():
            self.outputs.update(zip(self.outputs, self.compiled(*self.inputs)))

    def result(self, name):
        return self.outputs[name].numpy()


def largest_error(got, expected):
    """Relative to the largest value of the tensor."""
    import numpy
    got, expected = got.astype(numpy.float64), expected.astype(numpy.float64)
    if got.shape != expected.shape or not numpy.array_equal(numpy.isfinite(got), numpy.isfinite(expected)):
        return math.inf
    finite = numpy.isfinite(expected)
    scale = numpy.abs(expected[finite]).max(initial=0)
    return float(numpy.abs(got[finite] - expected[finite]).max(initial=0) / scale) if scale else float(numpy.abs(got[finite]).max(initial=0))


def take_samples(run, ms):
    """Median of the calls within so many milliseconds (at least three), behind two to warm up."""
    run(), run()
    samples, end = [], time.perf_counter_ns() + ms * 1000000
    while len(samples) < 3 or time.perf_counter_ns() < end:
        begin = time.perf_counter_ns()
        run()
        samples.append(time.perf_counter_ns() - begin)
    return paired.median(samples)


def serve(peer, folder, threads, precision):
    """A line for what was loaded, then one for each number of milliseconds that is asked for."""
    import graph_to_onnx
    with open(os.path.join(folder, "ports.json"), encoding="utf-8") as file:
        given, results = json.load(file)
    inputs = {f"t{t['id']}": graph_to_onnx.load(folder, t) for t in given}
    outputs = {f"t{t['id']}": graph_to_onnx.load(folder, t, "out") for t in results}
    try:
        made = {"onnxruntime": OnnxRuntime, "openvino": OpenVino, "torch": TorchCompile}[peer](os.path.join(folder, "model.onnx"), threads, precision, inputs, outputs)
        made.run()
        print(json.dumps({"error": max(largest_error(made.result(name), values) for name, values in outputs.items())}), flush=True)
    except Exception as error:  # whatever a runtime raises is why it is left out
        print(json.dumps({"failed": str(error).strip().splitlines()[-1][:200]}), flush=True)
        return
    for line in sys.stdin:
        print(take_samples(made.run, int(line)), flush=True)


# ---- all of them in turn ----

class Peer:
    def __init__(self, name, folder, threads, precision):
        environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
        self.process = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--serve", name, folder, str(threads), precision], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
        said = self.process.stdout.readline()
        self.loaded = json.loads(said) if said else {"failed": "it ended while it loaded the model"}

    def measure(self, ms):
        self.process.stdin.write(f"{ms}\n")
        self.process.stdin.flush()
        said = self.process.stdout.readline()
        if not said:
            raise RuntimeError("a peer ended")
        return float(said)

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def ours(arguments, case, *options):
    environment = dict(os.environ, OMP_NUM_THREADS=str(arguments.threads))
    command = [arguments.program, f"--threads={arguments.threads}", "--expected-n-partitions=0", *arguments.option, *options, f"--case={case}"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise RuntimeError((done.stdout + done.stderr).strip().splitlines()[0][:200])


def measure_ours(arguments, case, folder):
    report = os.path.join(folder, "report.json")
    ours(arguments, case, "--mode=P", "--visits=1", f"--max-ms-per-prb={2 * arguments.ms}", f"--json={report}")
    with open(report, encoding="utf-8") as file:
        record = json.load(file)["cases"][0]
    return (record["end_to_end"] or record["partitions"][0])["median_ns"]


def prepare(arguments, case, folder):
    """Data and results of ours, and the model for the peers."""
    import graph_to_onnx
    if arguments.bf16:
        case = case.removesuffix("_bf16.json") + "_f32.json"
    graph = os.path.join(folder, "graph.json")
    ours(arguments, case, "--mode=R", f"--save-tensors={folder}", f"--save-graph={graph}")
    ports = graph_to_onnx.write(graph, folder, os.path.join(folder, "model.onnx"))
    with open(os.path.join(folder, "ports.json"), "w", encoding="utf-8") as file:
        json.dump(ports, file)


def open_peers(arguments, case, folder):
    peers = {}
    for name in arguments.peers:
        peer = Peer(name, folder, arguments.threads, "bf16" if arguments.bf16 else "f32")
        why = peer.loaded.get("failed")
        if not why and not peer.loaded["error"] <= arguments.tolerance:
            why = f"its outputs differ from ours by {peer.loaded['error']:.2g} of the largest value"
        if why:
            print(f"skipped: {name} on {case}: {why}", flush=True)
            peer.close()
        else:
            peers[name] = peer
    return peers


def run_case(arguments, case, folder, chance):
    """Times by side, a list of nanoseconds each."""
    prepare(arguments, case, folder)
    peers = open_peers(arguments, case, folder)
    try:
        times = {name: [] for name in ("ours", *peers)}
        for _ in range(arguments.rounds if peers else 0):
            order = list(times)
            chance.shuffle(order)
            for name in order:
                times[name].append(peers[name].measure(arguments.ms) if name in peers else measure_ours(arguments, case, folder))
    finally:
        for peer in peers.values():
            peer.close()
    return times, {name: peer.loaded["error"] for name, peer in peers.items()}


def tell(arguments, case, times):
    """A row of the table; logarithms of BEST PEER / OURS by round, and the ratios of all peers."""
    peers = [name for name in times if name != "ours"]
    logs = {name: [math.log(theirs / own) for theirs, own in zip(times[name], times["ours"])] for name in peers}
    best = min(peers, key=lambda name: paired.median(logs[name]))
    cells = [f"{paired.median(times['ours']) * 1e-6:.3f}"]
    for name in arguments.peers:
        cells.append(f"{paired.median(times[name]) * 1e-6:.3f}: {paired.text(paired.ratio(logs[name]))}" if name in times else "skipped")
    print(f"| {os.path.basename(case)} | {' | '.join(cells)} |", flush=True)
    return logs[best], {name: paired.ratio(logs[name]) for name in peers}


def missing_packages(names):
    return [name for name in names if not importlib.util.find_spec(name)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("cases", nargs="+", metavar="FILE", help="graphs, as for --case")
    parser.add_argument("--program", default=os.path.join(here, "../build/release/graph-bench"), help="graph-bench (build/release)")
    parser.add_argument("--option", action="append", default=[], help="for graph-bench, as --policy=max; repeats")
    parser.add_argument("--peers", default=",".join(PEERS), help="which, with commas between (%(default)s)")
    parser.add_argument("--bf16", action="store_true", help="files are NAME_bf16.json; the peer is OpenVINO, which computes NAME_f32.json in bf16")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="of each runtime (%(default)s)")
    parser.add_argument("--rounds", type=int, default=7, metavar="N", help="turns of each runtime (%(default)s)")
    parser.add_argument("--ms", type=int, default=300, metavar="MS", help="of each turn (%(default)s)")
    parser.add_argument("--tolerance", type=float, default=1e-3, metavar="R", help="of the outputs, relative to their largest value (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write all times")
    parser.add_argument("--plot", metavar="FILE", help="draw all ratios with their intervals (SVG)")
    arguments = parser.parse_args()
    for case in arguments.cases if arguments.bf16 else []:
        if not case.endswith("_bf16.json"):
            parser.error(f"--bf16: {case} is not named NAME_bf16.json")
    missing = missing_packages(("numpy", "onnx"))
    if missing:
        sys.exit(f"skipped: {sys.executable} has no {' and no '.join(missing)}")
    wanted = ["openvino"] if arguments.bf16 else arguments.peers.split(",")
    for name in wanted:
        if name not in PEERS:
            parser.error(f"--peers: {name} is none of {', '.join(PEERS)}")
        if missing_packages([name]):
            print(f"skipped: {sys.executable} has no {name}")
    arguments.peers = [name for name in wanted if not missing_packages([name])]
    if not arguments.peers:
        sys.exit("skipped: no peer is installed")
    from graph_to_onnx import NotConverted
    chance, rows, best, drawn = random.Random(1), [], [], []
    print("load of the machine before: {:.1f}, {:.1f}, {:.1f}".format(*os.getloadavg()))
    print(f"| graph, {arguments.threads} thread{'s' * (arguments.threads > 1)} | ours, ms | "
          + " | ".join(f"{name}, ms: / ours" for name in arguments.peers) + " |\n|:--|--:|" + "--:|" * len(arguments.peers), flush=True)
    for case in arguments.cases:
        with tempfile.TemporaryDirectory() as folder:
            try:
                times, errors = run_case(arguments, case, folder, chance)
            except (NotConverted, RuntimeError) as why:
                print(f"skipped: {case}: {'not converted: ' * isinstance(why, NotConverted)}{why}", flush=True)
                continue
        if len(times) > 1:
            logs, ratios = tell(arguments, case, times)
            best.append(logs)
            drawn.append((os.path.basename(case), ratios))
            rows.append({"case": case, "threads": arguments.threads, "times_ns": times, "errors": errors})
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    if not best:
        sys.exit("no graph was compared")
    if arguments.plot:
        paired.plot(arguments.plot, arguments.peers, drawn)
    print(f"\ngeometric mean of the best peer / ours: {paired.text(paired.geometric_mean(best))} of {len(best)} graphs")
    print("load of the machine after: {:.1f}, {:.1f}, {:.1f}".format(*os.getloadavg()))


if __name__ == "__main__":
    if len(sys.argv) == 6 and sys.argv[1] == "--serve":
        serve(sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
    else:
        main()
