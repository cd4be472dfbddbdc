"""The Triton kernels of the Mamba-3 scan: parallel over rows, heads and chunks, with a short serial walk over chunks.

Forward: sums of turns for each chunk, carried into phases; queries and keys, turned by these once, in the type of their products;
the state each chunk adds, carried into the states that enter chunks; then y for each chunk. Backward: vectors and states again, the
state gradients that leave chunks by the same walk in reverse, then all gradients of a chunk. No atomics and no autotuning: one
order of every sum, so the same bits each time.

What is not finite stays in its document: a factor that is zero selects, it does not multiply, and the operand of a
product over tokens is cleaned and its documents marked (`_taint`). Products take operands of DOT_TYPE (float32 as IEEE,
or bfloat16) and accumulate in float32; the interpreter multiplies the raw bits of bfloat16, so it gets float32.

Shapes: see `mamba3_scan`. LENGTH is L; HEAD and STATE are P and N as powers of two of at least 16; PAIRS is STATE / 2.
"""

from kernels.framework.backend import tl, triton


@triton.jit
def _add_in_document(left, left_starts, right, right_starts):
    """Combine two running sums; a start drops the sum before it."""
    return tl.where(right_starts > 0, right, left + right), tl.maximum(left_starts, right_starts)


@triton.jit
def _document_sums(terms, starts, REVERSE: tl.constexpr):
    """Return inclusive sums along the first axis that begin anew where `starts` is 1."""
    sums, _ = tl.associative_scan((terms, starts), 0, _add_in_document, reverse=REVERSE)
    return sums


