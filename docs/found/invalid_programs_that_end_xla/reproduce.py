"""Give each program here to XLA:CPU, with jaxlib alone. Exit status: 1 if one still ends the
process, 0 if all are refused."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def compile_with_xla(path):
    from jaxlib import _hlo, _jax
    from jaxlib import xla_client as xla

    client = xla.make_cpu_client()
    devices = xla.DeviceList(tuple(client.local_devices()[:1]))
    module = _hlo.hlo_module_from_text(Path(path).read_text())
    computation = _hlo.XlaComputation(module.as_serialized_hlo_module_proto())
    program = _jax.mlir.xla_computation_to_mlir_module(computation)
    client.compile_and_load(program, devices, xla.CompileOptions())


def main():
    ended = 0
    for path in sorted(HERE.glob("*.hlo")):
        command = [sys.executable, __file__, path]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        last = (done.stderr.strip().splitlines() or [""])[-1]
        said = {0: "accepted", 1: f"refused: {last}"}.get(done.returncode)
        ended += said is None
        print(f"{path.stem}: {said or f'XLA ends: {done.returncode}'}")
    return 1 if ended else 0


if __name__ == "__main__":
    sys.exit(compile_with_xla(sys.argv[1]) if sys.argv[1:] else main())
