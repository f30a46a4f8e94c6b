"""Run the program of a report with jaxlib alone: python reproduce.py [FOLDER].

FOLDER is the report's, beside this file; the default is the folder of this file. Exit status: 1 if
XLA:CPU is still wrong, 0 if it is right, 2 if it could not be run.
"""

import json
import os
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

if sys.argv[2:]:  # FOLDER PROGRAM: the process that may crash
    import ml_dtypes
    import numpy as np

REPORT, WRONG = Path(__file__).resolve().parent.joinpath(*sys.argv[1:2]), 10
if not (REPORT / "facts.json").exists():
    beside = sorted(path.parent.name for path in Path(__file__).parent.glob("*/facts.json"))
    print(f"{REPORT} is no report. FOLDER is one of: {', '.join(beside)}", file=sys.stderr)
    sys.exit(2)
FACTS = json.loads((REPORT / "facts.json").read_text("utf-8"))
VALID = {0: ("right", 0), WRONG: ("still wrong", 1), 1: ("could not be run", 2)}
INVALID = {0: ("taken", 0), WRONG: ("taken", 0), 1: ("refused", 0)}  # XLA may do either, but live


def having(name):  # in which of its modules differs between versions of jaxlib
    for module in ("_hlo", "_jax", "xla_extension"):
        with suppress(ImportError):
            found = import_module(f"jaxlib.{module}")
            if hasattr(found, name):
                return found
    raise ImportError(f"jaxlib has no {name}")


def run(file, arrays):
    from jaxlib import lapack
    from jaxlib import xla_client as xla

    hlo, mlir = having("HloModule"), having("mlir").mlir

    if "lapack_" in (REPORT / file).read_text("utf-8"):  # which needs SciPy
        lapack._lapack.initialize()
        registered = getattr(lapack, "registrations", dict)()  # up to 0.5 by its import
        for name, target, *version in registered.get("cpu", ()):
            versions = dict(zip(["api_version"], version))
            xla.register_custom_call_target(name, target, platform="cpu", **versions)
    client = xla.make_cpu_client()
    devices = [device] = client.local_devices()[:1]
    text = (REPORT / file).read_text("utf-8")
    proto = hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    program = mlir.xla_computation_to_mlir_module(hlo.XlaComputation(proto))
    options = xla.CompileOptions()
    if hasattr(client, "compile_and_load"):
        executable = client.compile_and_load(program, xla.DeviceList((device,)), options)
    else:  # up to 0.5
        executable = client.compile(program, options)
    if hasattr(client, "buffer_from_pyval"):  # up to 0.9
        given = [client.buffer_from_pyval(x, device) for x in arrays]
    else:
        given = put(xla, arrays, devices)
    results = executable.execute_sharded(given).disassemble_into_single_device_arrays()
    return [np.array(shards[0]) for shards in results]


def put(xla, arrays, devices):
    given = {"_to_xla_hlo_sharding": lambda *_: xla.HloSharding.replicate(), "memory_kind": None}
    whole = type("Whole", (xla.SingleDeviceSharding,), given)(*devices)
    kinds = [{"shape": x.shape, "dtype": x.dtype, "weak_type": False} for x in arrays]
    return [
        xla.batched_device_put(type("Kind", (), k), whole, [x], devices, True, enable_x64=True)
        for k, x in zip(kinds, arrays)
    ]


def is_wrong(name, actual, exact, low, high, nan):
    if actual.shape != exact.shape:
        print(f"{name}: sizes {actual.shape}, expected {exact.shape}")
        return True
    parts = (np.real, np.imag) if actual.dtype.kind == "c" else (np.asarray,)
    inside = np.all([(p(actual) >= p(low)) & (p(actual) <= p(high)) for p in parts], axis=0)
    wrong = ~np.where(actual != actual, nan, inside)
    for i in np.argwhere(wrong)[:8]:
        found, right, least, most = (x[tuple(i)] for x in (actual, exact, low, high))
        print(f"{name} {i.tolist()}: XLA {found}, expected {right}, legal {least} to {most}")
    return wrong.any()


def is_as_seen(name, actual, exact, seen):  # where no bounds are known, but no such result is right
    if (actual.tobytes() != seen.tobytes()) or np.array_equal(actual, exact, equal_nan=True):
        return False
    print(f"{name}: XLA {actual.tolist()}: {', '.join(FACTS['steps'])}")
    return True


def load(file, name, dtype):  # NumPy's files keep the bits of bfloat16 and the like, not the type
    array = np.load(REPORT / file)[name]
    return array.view(dtype) if array.dtype.kind == "V" else array


if sys.argv[2:]:
    types = [np.dtype(getattr(ml_dtypes, name, name)) for name in FACTS["arguments"]]
    given = [load("arguments.npz", f"p{n}", dtype) for n, dtype in enumerate(types)]
    results = run(sys.argv[2], given)
    wrong = len(results) != FACTS["outputs"]
    for n, (x, bounds) in enumerate(zip(results, FACTS.get("bounds", []))):
        if list(x.shape) == bounds:  # XLA returns all the room, whose first elements are in use
            dims = FACTS["results"][n][1]
            results[n] = x.ravel()[: int(np.prod(dims))].reshape(dims)
    if FACTS.get("mismatch"):  # results of other types or sizes
        found = [[str(x.dtype), list(x.shape)] for x in results]
        wrong = found != FACTS["results"]
        print(f"results {found}, expected {FACTS['results']}")
    is_compared = FACTS["kind"] == "wrong result" and not FACTS.get("mismatch")
    for n, x in enumerate(results if is_compared else []):
        ends = [load("expected.npz", f"{e}{n}", x.dtype) for e in ("exact", "low", "high", "nan")]
        wrong |= is_wrong(f"output {n}", x, *ends)
    for n, x in enumerate(results if FACTS.get("steps") and not wrong else []):
        seen = [load("expected.npz", f"{kind}{n}", x.dtype) for kind in ("exact", "actual")]
        wrong |= is_as_seen(f"output {n}", x, *seen)
    sys.exit(WRONG if wrong else 0)
os.environ["XLA_FLAGS"] = FACTS["XLA_FLAGS"]
os.environ["MALLOC_PERTURB_"] = "163"  # glibc fills new memory: what is never written shows
codes = []
for program in FACTS.get("invalid", [FACTS.get("program", "reduced.hlo")]):
    command, seconds = [sys.executable, __file__, REPORT, program], FACTS["seconds"]
    try:
        status = subprocess.run(command, timeout=seconds).returncode
    except subprocess.TimeoutExpired:
        status = f"no result in {seconds} s"
    outcomes = INVALID if "invalid" in FACTS else VALID
    said, code = outcomes.get(status, (f"XLA ends: {status}", 1))
    print(f"{program}: {said}" if "invalid" in FACTS else said, flush=True)
    codes.append(code)
sys.exit(max(codes, key=(0, 2, 1).index))
