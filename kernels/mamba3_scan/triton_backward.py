"""The Triton kernels of the Mamba-3 scan's backward: gradients of turned queries, of turned keys and all else, and of the turns.

The first walks a span forward, with the state in registers, the second backward, with the state's gradient: registers do not
hold both. Gradients of r and cs are read off the vectors': dr_j = k_j . dk_j / r_j and dcs_i = q_i . dq_i - k_i . dk_i, each
without the diagonal's part. Vectors are kept in DOT_TYPE, in which they are multiplied anyway: half the registers where that
is bfloat16. A gradient is stored as soon as it is made.
Shapes, constants and rules are those of `triton_forward`.
"""

from kernels.framework.backend import tl, triton
from kernels.mamba3_scan.triton_forward import (
    _clean,
    _document_sums,
    _documents,
    _dot,
    _edges,
    _from_chunk,
    _last,
    _of_head,
    _passes,
    _rotation,
    _scalars,
    _store,
    _taint,
    _tile,
    _turn,
    _within,
)


@triton.jit
def _phase_gradients(grads, vectors, LENGTH: tl.constexpr, STATE: tl.constexpr):
    """Return the gradients (L, PAIRS) of the pairs' angles, of turned vectors as they were multiplied and of their gradients.

    Nearly all that queries and keys add cancels if nothing is rounded in between: by no sine that turns back, and in no buffer.
    """
    grad_even, grad_odd = tl.split(tl.reshape(grads, (LENGTH, STATE // 2, 2)))
    even, odd = tl.split(tl.reshape(vectors, (LENGTH, STATE // 2, 2)))
    return grad_odd * even - grad_even * odd


@triton.jit
def _row_dot(left, right):
    """Return the dot product of each row, in float32."""
    return tl.sum(left.to(tl.float32) * right.to(tl.float32), axis=1)


@triton.jit
def span_query_gradient_kernel(
    query_ptr, key_ptr, value_ptr, step_ptr, rate_ptr, share_ptr, document_ptr,
    state_ptr, grad_ptr, grad_query_ptr, grad_sum_ptr, entering_ptr,
    T: tl.constexpr, H: tl.constexpr, P: tl.constexpr, N: tl.constexpr, CHUNKS: tl.constexpr, LENGTH: tl.constexpr,
    SPAN: tl.constexpr, HEAD: tl.constexpr, STATE: tl.constexpr, DOT_TYPE: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of the queries of a span, chunk after chunk, from the state that enters it.

    They are of queries as they were turned. Stored are also the queries' parts of the gradients of cs, and the state that enters
    each chunk.
    """
    span, head, row = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    index = tl.arange(0, LENGTH)
    of_span = (row * tl.cdiv(CHUNKS, SPAN) + span) * H + head
    state = tl.load(state_ptr + of_span * (HEAD * STATE) + _tile(HEAD, STATE))
    for chunk in range(span * SPAN, tl.minimum(span * SPAN + SPAN, CHUNKS)):
        tokens = chunk * LENGTH + index
        here, has_previous, has_next = _documents(document_ptr, row, tokens, T)
        continues, reaches_end = _edges(document_ptr, row, chunk, here, tokens, T, LENGTH)
        starts = (~has_previous).to(tl.int32)
        keys = _of_head(key_ptr, row, head, chunk, T, H, N, LENGTH, STATE).to(DOT_TYPE)
        values = _of_head(value_ptr, row, head, chunk, T, H, P, LENGTH, HEAD).to(DOT_TYPE)
        slopes = _of_head(grad_ptr, row, head, chunk, T, H, P, LENGTH, HEAD).to(DOT_TYPE)
        log_decays, own, weights = _scalars(step_ptr, rate_ptr, share_ptr, row, head, chunk, has_next, T, H, LENGTH)
        sums = _document_sums(log_decays, starts, False)
        of_chunk = ((row * CHUNKS + chunk) * H + head) * (HEAD * STATE)
        tl.store(entering_ptr + of_chunk + _tile(HEAD, STATE), state.to(entering_ptr.dtype.element_ty))

        to_queries = tl.where(continues[:, None], tl.exp(sums)[:, None] * _dot(slopes, state, DOT_TYPE), 0.0)
        earlier, _, decays = _within(here, index, sums)
        of_keys = tl.where(earlier, decays * _dot(slopes, tl.trans(values), DOT_TYPE), 0.0)
        weighted = weights[:, None] * keys.to(tl.float32)
        to_queries += _dot(of_keys, _clean(weighted), DOT_TYPE) + _taint(weighted, earlier)[:, None]
        passing = tl.where(_passes(document_ptr, row, chunk, T, LENGTH), tl.exp(_last(sums, LENGTH)) * state, 0.0)
        weighted = _from_chunk(sums, weights, reaches_end, values, LENGTH)
        state = passing + _dot(tl.trans(weighted), tl.where(reaches_end[:, None], keys, 0.0), DOT_TYPE)

        queries = _of_head(query_ptr, row, head, chunk, T, H, N, LENGTH, STATE)
        place = (row * T + chunk * LENGTH) * H + head
        tl.store(grad_sum_ptr + place + index * H, tl.sum(queries * to_queries, axis=1), mask=tokens < T)
        grad_queries = to_queries + (own * _row_dot(slopes, values))[:, None] * keys.to(tl.float32)
        _store(grad_query_ptr, grad_queries, row, head, chunk, T, H, N, LENGTH, STATE)


@triton.jit
def span_key_gradient_kernel(
    query_ptr, key_ptr, value_ptr, step_ptr, rate_ptr, share_ptr, document_ptr,
    entering_ptr, leaving_ptr, grad_ptr, grad_sum_ptr,
    grad_key_ptr, grad_value_ptr, grad_decay_ptr, grad_weight_ptr, grad_own_ptr,
    T: tl.constexpr, H: tl.constexpr, P: tl.constexpr, N: tl.constexpr, CHUNKS: tl.constexpr, LENGTH: tl.constexpr,
    SPAN: tl.constexpr, HEAD: tl.constexpr, STATE: tl.constexpr, DOT_TYPE: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of turned keys, values and scalars of a span, its last chunk first; of cs, with the queries' part."""
    span, head, row = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    index = tl.arange(0, LENGTH)
    first, end = span * SPAN, tl.minimum(span * SPAN + SPAN, CHUNKS)
    of_span = (row * tl.cdiv(CHUNKS, SPAN) + span) * H + head
    leaving = tl.load(leaving_ptr + of_span * (HEAD * STATE) + _tile(HEAD, STATE))
    for step in range(first, end):
        chunk = first + end - 1 - step
        tokens = chunk * LENGTH + index
        here, has_previous, has_next = _documents(document_ptr, row, tokens, T)
        continues, reaches_end = _edges(document_ptr, row, chunk, here, tokens, T, LENGTH)
        starts, ends = (~has_previous).to(tl.int32), (~has_next).to(tl.int32)
        queries = _of_head(query_ptr, row, head, chunk, T, H, N, LENGTH, STATE).to(DOT_TYPE)
        keys = _of_head(key_ptr, row, head, chunk, T, H, N, LENGTH, STATE).to(DOT_TYPE)
        values = _of_head(value_ptr, row, head, chunk, T, H, P, LENGTH, HEAD).to(DOT_TYPE)
        slopes = _of_head(grad_ptr, row, head, chunk, T, H, P, LENGTH, HEAD).to(DOT_TYPE)
        log_decays, own, weights = _scalars(step_ptr, rate_ptr, share_ptr, row, head, chunk, has_next, T, H, LENGTH)
        sums = _document_sums(log_decays, starts, False)
        to_end = tl.where(reaches_end, tl.exp(tl.where(reaches_end, _last(sums, LENGTH) - sums, 0.0)), 0.0)
        earlier, later, decays = _within(here, index, sums)
        tainted, own_agreement = _taint(queries, later), _row_dot(slopes, values)
        of_keys = tl.where(earlier, decays * _dot(slopes, tl.trans(values), DOT_TYPE), 0.0)
        to_keys = tl.where(reaches_end[:, None], to_end[:, None] * _dot(values, leaving, DOT_TYPE), 0.0)
        to_keys += _dot(tl.trans(of_keys), _clean(queries), DOT_TYPE) + tainted[:, None]
        grad_weights = tl.sum(keys.to(tl.float32) * to_keys, axis=1)
        grad_keys = weights[:, None] * to_keys + (own * own_agreement)[:, None] * queries.to(tl.float32)
        _store(grad_key_ptr, grad_keys, row, head, chunk, T, H, N, LENGTH, STATE)
        # Read again: kept, they would spill.
        values = _of_head(value_ptr, row, head, chunk, T, H, P, LENGTH, HEAD).to(DOT_TYPE)
        slopes = _of_head(grad_ptr, row, head, chunk, T, H, P, LENGTH, HEAD).to(DOT_TYPE)
        own_match = _row_dot(queries, keys)
        kernel = tl.where(earlier, decays * _dot(queries, tl.trans(keys), DOT_TYPE), 0.0)
        to_values = _dot(tl.trans(kernel), _clean(slopes), DOT_TYPE) + _taint(slopes, later)[:, None]
        left = tl.where(reaches_end[:, None], to_end[:, None] * _dot(keys, tl.trans(leaving), DOT_TYPE), 0.0)
        left_to_sum = tl.sum(tl.where(reaches_end, weights * _row_dot(values, left), 0.0), axis=0)
        to_values += left
        grad_values = weights[:, None] * to_values + (own * own_match)[:, None] * slopes.to(tl.float32)
        _store(grad_value_ptr, grad_values, row, head, chunk, T, H, P, LENGTH, HEAD)
        of_chunk = ((row * CHUNKS + chunk) * H + head) * (HEAD * STATE)
        entering = tl.load(entering_ptr + of_chunk + _tile(HEAD, STATE)).to(tl.float32)
        factor = tl.exp(_last(sums, LENGTH))
        passed = tl.sum(tl.sum(leaving * entering, axis=1), axis=0)
        passing = tl.where(_passes(document_ptr, row, chunk, T, LENGTH), factor * leaving, 0.0)
        weighted = tl.where(continues[:, None], slopes.to(tl.float32) * tl.exp(sums)[:, None], 0.0)
        queries = _of_head(query_ptr, row, head, chunk, T, H, N, LENGTH, STATE).to(DOT_TYPE)
        leaving = passing + _dot(tl.trans(weighted), tl.where(continues[:, None], queries, 0.0), DOT_TYPE)
        place, inside = (row * T + chunk * LENGTH) * H + head + index * H, tokens < T
        grad_sums = tl.load(grad_sum_ptr + place, mask=inside, other=0.0) - weights * grad_weights
        # A chunk's last token continues the document before the chunk only where the state passes through.
        grad_sums += tl.where(index == LENGTH - 1, left_to_sum + tl.where(continues, factor * passed, 0.0), 0.0)
        tl.store(grad_decay_ptr + place, _document_sums(grad_sums, ends, True), mask=inside)
        tl.store(grad_weight_ptr + place, grad_weights, mask=inside)
        tl.store(grad_own_ptr + place, grad_weights + own_match * own_agreement, mask=inside)


@triton.jit
def vector_gradient_kernel(
    query_ptr, key_ptr, step_ptr, velocity_ptr, document_ptr, phase_ptr, of_query_ptr, of_key_ptr,
    grad_query_ptr, grad_key_ptr, grad_query_bias_ptr, grad_key_bias_ptr, grad_turn_ptr, turn_added_ptr,
    T: tl.constexpr, H: tl.constexpr, N: tl.constexpr, S: tl.constexpr, CHUNKS: tl.constexpr, LENGTH: tl.constexpr,
    GROUP: tl.constexpr, STATE: tl.constexpr,
):  # fmt: skip
    """Compute, from the gradients of turned queries and keys, those of a chunk summed over a group of heads, in their order.

    Those of the biases are summed over the chunk, those of the turns within it.
    """
    chunk, group, row = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    tokens, pairs, states = chunk * LENGTH + tl.arange(0, LENGTH), tl.arange(0, STATE // 2), tl.arange(0, STATE)
    here, has_previous, has_next = _documents(document_ptr, row, tokens, T)
    continues, _ = _edges(document_ptr, row, chunk, here, tokens, T, LENGTH)
    starts, ends = (~has_previous).to(tl.int32), (~has_next).to(tl.int32)
    query_sums = tl.zeros((LENGTH, STATE), dtype=tl.float32)
    key_sums = tl.zeros((LENGTH, STATE), dtype=tl.float32)
    for head in range(group * GROUP, tl.minimum(group * GROUP + GROUP, H)):
        cosines, sines = _rotation(
            step_ptr, velocity_ptr, phase_ptr, row, head, chunk, continues, starts, T, H, S, CHUNKS, LENGTH, STATE // 2
        )  # fmt: skip
        of_chunk = (row * CHUNKS + chunk) * H + head
        grads = _of_head(of_query_ptr, row, head, chunk, T, H, N, LENGTH, STATE)
        vectors = _of_head(query_ptr, row, head, chunk, T, H, N, LENGTH, STATE)
        phases = _phase_gradients(grads, vectors, LENGTH, STATE)
        grads = _turn(grads, cosines, -sines, LENGTH, STATE)
        tl.store(grad_query_bias_ptr + of_chunk * N + states, tl.sum(grads, axis=0), mask=states < N)
        query_sums += grads
        grads = _of_head(of_key_ptr, row, head, chunk, T, H, N, LENGTH, STATE)
        vectors = _of_head(key_ptr, row, head, chunk, T, H, N, LENGTH, STATE)
        phases += _phase_gradients(grads, vectors, LENGTH, STATE)
        grads = _turn(grads, cosines, -sines, LENGTH, STATE)
        tl.store(grad_key_bias_ptr + of_chunk * N + states, tl.sum(grads, axis=0), mask=states < N)
        key_sums += grads
        added = tl.sum(tl.where(continues[:, None], phases, 0.0), axis=0)
        tl.store(turn_added_ptr + of_chunk * S + pairs, added, mask=pairs < S)
        turns = _document_sums(phases, tl.broadcast_to(ends[:, None], (LENGTH, STATE // 2)), True)
        _store(grad_turn_ptr, turns, row, head, chunk, T, H, S, LENGTH, STATE // 2)
    _store(grad_query_ptr, query_sums, row, group, chunk, T, tl.cdiv(H, GROUP), N, LENGTH, STATE)
    _store(grad_key_ptr, key_sums, row, group, chunk, T, tl.cdiv(H, GROUP), N, LENGTH, STATE)


@triton.jit
def turn_gradient_kernel(
    step_ptr, rate_ptr, share_ptr, velocity_ptr, document_ptr, grad_turn_ptr, beyond_ptr,
    grad_decay_ptr, grad_weight_ptr, grad_own_ptr, grad_velocity_ptr, grad_step_ptr, grad_rate_ptr, grad_share_ptr,
    T: tl.constexpr, H: tl.constexpr, S: tl.constexpr, CHUNKS: tl.constexpr, LENGTH: tl.constexpr,
    PAIRS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of the velocities, summed over heads in their order, and of D, A and l of each head.

    `grad_turn` sums within the chunk; `beyond` is what later chunks of the same document add. The gradients of D A, r and g
    are `grad_decay`, `grad_weight` and `grad_own`; r of the token before holds this token's D (1 - l) where both are of one
    document.
    """
    block, row = tl.program_id(0), tl.program_id(1).to(tl.int64)
    tokens = block * BLOCK + tl.arange(0, BLOCK)
    pairs = tl.arange(0, PAIRS)
    chunk = block * BLOCK // LENGTH
    here, is_same, _ = _documents(document_ptr, row, tokens, T)
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
        slots = place * H + head
        steps = tl.load(step_ptr + slots, mask=inside, other=0.0)
        shares = tl.load(share_ptr + slots, mask=inside, other=0.0)
        of_decay = tl.load(grad_decay_ptr + slots, mask=inside, other=0.0)
        of_own = tl.load(grad_own_ptr + slots, mask=inside, other=0.0)
        earlier = tl.load(grad_weight_ptr + slots - H, mask=inside & is_same, other=0.0)
        of_step = tl.load(rate_ptr + slots, mask=inside, other=0.0) * of_decay + shares * of_own
        of_step += tl.sum(velocities * turns, axis=1) + (1 - shares) * earlier
        tl.store(grad_step_ptr + slots, of_step, mask=inside)
        tl.store(grad_rate_ptr + slots, steps * of_decay, mask=inside)
        tl.store(grad_share_ptr + slots, steps * (of_own - earlier), mask=inside)
        total += steps[:, None] * turns
    tl.store(grad_velocity_ptr + place[:, None] * S + pairs[None, :], total, mask=mask)
