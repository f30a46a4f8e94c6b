"""Sparse arrays, messages in graphs, ragged rows, and tables of dynamic programmes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax, random
from jax.experimental import sparse
from jax.ops import segment_max, segment_min, segment_sum

from programs.function import of

State = tuple[Array, ...]


@of("f32[12]", "s32[12,2]:below6", "f32[6]", "f32[6,3]")
def products_of_a_sparse_matrix(values: Array, at: Array, x: Array, y: Array) -> State:
    m = sparse.BCOO((values, at), shape=(6, 6))
    gradient = jax.grad(lambda v: (sparse.BCOO((v, at), shape=(6, 6)) @ x).sum() ** 2)(values)
    return m @ x, m.T @ y, m.todense(), gradient


@of("f32[6,6]")
def sparse_made_of_dense_and_summed(x: Array) -> State:
    m = sparse.BCOO.fromdense(jnp.where(jnp.abs(x) > 1, x, 0), nse=14)
    both = sparse.bcoo_concatenate([m, 2 * m], dimension=0)
    return both.todense(), sparse.bcoo_reduce_sum(m, axes=(0,)).todense(), m.indices


@of("f32[8,5]", "s32[20]:below8", "s32[20]:below8", "f32[10]")
def attention_along_edges(x: Array, sender: Array, receiver: Array, w: Array) -> Array:
    logits = jax.nn.leaky_relu(jnp.concatenate([x[sender], x[receiver]], 1) @ w, 0.2)
    top = segment_max(logits, receiver, 8)
    e = jnp.exp(logits - top[receiver])
    p = e / segment_sum(e, receiver, 8)[receiver]
    return segment_sum(p[:, None] * x[sender], receiver, 8)


@of("f32[8,4]", "s32[18,2]:below8", "f32[4,4]", "f32[4,4]")
def graph_layer_with_many_pools(x: Array, edges: Array, a: Array, b: Array) -> State:
    degree = jnp.zeros(8).at[edges[:, 1]].add(1)
    norm = lax.rsqrt(1 + degree)
    h = segment_sum((x @ a * norm[:, None])[edges[:, 0]], edges[:, 1], 8) * norm[:, None]
    messages = jax.nn.relu(x[edges[:, 0]] @ b)
    mean = segment_sum(messages, edges[:, 1], 8) / jnp.maximum(degree, 1)[:, None]
    square = segment_sum(messages**2, edges[:, 1], 8) / jnp.maximum(degree, 1)[:, None]
    pools = [mean, segment_max(messages, edges[:, 1], 8), segment_min(messages, edges[:, 1], 8)]
    pools += [jnp.sqrt(jax.nn.relu(square - mean**2) + 1e-5)]
    scale = jnp.log1p(degree)[:, None]
    return h, jnp.concatenate(pools, 1) * scale


@of("f32[7,3]", "s32[16,2]:below7", "f32[3]")
def positions_that_messages_move(x: Array, edges: Array, w: Array) -> Array:
    def loss(x: Array) -> Array:
        d = x[edges[:, 0]] - x[edges[:, 1]]
        r = (d**2).sum(1)
        basis = jnp.exp(-((jnp.sqrt(r + 1e-6)[:, None] - jnp.arange(3.0)) ** 2))
        return ((basis @ w) * jnp.cos(r)).sum()

    return -jax.grad(loss)(x)


@of("s32[16,2]:below7", "f32[16]:positive")
def shortest_ways_and_their_parents(edges: Array, cost: Array) -> tuple[Array, Array]:
    def step(state: State) -> State:
        far, _, n = state
        tried = far[edges[:, 0]] + cost
        new = jnp.minimum(far, segment_min(tried, edges[:, 1], 7))
        return new, jnp.any(new < far), n + 1

    start = jnp.full(7, jnp.inf).at[0].set(0), jnp.bool_(True), jnp.int32(0)
    far, _, _ = lax.while_loop(lambda s: s[1] & (s[2] < 10), step, start)
    tight = far[edges[:, 0]] + cost <= far[edges[:, 1]] * 1.000001
    parent = segment_max(jnp.where(tight, edges[:, 0], -1), edges[:, 1], 7)
    return far, parent


@of("f32[8,8]:fraction")
def spanning_tree_by_prim(w: Array) -> State:
    w = w + w.T + 10 * jnp.eye(8)

    def step(carry: State, _: None) -> tuple[State, State]:
        inside, best = carry
        at = jnp.argmin(jnp.where(inside, jnp.inf, best))
        cost = best[at]
        inside = inside.at[at].set(True)
        return (inside, jnp.minimum(best, w[at])), (at, cost)

    start = jnp.zeros(8, bool).at[0].set(True), w[0]
    _, (order, costs) = lax.scan(step, start, None, length=7)
    return order, costs, costs.sum()


@of("f32[9,9]:fraction")
def levels_triangles_and_closure(u: Array) -> State:
    a = (u < 0.25).astype(jnp.int32)
    a = jnp.maximum(a, a.T) * (1 - jnp.eye(9, dtype=jnp.int32))

    def step(carry: State, k: Array) -> tuple[State, None]:
        level, front = carry
        new = (front @ a > 0) & (level < 0)
        return (jnp.where(new, k, level), new.astype(jnp.int32)), None

    front = jnp.zeros(9, jnp.int32).at[0].set(1)
    (level, _), _ = lax.scan(step, (jnp.where(front > 0, 0, -1), front), jnp.arange(1, 9))
    reach = a > 0
    for _ in range(4):
        reach = reach | ((reach.astype(jnp.int32) @ reach.astype(jnp.int32)) > 0)
    lap = jnp.diag(a.sum(1)) - a
    return level, jnp.trace(a @ a @ a) // 6, reach, jnp.linalg.eigvalsh(lap.astype(jnp.float32))


@of("s32[10,2]:below8")
def parents_by_union_and_order_by_degrees(edges: Array) -> tuple[Array, Array]:
    def join(parent: Array, edge: Array) -> tuple[Array, None]:
        root = lambda x: lax.while_loop(lambda x: parent[x] != x, lambda x: parent[x], x)  # noqa: E731
        a, b = root(edge[0]), root(edge[1])
        return parent.at[jnp.maximum(a, b)].set(jnp.minimum(a, b)), None

    parent, _ = lax.scan(join, jnp.arange(8), edges)
    low, high = edges.min(1), edges.max(1)
    into = jnp.zeros(8, jnp.int32).at[high].add(low < high)

    def pick(carry: State, _: None) -> tuple[State, Array]:
        into, done = carry
        at = jnp.argmax((into == 0) & ~done)
        into = into.at[high].add(-((low == at) & (low < high)).astype(jnp.int32))
        return (into, done.at[at].set(True)), at

    _, order = lax.scan(pick, (into, jnp.zeros(8, bool)), None, length=8)
    return parent, order


@of("f32[10,2]")
def tour_improved_by_reversals(points: Array) -> tuple[Array, Array]:
    far = jnp.linalg.norm(points[:, None] - points, axis=-1)

    def length(tour: Array) -> Array:
        return far[tour, jnp.roll(tour, -1)].sum()

    at = jnp.arange(10)
    ij = jnp.array([(i, j) for i in range(1, 9) for j in range(i + 1, 10)])

    def turned(tour: Array, ij: Array) -> Array:
        i, j = ij
        return tour[jnp.where((at >= i) & (at <= j), i + j - at, at)]

    def step(tour: Array, _: None) -> tuple[Array, Array]:
        all_ = jax.vmap(turned, (None, 0))(tour, ij)
        lengths = jax.vmap(length)(all_)
        best = jnp.argmin(lengths)
        now = length(tour)
        return jnp.where(lengths[best] < now - 1e-5, all_[best], tour), now

    return lax.scan(step, at, None, length=4)


@of("f32[3,6,6]", "f32[6,3]", "f32[]:fraction")
def policy_by_iterated_values(move: Array, reward: Array, discount: Array) -> State:
    p = jax.nn.softmax(move)

    def step(state: State) -> State:
        v, _, n = state
        q = reward + 0.9 * discount * jnp.einsum("aij,j->ia", p, v)
        new = q.max(1)
        return new, jnp.abs(new - v).max(), n + 1

    v, gap, n = lax.while_loop(
        lambda s: (s[1] > 1e-3) & (s[2] < 40), step, (jnp.zeros(6), jnp.float32(1), jnp.int32(0))
    )
    policy = (reward + 0.9 * discount * jnp.einsum("aij,j->ia", p, v)).argmax(1)
    chain = p[policy, jnp.arange(6)]
    here = reward[jnp.arange(6), policy]
    return v, policy, jnp.linalg.solve(jnp.eye(6) - 0.9 * discount * chain, here) - v


@of("u32[2]", "f32[5,3]")
def table_learned_from_moves(key: Array, q: Array) -> tuple[Array, Array]:
    def step(carry: State, key: Array) -> tuple[State, Array]:
        q, s = carry
        a, b, c = random.split(key, 3)
        greedy = q[s].argmax()
        action = jnp.where(random.uniform(a) < 0.3, random.randint(b, (), 0, 3), greedy)
        new = (s + action - 1 + random.randint(c, (), 0, 2)) % 5
        gain = jnp.where(new == 4, 1.0, -0.1)
        off = gain + 0.9 * q[new].max() - q[s, action]
        return (q.at[s, action].add(0.5 * off), new), off

    (q, _), off = lax.scan(step, (q, jnp.int32(0)), random.split(random.wrap_key_data(key), 25))
    return q, off


@of("s8[3,3]:below3")
def best_move_at_noughts_and_crosses(board: Array) -> Array:
    board = board.astype(jnp.int32).reshape(9)
    lines = jnp.array(
        [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]
    )

    def score(board: Array) -> Array:
        rows = board[lines]
        mine, theirs = (rows == 1).sum(1), (rows == 2).sum(1)
        return jnp.where(theirs == 0, 10**mine, 0).sum() - jnp.where(mine == 0, 10**theirs, 0).sum()

    def reply(board: Array) -> Array:
        one = lambda k: jnp.where(board[k] == 0, score(board.at[k].set(2)), 100000)  # noqa: E731
        return jax.vmap(one)(jnp.arange(9)).min()

    one = lambda k: jnp.where(board[k] == 0, reply(board.at[k].set(1)), -100000)  # noqa: E731
    return jax.vmap(one)(jnp.arange(9))


@of("s32[12]:below4", "s32[15]:below4")
def longest_common_letters_and_edits(a: Array, b: Array) -> State:
    def common(above: Array, x: Array) -> tuple[Array, Array]:
        tried = jnp.maximum(above[1:], above[:-1] + (b == x))
        new = jnp.concatenate([above[:1], lax.cummax(tried)])
        return new, new

    def edits(above: Array, x: Array) -> tuple[Array, None]:
        tried = jnp.minimum(above[1:] + 1, above[:-1] + (b != x))
        at = jnp.arange(16)
        new = jnp.concatenate([above[:1] + 1, tried])
        return lax.cummin(new - at) + at, None

    last, table = lax.scan(common, jnp.zeros(16, jnp.int32), a)
    return last[-1], table, lax.scan(edits, jnp.arange(16), a)[0][-1]


@of("s32[4]:below7", "f32[20,3]", "f32[3,5]")
def rows_of_many_lengths(lengths: Array, rows: Array, w: Array) -> State:
    ends = jnp.cumsum(lengths)
    owner = jnp.searchsorted(ends, jnp.arange(20), side="right")
    inside = jnp.arange(20) - (ends - lengths)[jnp.minimum(owner, 3)]
    dense = jnp.zeros((4, 7, 3)).at[owner, inside].set(rows, mode="drop")
    mask = jnp.arange(7) < lengths[:, None]
    scores = jnp.where(mask, (dense @ w).sum(-1), -jnp.inf)
    pooled = jnp.where(mask, jnp.exp(scores - jax.nn.logsumexp(scores, 1, keepdims=True)), 0)
    ragged = lax.ragged_dot(rows, jnp.stack([w, -w, 2 * w, w * w]), lengths)
    return owner, dense, pooled, ragged


@of("s32[25]:below6", "f32[25]")
def groups_by_unique_keys(keys: Array, x: Array) -> State:
    found, at, inverse, counts = jnp.unique(
        keys, return_index=True, return_inverse=True, return_counts=True, size=7, fill_value=-1
    )
    means = jnp.zeros(7).at[inverse].add(x) / jnp.maximum(counts, 1)
    order = jnp.lexsort((x, keys))
    rank = jnp.argsort(order) - jnp.searchsorted(keys[order], keys)
    return found, at, counts, means, order, rank, jnp.nonzero(keys == 2, size=6, fill_value=25)[0]


@of("s32[30]:below10", "f32[10,4]", "s32[30]:below5", "f32[30]")
def bags_of_embeddings_and_gradient(words: Array, table: Array, bag: Array, w: Array) -> State:
    def pooled(table: Array) -> Array:
        return segment_sum(table[words] * w[:, None], jnp.sort(bag), 5, indices_are_sorted=True)

    loss = lambda t: jnp.tanh(pooled(t)).sum()  # noqa: E731
    return pooled(table), segment_max(table[words], bag, 5), jax.grad(loss)(table)


@of("f32[6,9]")
def orders_with_equal_keys(x: Array) -> State:
    y = jnp.round(x * 2) / 2
    v, k = lax.top_k(y, 4)
    return (
        jnp.argsort(y, axis=1, stable=True),
        jnp.argsort(y, axis=1, descending=True, stable=True),
        v,
        k,
        jnp.argmax(y, 0),
        jnp.argpartition(y, 3, axis=1)[:, 3:4] * 0 + jnp.partition(y, 3, axis=1)[:, 3:4],
        jnp.take_along_axis(y, jnp.argmin(y, 1, keepdims=True), 1),
        jnp.digitize(y, jnp.array([-1.0, 0.0, 0.5])),
    )


@of("s32[6]:below9", "s32[6]:below20", "s32[]:below30")
def knapsack_with_its_choice(size: Array, worth: Array, room: Array) -> tuple[Array, Array]:
    size = size + 1
    at = jnp.arange(31)

    def step(best: Array, x: tuple[Array, Array]) -> tuple[Array, Array]:
        s, w = x
        tried = jnp.where(at >= s, best[jnp.maximum(at - s, 0)] + w, -1)
        return jnp.maximum(best, tried), tried > best

    best, taken = lax.scan(step, jnp.zeros(31, jnp.int32), (size, worth))

    def back(left: Array, x: tuple[Array, Array]) -> tuple[Array, Array]:
        hit = x[0][left]
        return jnp.where(hit, left - x[1], left), hit

    return best[room], lax.scan(back, room, (taken, size), reverse=True)[1]


@of("f32[8,6]:positive")
def counts_scaled_and_factored(x: Array) -> State:
    """Non-negative factors by multiplied updates, and tf-idf with cosines."""

    def step(carry: State, _: None) -> tuple[State, Array]:
        w, h = carry
        h = h * (w.T @ x) / (w.T @ w @ h + 1e-9)
        w = w * (x @ h.T) / (w @ h @ h.T + 1e-9)
        return (w, h), jnp.linalg.norm(x - w @ h)

    (w, h), off = lax.scan(step, (x[:, :3], x[:3]), None, length=5)
    idf = jnp.log(9 / (1 + (x > 1).sum(0)))
    rows = x * idf
    rows = rows / jnp.linalg.norm(rows, axis=1, keepdims=True)
    return w @ h, off, rows @ rows.T
