"""The Triton kernels of the Mamba-3 scan's backward: all gradients of a chunk, then those of the turns over heads.

Those of r and cs are read off the vectors': dr_j = k_j . dk_j / r_j and dcs_i = q_i . dq_i - k_i . dk_i, each without
the diagonal's part. Vectors are kept in DOT_TYPE, in which they are multiplied anyway: half the registers where that is
bfloat16. A gradient is stored as soon as it is made, and a state is read twice, since registers do not hold all of a chunk.
Shapes, constants and rules are those of `triton_forward`.
"""

from kernels.framework.backend import tl, triton
from kernels.mamba3_scan.triton_forward import (
    _clean,
    _document_sums,
    _documents,
    _dot,
    _edges,
    _last,
    _rotation,
    _scalars,
    _taint,
    _turn,
    _values,
    _vectors,
)


@triton.jit
def _phase_gradients(grads, vectors, LENGTH: tl.constexpr, STATE: tl.constexpr):
    """Return the gradients (L, PAIRS) of the pairs' angles."""
    grad_even, grad_odd = tl.split(tl.reshape(grads, (LENGTH, STATE // 2, 2)))
    even, odd = tl.split(tl.reshape(vectors.to(tl.float32), (LENGTH, STATE // 2, 2)))
    return grad_odd * even - grad_even * odd


@triton.jit
def _store_vectors(
    pointer, vectors, row, head, tokens, T: tl.constexpr, H: tl.constexpr, N: tl.constexpr, STATE: tl.constexpr
):  # fmt: skip
    """Write (L, STATE) to (B, T, H, N)."""
    states = tl.arange(0, STATE)
    place = ((row * T + tokens)[:, None] * H + head) * N + states[None, :]
    mask = (tokens < T)[:, None] & (states < N)[None, :]
    tl.store(pointer + place, vectors.to(pointer.dtype.element_ty), mask=mask)


@triton.jit
def _store_values(
    pointer, values, row, head, tokens, T: tl.constexpr, H: tl.constexpr, P: tl.constexpr, HEAD: tl.constexpr
):  # fmt: skip
    """Write (L, HEAD) to (B, T, H, P)."""
    channels = tl.arange(0, HEAD)
    place = ((row * T + tokens)[:, None] * H + head) * P + channels[None, :]
    mask = (tokens < T)[:, None] & (channels < P)[None, :]
    tl.store(pointer + place, values.to(pointer.dtype.element_ty), mask=mask)


@triton.jit
def _store_turns(
    grad_turn_ptr, added_ptr, phases, continues, ends, place, inside,
    S: tl.constexpr, LENGTH: tl.constexpr, PAIRS: tl.constexpr,
):  # fmt: skip
    """Store the gradients of the turns within the chunk, and what the chunk adds to those of the chunk before."""
    pairs = tl.arange(0, PAIRS)
    tl.store(added_ptr + pairs, tl.sum(tl.where(continues[:, None], phases, 0.0), axis=0), mask=pairs < S)
    turns = _document_sums(phases, tl.broadcast_to(ends[:, None], (LENGTH, PAIRS)), True)
    tl.store(grad_turn_ptr + place[:, None] * S + pairs[None, :], turns, mask=inside[:, None] & (pairs < S)[None, :])


@triton.jit
def _to_values(queries, keys, slopes, decays, earlier, later, DOT_TYPE: tl.constexpr):
    """Return sum_i E_ij (q_i . k_j) gy_i."""
    kernel = tl.where(earlier, decays * _dot(queries, tl.trans(keys), DOT_TYPE), 0.0)
    return _dot(tl.trans(kernel), _clean(slopes), DOT_TYPE) + _taint(slopes, later)[:, None]


@triton.jit
def _to_queries(kernel, weighted, earlier, DOT_TYPE: tl.constexpr):
    """Return sum_j E_ij (x_j . gy_i) r_j k_j."""
    return _dot(kernel, _clean(weighted), DOT_TYPE) + _taint(weighted, earlier)[:, None]


@triton.jit
def _within(here, index, sums):
    """Return masks (L, L) of the earlier and the later tokens of a document, and E."""
    is_same = here[:, None] == here[None, :]
    earlier, later = is_same & (index[:, None] > index[None, :]), is_same & (index[:, None] < index[None, :])
    gaps = tl.where(earlier, sums[:, None] - sums[None, :], 0.0)
    return earlier, later, tl.where(earlier, tl.exp(gaps), 0.0)


@triton.jit
def _row_dot(left, right):
    """Return the dot product of each row, in float32."""
    return tl.sum(left.to(tl.float32) * right.to(tl.float32), axis=1)


@triton.jit
def _tile(HEAD: tl.constexpr, STATE: tl.constexpr):
    """Return places in a state's tile (HEAD, STATE)."""
    return tl.arange(0, HEAD)[:, None] * STATE + tl.arange(0, STATE)[None, :]


@triton.jit
def chunk_gradient_kernel(
    query_ptr, key_ptr, query_bias_ptr, key_bias_ptr, value_ptr, step_ptr, rate_ptr, share_ptr, velocity_ptr,
    document_ptr, phase_ptr, state_ptr, leaving_ptr, grad_ptr,
    grad_query_ptr, grad_key_ptr, grad_value_ptr, grad_decay_ptr, grad_weight_ptr, grad_own_ptr, grad_turn_ptr,
    turn_added_ptr,
    T: tl.constexpr, H: tl.constexpr, P: tl.constexpr, N: tl.constexpr, S: tl.constexpr, CHUNKS: tl.constexpr,
    LENGTH: tl.constexpr, HEAD: tl.constexpr, STATE: tl.constexpr, DOT_TYPE: tl.constexpr,
):  # fmt: skip
    """Compute all gradients of one chunk, from the state that enters it and the gradient of the state that leaves it."""
    chunk, head, row = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    index, tokens = tl.arange(0, LENGTH), chunk * LENGTH + tl.arange(0, LENGTH)
    here, has_previous, has_next = _documents(document_ptr, row, tokens, T)
    continues, reaches_end = _edges(document_ptr, row, chunk, here, tokens, T, LENGTH)
    starts, ends = (~has_previous).to(tl.int32), (~has_next).to(tl.int32)
    cosines, sines = _rotation(
        step_ptr, velocity_ptr, phase_ptr, row, head, chunk, tokens, continues, starts, T, H, S, CHUNKS, LENGTH, STATE // 2
    )  # fmt: skip
    queries = _turn(_vectors(query_ptr, query_bias_ptr, row, head, tokens, T, N, STATE), cosines, sines, LENGTH, STATE)
    keys = _turn(_vectors(key_ptr, key_bias_ptr, row, head, tokens, T, N, STATE), cosines, sines, LENGTH, STATE)
    queries, keys = queries.to(DOT_TYPE), keys.to(DOT_TYPE)
    values = _values(value_ptr, row, head, tokens, T, H, P, HEAD).to(DOT_TYPE)
    slopes = _values(grad_ptr, row, head, tokens, T, H, P, HEAD).to(DOT_TYPE)
    log_decays, own, weights = _scalars(step_ptr, rate_ptr, share_ptr, row, head, tokens, has_next, T, H)
    sums = _document_sums(log_decays, starts, False)
    final = _last(sums, LENGTH)
    to_end = tl.where(reaches_end, tl.exp(tl.where(reaches_end, final - sums, 0.0)), 0.0)
    place = ((row * CHUNKS + chunk) * H + head) * (HEAD * STATE) + _tile(HEAD, STATE)
    leaving = tl.load(leaving_ptr + place)
    passed = tl.exp(final) * tl.sum(tl.sum(leaving * tl.load(state_ptr + place), axis=1), axis=0)
    earlier, later, decays = _within(here, index, sums)
    own_match, own_agreement = _row_dot(queries, keys), _row_dot(slopes, values)
    to_values = _to_values(queries, keys, slopes, decays, earlier, later, DOT_TYPE)
    to_values += tl.where(reaches_end[:, None], to_end[:, None] * _dot(keys, tl.trans(leaving), DOT_TYPE), 0.0)
    grad_values = weights[:, None] * to_values + (own * own_match)[:, None] * slopes.to(tl.float32)
    _store_values(grad_value_ptr, grad_values, row, head, tokens, T, H, P, HEAD)
    of_keys = tl.where(earlier, decays * _dot(slopes, tl.trans(values), DOT_TYPE), 0.0)
    left = tl.where(reaches_end[:, None], to_end[:, None] * _dot(values, leaving, DOT_TYPE), 0.0)
    left_to_sum = tl.sum(tl.where(reaches_end, weights * tl.sum(keys.to(tl.float32) * left, axis=1), 0.0), axis=0)
    to_keys = _dot(tl.trans(of_keys), _clean(queries), DOT_TYPE) + _taint(queries, later)[:, None] + left
    grad_weights = tl.sum(keys.to(tl.float32) * to_keys, axis=1)
    grad_keys = weights[:, None] * to_keys + (own * own_agreement)[:, None] * queries.to(tl.float32)
    phases = _phase_gradients(grad_keys, keys, LENGTH, STATE)
    turned = _turn(grad_keys, cosines, -sines, LENGTH, STATE)
    _store_vectors(grad_key_ptr, turned, row, head, tokens, T, H, N, STATE)
    to_queries = _to_queries(of_keys, weights[:, None] * keys.to(tl.float32), earlier, DOT_TYPE)
    entered = _dot(slopes, tl.load(state_ptr + place), DOT_TYPE)
    to_queries += tl.where(continues[:, None], tl.exp(sums)[:, None] * entered, 0.0)
    grad_sums = tl.sum(queries.to(tl.float32) * to_queries, axis=1) - weights * grad_weights
    grad_queries = to_queries + (own * own_agreement)[:, None] * keys.to(tl.float32)
    phases += _phase_gradients(grad_queries, queries, LENGTH, STATE)
    turned = _turn(grad_queries, cosines, -sines, LENGTH, STATE)
    _store_vectors(grad_query_ptr, turned, row, head, tokens, T, H, N, STATE)
    # A chunk's last token continues the document before the chunk only where the state passes through.
    grad_sums += tl.where(index == LENGTH - 1, left_to_sum + tl.where(continues, passed, 0.0), 0.0)
    place, inside = (row * T + tokens) * H + head, tokens < T
    tl.store(grad_decay_ptr + place, _document_sums(grad_sums, ends, True), mask=inside)
    tl.store(grad_weight_ptr + place, grad_weights, mask=inside)
    tl.store(grad_own_ptr + place, grad_weights + own_match * own_agreement, mask=inside)
    added = turn_added_ptr + ((row * CHUNKS + chunk) * H + head) * S
    _store_turns(grad_turn_ptr, added, phases, continues, ends, place, inside, S, LENGTH, STATE // 2)


@triton.jit
def turn_gradient_kernel(
    step_ptr, velocity_ptr, document_ptr, grad_turn_ptr, beyond_ptr, grad_velocity_ptr, grad_step_ptr,
    T: tl.constexpr, H: tl.constexpr, S: tl.constexpr, CHUNKS: tl.constexpr, LENGTH: tl.constexpr,
    PAIRS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of the velocities, summed over heads in their order, and u . d(D u) for each head.

    `grad_turn` sums within the chunk; `beyond` is what later chunks of the same document add.
    """
    block, row = tl.program_id(0), tl.program_id(1).to(tl.int64)
    tokens = block * BLOCK + tl.arange(0, BLOCK)
    pairs = tl.arange(0, PAIRS)
    chunk = block * BLOCK // LENGTH
    here, _, _ = _documents(document_ptr, row, tokens, T)
    _, reaches_end = _edges(document_ptr, row, chunk, here, tokens, T, LENGTH)
    inside = tokens < T
    mask = inside[:, None] & (pairs < S)[None, :]
    place = row * T + tokens
    velocities = tl.load(velocity_ptr + place[:, None] * S + pairs[None, :], mask=mask, other=0.0)
    total = tl.zeros((BLOCK, PAIRS), dtype=tl.float32)
    for head in range(H):
        turns = tl.load(grad_turn_ptr + (place * H + head)[:, None] * S + pairs[None, :], mask=mask, other=0.0)
        beyond_place = ((row * CHUNKS + chunk) * H + head) * S + pairs
        beyond = tl.load(beyond_ptr + beyond_place, mask=pairs < S, other=0.0)
        turns += tl.where(reaches_end[:, None], beyond[None, :], 0.0)
        steps = tl.load(step_ptr + place * H + head, mask=inside, other=0.0)
        tl.store(grad_step_ptr + place * H + head, tl.sum(velocities * turns, axis=1), mask=inside)
        total += steps[:, None] * turns
    tl.store(grad_velocity_ptr + place[:, None] * S + pairs[None, :], total, mask=mask)