@triton.jit
def _turn(vectors, cosines, sines, LENGTH: tl.constexpr, STATE: tl.constexpr):
    """Turn the pairs (2i, 2i+1) of (L, N) vectors by angles given as (L, N / 2) cosines and sines."""
    even, odd = tl.split(tl.reshape(vectors, (LENGTH, STATE // 2, 2)))
    turned = tl.join(even * cosines - odd * sines, even * sines + odd * cosines)
    return tl.reshape(turned, (LENGTH, STATE))


@triton.jit
def _clean(operand):
    """Return the operand with zeros for what is not finite: comparisons with NaN are false."""
    wide = operand.to(tl.float32)
    return tl.where(tl.abs(wide) < float("inf"), wide, 0.0)


@triton.jit
def _taint(operand, mask):
    """Return for each row i of `mask` (L, L) NaN if a row j of `operand` that it selects is not finite, else 0."""
    # x * 0 is NaN where x is not finite.
    marks = tl.sum(operand.to(tl.float32) * 0.0, axis=1)
    return tl.sum(tl.where(mask, marks[None, :], 0.0), axis=1)


@triton.jit
def _dot(left, right, DOT_TYPE: tl.constexpr):
    return tl.dot(left.to(DOT_TYPE), right.to(DOT_TYPE), input_precision="ieee", out_dtype=tl.float32)


@triton.jit
def _documents(document_ptr, row, tokens, T: tl.constexpr):
    """Return the tokens' documents, and whether the token before, or the one after, is of the same.

    What fills the last chunk continues the sums of the last document and adds nothing to them: begun anew, they would be
    greater than those of its tokens, and the exponential of the difference could be infinite.
    """
    inside = tokens < T
    base = document_ptr + row * T
    here = tl.load(base + tokens, mask=inside, other=-1)
    before = tl.load(base + tokens - 1, mask=inside & (tokens > 0), other=-1)
    after = tl.load(base + tokens + 1, mask=tokens + 1 < T, other=-1)
    return here, (tokens >= T) | ((tokens > 0) & (before == here)), (tokens + 1 < T) & (after == here)


@triton.jit
def _edges(document_ptr, row, chunk, here, tokens, T: tl.constexpr, LENGTH: tl.constexpr):
    """Return for each token whether it continues the document before the chunk, and whether it is of the chunk's last."""
    first = chunk * LENGTH
    base = document_ptr + row * T
    before = tl.load(base + first - 1, mask=first > 0, other=-1)
    last = tl.load(base + tl.minimum(first + LENGTH, T) - 1)
    inside = tokens < T
    return inside & (first > 0) & (here == before), inside & (here == last)


@triton.jit
def _passes(document_ptr, row, chunk, T: tl.constexpr, LENGTH: tl.constexpr):
    """Return whether what enters a chunk leaves it: its last token is of the document of the last token before it."""
    first = chunk * LENGTH
    base = document_ptr + row * T
    before = tl.load(base + first - 1, mask=first > 0, other=-1)
    return (first > 0) & (before == tl.load(base + tl.minimum(first + LENGTH, T) - 1))


@triton.jit
def _within_a_turn(angles):
    """Return the angles without their whole turns, as `chunks_torch.within_a_turn` does."""
    num_turns = tl.floor(angles * 0.15915494309189535 + 0.5)
    return (angles - num_turns * 6.28125) - num_turns * 0.0019353071795864769


@triton.jit
def _turns(
    step_ptr, velocity_ptr, row, head, chunk,
    T: tl.constexpr, H: tl.constexpr, S: tl.constexpr, LENGTH: tl.constexpr, PAIRS: tl.constexpr,
):  # fmt: skip
    """Return D u (L, PAIRS); zero for the pairs that do not turn and outside the row."""
    index, pairs = tl.arange(0, LENGTH), tl.arange(0, PAIRS)
    first = row * T + chunk * LENGTH
    inside = index < T - chunk * LENGTH
    steps = tl.load(step_ptr + first * H + head + index * H, mask=inside, other=0.0)
    turning = inside[:, None] & (pairs < S)[None, :]
    velocities = tl.load(velocity_ptr + first * S + (index[:, None] * S + pairs[None, :]), mask=turning, other=0.0)
    return steps[:, None] * velocities


@triton.jit
def _rotation(
    step_ptr, velocity_ptr, phase_ptr, row, head, chunk, continues, starts,
    T: tl.constexpr, H: tl.constexpr, S: tl.constexpr, CHUNKS: tl.constexpr, LENGTH: tl.constexpr, PAIRS: tl.constexpr,
):  # fmt: skip
    """Return cosines and sines (L, PAIRS) of the tokens' phases, from the phases that enter the chunk."""
    pairs = tl.arange(0, PAIRS)
    turns = _turns(step_ptr, velocity_ptr, row, head, chunk, T, H, S, LENGTH, PAIRS)
    starts_LS = tl.broadcast_to(starts[:, None], (LENGTH, PAIRS))
    place = ((row * CHUNKS + chunk) * H + head) * S
    entering = tl.load(phase_ptr + place + pairs, mask=pairs < S, other=0.0)
    phases = _document_sums(turns, starts_LS, False) + tl.where(continues[:, None], entering[None, :], 0.0)
    phases = _within_a_turn(phases)
    return tl.cos(phases), tl.sin(phases)


@triton.jit
def _vectors(
    pointer, bias_ptr, row, head, chunk, T: tl.constexpr, N: tl.constexpr, LENGTH: tl.constexpr, STATE: tl.constexpr
):  # fmt: skip
    """Load queries or keys (L, STATE) of one head with their bias, float32; zero outside."""
    index, states = tl.arange(0, LENGTH), tl.arange(0, STATE)
    mask = (index < T - chunk * LENGTH)[:, None] & (states < N)[None, :]
    base = pointer + (row * T + chunk * LENGTH) * N
    shared = tl.load(base + (index[:, None] * N + states[None, :]), mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + head * N + states, mask=states < N, other=0.0).to(tl.float32)
    return tl.where(mask, shared + bias[None, :], 0.0)


@triton.jit
def _turned(
    pointer, bias_ptr, row, head, chunk, cosines, sines,
    T: tl.constexpr, N: tl.constexpr, LENGTH: tl.constexpr, STATE: tl.constexpr,
):  # fmt: skip
    """Load queries or keys (L, STATE) of one head with their bias, turned, float32; zero outside."""
    return _turn(_vectors(pointer, bias_ptr, row, head, chunk, T, N, LENGTH, STATE), cosines, sines, LENGTH, STATE)


@triton.jit
def _offsets(T, H: tl.constexpr, CHANNELS: tl.constexpr, chunk, LENGTH: tl.constexpr, TILE: tl.constexpr):
    """Return the places (L, TILE) of one head's channels from its first of the chunk in (B, T, H, CHANNELS), and the mask.

    They are of 32 bits and the same for all chunks: what is of 64 stays one number.
    """
    index, channels = tl.arange(0, LENGTH), tl.arange(0, TILE)
    mask = (index < T - chunk * LENGTH)[:, None] & (channels < CHANNELS)[None, :]
    return index[:, None] * (H * CHANNELS) + channels[None, :], mask


@triton.jit
def _of_head(
    pointer, row, head, chunk,
    T: tl.constexpr, H: tl.constexpr, CHANNELS: tl.constexpr, LENGTH: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Load (L, TILE) of one head from (B, T, H, CHANNELS), float32; zero outside."""
    offsets, mask = _offsets(T, H, CHANNELS, chunk, LENGTH, TILE)
    base = pointer + ((row * T + chunk * LENGTH) * H + head) * CHANNELS
    return tl.load(base + offsets, mask=mask, other=0.0).to(tl.float32)


@triton.jit
def _store(
    pointer, tile, row, head, chunk,
    T: tl.constexpr, H: tl.constexpr, CHANNELS: tl.constexpr, LENGTH: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Write (L, TILE) of one head to (B, T, H, CHANNELS)."""
    offsets, mask = _offsets(T, H, CHANNELS, chunk, LENGTH, TILE)
    base = pointer + ((row * T + chunk * LENGTH) * H + head) * CHANNELS
    tl.store(base + offsets, tile.to(pointer.dtype.element_ty), mask=mask)


@triton.jit
def _scalars(
    step_ptr, rate_ptr, share_ptr, row, head, chunk, has_next, T: tl.constexpr, H: tl.constexpr, LENGTH: tl.constexpr
):  # fmt: skip
    """Return the tokens' D A, g and r."""
    index = tl.arange(0, LENGTH)
    place, inside = (row * T + chunk * LENGTH) * H + head, index < T - chunk * LENGTH
    steps = tl.load(step_ptr + place + index * H, mask=inside, other=0.0)
    rates = tl.load(rate_ptr + place + index * H, mask=inside, other=0.0)
    shares = tl.load(share_ptr + place + index * H, mask=inside, other=0.0)
    next_steps = tl.load(step_ptr + place + H + index * H, mask=has_next, other=0.0)
    next_shares = tl.load(share_ptr + place + H + index * H, mask=has_next, other=0.0)
    own = shares * steps
    return steps * rates, own, own + next_steps * (1.0 - next_shares)


@triton.jit
def _within(here, index, sums):
    """Return masks (L, L) of the earlier and the later tokens of a document, and E."""
    is_same = here[:, None] == here[None, :]
    earlier, later = is_same & (index[:, None] > index[None, :]), is_same & (index[:, None] < index[None, :])
    gaps = tl.where(earlier, sums[:, None] - sums[None, :], 0.0)
    return earlier, later, tl.where(earlier, tl.exp(gaps), 0.0)


@triton.jit
def _last(sums, LENGTH: tl.constexpr):
    """Return the last entry of a vector over the chunk, by a selection: its other entries may be anything."""
    return tl.sum(tl.where(tl.arange(0, LENGTH) == LENGTH - 1, sums, 0.0), axis=0)


@triton.jit
def chunk_turns_kernel(
    step_ptr, velocity_ptr, document_ptr, added_ptr,
    T: tl.constexpr, H: tl.constexpr, S: tl.constexpr, CHUNKS: tl.constexpr, LENGTH: tl.constexpr, PAIRS: tl.constexpr,
):  # fmt: skip
    """Compute the sum of turns that each chunk adds to the phases of the document it ends with."""
    chunk, head, row = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    tokens = chunk * LENGTH + tl.arange(0, LENGTH)
    here, _, _ = _documents(document_ptr, row, tokens, T)
    _, reaches_end = _edges(document_ptr, row, chunk, here, tokens, T, LENGTH)
    turns = _turns(step_ptr, velocity_ptr, row, head, chunk, T, H, S, LENGTH, PAIRS)
    total = tl.sum(tl.where(reaches_end[:, None], turns, 0.0), axis=0)
    pairs = tl.arange(0, PAIRS)
    tl.store(added_ptr + ((row * CHUNKS + chunk) * H + head) * S + pairs, total, mask=pairs < S)


@triton.jit
def carry_kernel(
    added_ptr, factor_ptr, entering_ptr, document_ptr,
    T: tl.constexpr, H: tl.constexpr, WIDTH: tl.constexpr, CHUNKS: tl.constexpr, LENGTH: tl.constexpr,
    HAS_FACTOR: tl.constexpr, IS_PHASE: tl.constexpr, REVERSE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute what enters each chunk (or leaves it, in REVERSE), chunk after chunk, for WIDTH numbers of each head.

    What passes through a chunk is scaled by its factor, and dropped where the chunk's last token is of another document
    than the last token before the chunk. Of phases (IS_PHASE), whole turns are taken off at each chunk.
    """
    block, head, row = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    entries = block * BLOCK + tl.arange(0, BLOCK)
    inside = entries < WIDTH
    carried = tl.zeros((BLOCK,), dtype=tl.float32)
    for step in range(CHUNKS):
        chunk = CHUNKS - 1 - step if REVERSE else step
        place = (row * CHUNKS + chunk) * H + head
        tl.store(entering_ptr + place * WIDTH + entries, carried, mask=inside)
        passes = _passes(document_ptr, row, chunk, T, LENGTH)
        if HAS_FACTOR:
            carried = carried * tl.load(factor_ptr + place)
        added = tl.load(added_ptr + place * WIDTH + entries, mask=inside, other=0.0)
        carried = tl.where(passes, carried, 0.0) + added
        if IS_PHASE:
            carried = _within_a_turn(carried)


@triton.jit
def turned_vectors_kernel(
    query_ptr, key_ptr, query_bias_ptr, key_bias_ptr, step_ptr, velocity_ptr, document_ptr, phase_ptr,
    turned_query_ptr, turned_key_ptr,
    T: tl.constexpr, H: tl.constexpr, N: tl.constexpr, S: tl.constexpr, CHUNKS: tl.constexpr, LENGTH: tl.constexpr,
    STATE: tl.constexpr,
):  # fmt: skip
    """Compute the queries and keys of a chunk and head with their biases, turned, once for all kernels that multiply them."""
    chunk, head, row = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    tokens = chunk * LENGTH + tl.arange(0, LENGTH)
    here, has_previous, _ = _documents(document_ptr, row, tokens, T)
    continues, _ = _edges(document_ptr, row, chunk, here, tokens, T, LENGTH)
    starts = (~has_previous).to(tl.int32)
    cosines, sines = _rotation(
        step_ptr, velocity_ptr, phase_ptr, row, head, chunk, continues, starts, T, H, S, CHUNKS, LENGTH, STATE // 2
    )  # fmt: skip
    queries = _turned(query_ptr, query_bias_ptr, row, head, chunk, cosines, sines, T, N, LENGTH, STATE)
    _store(turned_query_ptr, queries, row, head, chunk, T, H, N, LENGTH, STATE)
    keys = _turned(key_ptr, key_bias_ptr, row, head, chunk, cosines, sines, T, N, LENGTH, STATE)
    _store(turned_key_ptr, keys, row, head, chunk, T, H, N, LENGTH, STATE)


@triton.jit
def _from_chunk(sums, weights, reaches_end, values, LENGTH: tl.constexpr):
    """Return w_j r_j x_j (L, HEAD), by which a chunk adds to the state that leaves it."""
    factors = tl.exp(tl.where(reaches_end, _last(sums, LENGTH) - sums, 0.0)) * weights
    return tl.where(reaches_end[:, None], values.to(tl.float32) * factors[:, None], 0.0)


@triton.jit
def _tile(HEAD: tl.constexpr, STATE: tl.constexpr):
    """Return places in a state's tile (HEAD, STATE)."""
    return tl.arange(0, HEAD)[:, None] * STATE + tl.arange(0, STATE)[None, :]


@triton.jit
def span_state_kernel(
    key_ptr, value_ptr, step_ptr, rate_ptr, share_ptr, document_ptr, added_ptr, factor_ptr,
    T: tl.constexpr, H: tl.constexpr, P: tl.constexpr, N: tl.constexpr, CHUNKS: tl.constexpr, LENGTH: tl.constexpr,
    SPAN: tl.constexpr, HEAD: tl.constexpr, STATE: tl.constexpr, OF_GRADIENT: tl.constexpr, DOT_TYPE: tl.constexpr,
):  # fmt: skip
    """Compute what each span of SPAN chunks adds to the state, and the span's factor: the product of its chunks' exp(cs_L).

    A chunk adds sum_j w_j r_j x_j k_j^T. OF_GRADIENT: what each span adds to the gradient of the state that enters it, of a
    chunk sum_i c_i exp(cs_i) gy_i q_i^T, where the values are the gradients of y and the keys are the queries; last chunk first.
    """
    span, head, row = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    index = tl.arange(0, LENGTH)
    first, end = span * SPAN, tl.minimum(span * SPAN + SPAN, CHUNKS)
    total = tl.zeros((HEAD, STATE), dtype=tl.float32)
    factor = 1.0
    for step in range(first, end):
        chunk = first + end - 1 - step if OF_GRADIENT else step
        tokens = chunk * LENGTH + index
        here, has_previous, has_next = _documents(document_ptr, row, tokens, T)
        continues, reaches_end = _edges(document_ptr, row, chunk, here, tokens, T, LENGTH)
        starts = (~has_previous).to(tl.int32)
        vectors = _of_head(key_ptr, row, head, chunk, T, H, N, LENGTH, STATE)
        values = _of_head(value_ptr, row, head, chunk, T, H, P, LENGTH, HEAD)
        log_decays, _, weights = _scalars(step_ptr, rate_ptr, share_ptr, row, head, chunk, has_next, T, H, LENGTH)
        sums = _document_sums(log_decays, starts, False)
        if OF_GRADIENT:
            selected = continues
            weighted = tl.where(continues[:, None], values * tl.exp(sums)[:, None], 0.0)
        else:
            selected = reaches_end
            weighted = _from_chunk(sums, weights, reaches_end, values, LENGTH)
        final = tl.exp(_last(sums, LENGTH))
        passing = tl.where(_passes(document_ptr, row, chunk, T, LENGTH), final * total, 0.0)
        total = passing + _dot(tl.trans(weighted), tl.where(selected[:, None], vectors, 0.0), DOT_TYPE)
        factor *= final
    place = (row * tl.cdiv(CHUNKS, SPAN) + span) * H + head
    tl.store(factor_ptr + place, factor)
    tl.store(added_ptr + place * (HEAD * STATE) + _tile(HEAD, STATE), total)


@triton.jit
def span_output_kernel(
    query_ptr, key_ptr, value_ptr, step_ptr, rate_ptr, share_ptr, document_ptr, state_ptr, y_ptr,
    T: tl.constexpr, H: tl.constexpr, P: tl.constexpr, N: tl.constexpr, CHUNKS: tl.constexpr, LENGTH: tl.constexpr,
    SPAN: tl.constexpr, HEAD: tl.constexpr, STATE: tl.constexpr, DOT_TYPE: tl.constexpr,
):  # fmt: skip
    """Compute y of each span, chunk after chunk, from the state that enters it."""
    span, head, row = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    index = tl.arange(0, LENGTH)
    of_span = (row * tl.cdiv(CHUNKS, SPAN) + span) * H + head
    state = tl.load(state_ptr + of_span * (HEAD * STATE) + _tile(HEAD, STATE))
    for chunk in range(span * SPAN, tl.minimum(span * SPAN + SPAN, CHUNKS)):
        tokens = chunk * LENGTH + index
        here, has_previous, has_next = _documents(document_ptr, row, tokens, T)
        continues, reaches_end = _edges(document_ptr, row, chunk, here, tokens, T, LENGTH)
        starts = (~has_previous).to(tl.int32)
        queries = _of_head(query_ptr, row, head, chunk, T, H, N, LENGTH, STATE).to(DOT_TYPE)
        keys = _of_head(key_ptr, row, head, chunk, T, H, N, LENGTH, STATE).to(DOT_TYPE)
        values = _of_head(value_ptr, row, head, chunk, T, H, P, LENGTH, HEAD).to(DOT_TYPE)
        log_decays, own, weights = _scalars(step_ptr, rate_ptr, share_ptr, row, head, chunk, has_next, T, H, LENGTH)
        sums = _document_sums(log_decays, starts, False)

        carried = _dot(queries, tl.trans(state), DOT_TYPE)
        y = tl.where(continues[:, None], tl.exp(sums)[:, None] * carried, 0.0)
        earlier, _, decays = _within(here, index, sums)
        matches = _dot(queries, tl.trans(keys), DOT_TYPE)
        kernel = tl.where(earlier, decays * matches * weights[None, :], 0.0)
        is_own = index[:, None] == index[None, :]
        kernel = tl.where(is_own, own[:, None] * matches, kernel)
        y += _dot(kernel, _clean(values), DOT_TYPE) + _taint(values, earlier | is_own)[:, None]
        _store(y_ptr, y, row, head, chunk, T, H, P, LENGTH, HEAD)

        passing = tl.where(_passes(document_ptr, row, chunk, T, LENGTH), tl.exp(_last(sums, LENGTH)) * state, 0.0)
        weighted = _from_chunk(sums, weights, reaches_end, values, LENGTH)
        state = passing + _dot(tl.trans(weighted), tl.where(reaches_end[:, None], keys, 0.0), DOT_TYPE)
