"""Run reduced.hlo with jaxlib alone. Exit status: 1 if XLA:CPU is still wrong, 0 if it is right."""

import json
import os
import subprocess
import sys
from pathlib import Path

if sys.argv[1:] == ["run"]:  # the process that may crash
    import ml_dtypes
    import numpy as np

HERE, WRONG = Path(__file__).resolve().parent, 10
FACTS = json.loads((HERE / "facts.json").read_text())


def run(arrays):
    from jaxlib import _hlo, _jax
    from jaxlib import xla_client as xla

    client = xla.make_cpu_client()
    devices = [device] = client.local_devices()[:1]
    given = {"_to_xla_hlo_sharding": lambda *_: xla.HloSharding.replicate(), "memory_kind": None}
    whole = type("Whole", (xla.SingleDeviceSharding,), given)(device)
    kinds = [{"shape": x.shape, "dtype": x.dtype, "weak_type": False} for x in arrays]
    given = [
        xla.batched_device_put(type("Kind", (), k), whole, [x], devices, True, enable_x64=True)
        for k, x in zip(kinds, arrays)
    ]
    text = (HERE / "reduced.hlo").read_text()
    proto = _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    program = _jax.mlir.xla_computation_to_mlir_module(_hlo.XlaComputation(proto))
    options = xla.CompileOptions()
    executable = client.compile_and_load(program, xla.DeviceList((device,)), options)
    results = executable.execute_sharded(given).disassemble_into_single_device_arrays()
    return [np.array(shards[0]) for shards in results]


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


def load(file, name, dtype):  # NumPy's files keep the bits of bfloat16 and the like, not the type
    array = np.load(HERE / file)[name]
    return array.view(dtype) if array.dtype.kind == "V" else array


if sys.argv[1:] == ["run"]:
    types = [np.dtype(getattr(ml_dtypes, name, name)) for name in FACTS["arguments"]]
    results = run([load("arguments.npz", f"p{n}", dtype) for n, dtype in enumerate(types)])
    wrong = len(results) != FACTS["outputs"]
    for n, x in enumerate(results):
        ends = [load("expected.npz", f"{e}{n}", x.dtype) for e in ("exact", "low", "high", "nan")]
        wrong |= is_wrong(f"output {n}", x, *ends)
    sys.exit(WRONG if wrong else 0)
os.environ["XLA_FLAGS"] = FACTS["XLA_FLAGS"]
try:
    status = subprocess.run([sys.executable, __file__, "run"], timeout=FACTS["seconds"]).returncode
except subprocess.TimeoutExpired:
    status = f"no result in {FACTS['seconds']} s"
said = {0: "right", WRONG: "still wrong", 1: "could not be run"}
print(said.get(status, f"XLA ends: {status}"))
sys.exit({0: 0, 1: 2}.get(status, 1))
