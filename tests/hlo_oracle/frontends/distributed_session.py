"""One of two processes of JAX on the platform hlo_oracle: test_pjrt_processes.py starts both."""

from __future__ import annotations

import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from hlo_oracle.frontends import pjrt

X = np.arange(8, dtype=np.float32)
RING = [(n, (n + 1) % 4) for n in range(4)]


def main(port: str, number: int) -> None:
    pjrt.initialize()
    jax.distributed.initialize(f"localhost:{port}", 2, number)
    assert (jax.process_count(), jax.process_index()) == (2, number)
    assert [d.id for d in jax.local_devices()] == [2 * number, 2 * number + 1]
    mesh = jax.make_mesh((4,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    ranks = NamedSharding(mesh, P("i"))
    x = jax.make_array_from_callback(X.shape, ranks, lambda index: X[index])
    shared = partial(jax.shard_map, mesh=mesh, in_specs=P("i"))

    total = jax.jit(shared(lambda v: jax.lax.psum(v, "i"), out_specs=P()))
    np.testing.assert_array_equal(total(x), [12, 16])
    moved = jax.jit(shared(lambda v: jax.lax.ppermute(v, "i", RING), out_specs=P("i")))(x)
    mine = np.concatenate([shard.data for shard in moved.addressable_shards])
    np.testing.assert_array_equal(mine, np.roll(X, 2)[4 * number :][:4])
    gather = partial(jax.lax.all_gather, axis_name="i", tiled=True)
    everything = jax.jit(shared(gather, out_specs=P(), check_vma=False))(x)
    np.testing.assert_array_equal(everything.addressable_shards[0].data, X)
    assert float(jax.jit(lambda v: (v * 2).sum())(x)) == 56  # XLA's partitioner divides it
    alone = jax.jit(lambda v: v + 1, out_shardings=ranks)(x)  # of C: nobody waits
    np.testing.assert_array_equal(alone.addressable_shards[1].data, X[4 * number + 2 :][:2] + 1)
    assert float(jnp.ones(3).sum()) == 3
    assert multihost_utils.process_allgather(np.float32(number)).tolist() == [0, 1]

    other = jax.jit(shared(lambda v: jax.lax.pmax(v, "i"), out_specs=P()))
    refused((other, total)[number], x, "have to run in the same order in each")
    called = shared(lambda v: jax.pure_callback(np.sin, v, v), out_specs=P("i"))
    refused(jax.jit(called), x, "calls Python, and runs on devices of several processes")
    multihost_utils.sync_global_devices("end")
    jax.distributed.shutdown()
    print("all holds")


def refused(function: jax.stages.Wrapped, x: jax.Array, told: str) -> None:
    try:
        function(x)
    except (ValueError, RuntimeError) as error:
        assert told in str(error), error
    else:
        raise AssertionError(f"it ran: {told}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
