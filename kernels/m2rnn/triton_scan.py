"""The Triton kernels of the M2RNN scan: programs walk over time with a part of the state in registers.

A key's row of the state sees no other row, but in the sums over keys: y, and the gradients of v, f and W. So a program has KEY
rows of the state of one row and head, in one warp that waits for no other, and what is summed over keys is a share of each
program, added afterwards in their order.

The forward writes the state before every SEGMENT-th token; the backward walks the segments from the last, computes the
states of one again into a scratch buffer of its own, and walks it in reverse. What a token needs from memory is loaded while the
token before it is computed: nothing of it depends on the state. All in float32, products as IEEE: the state
feeds itself, so what is rounded stays. A reset selects, it does not multiply. No atomics.

Shapes: see `m2rnn`. KEYS is the number of keys of all programs, KEY of one; VALUE is V as a power of two of at least 16.
"""

from kernels.framework.backend import tl, triton


@triton.jit
def _tanh(x):
    """Compute tanh by the exponential, and by its series near zero, where the difference of exponentials has no digits left."""
    shrunk = tl.exp(-2.0 * tl.abs(x))
    far = (1.0 - shrunk) / (1.0 + shrunk)
    square = x * x
    tail = square * (2.0 / 15.0 + square * (-17.0 / 315.0 + square * (62.0 / 2835.0)))
    near = x * (1.0 + square * (-1.0 / 3.0 + tail))
    # Comparisons with NaN are false: it takes the first branch and stays NaN.
    return tl.where(tl.abs(x) > 0.25, tl.where(x < 0, -far, far), near)


@triton.jit
def _token(
    key_ptr, value_ptr, forget_ptr, document_ptr, row, head, first_key, t,
    T: tl.constexpr, H: tl.constexpr, K: tl.constexpr, V: tl.constexpr, KEY: tl.constexpr, VALUE: tl.constexpr,
):  # fmt: skip
    """Load k, v, f of one token, and whether the token before is of the same document; zeros outside the row."""
    inside = (t >= 0) & (t < T)
    # A scalar and a vector of bools make no mask in the interpreter: the scalar bounds the comparison instead.
    num_keys, num_values = tl.where(inside, K, 0), tl.where(inside, V, 0)
    place = (row * T + t) * H + head
    keys, values = first_key + tl.arange(0, KEY), tl.arange(0, VALUE)
    key = tl.load(key_ptr + place * K + keys, mask=keys < num_keys, other=0.0).to(tl.float32)
    value = tl.load(value_ptr + place * V + values, mask=values < num_values, other=0.0).to(tl.float32)
    forget = tl.load(forget_ptr + place, mask=inside, other=0.0)
    here = tl.load(document_ptr + row * T + t, mask=inside, other=-1)
    before = tl.load(document_ptr + row * T + t - 1, mask=inside & (t > 0), other=-1)
    return key, value, forget, inside & (t > 0) & (here == before)


@triton.jit
def _square(pointer, head, V: tl.constexpr, VALUE: tl.constexpr):
    """Load W of one head, (VALUE, VALUE), zero outside."""
    values = tl.arange(0, VALUE)
    mask = (values[:, None] < V) & (values[None, :] < V)
    place = head * V * V + values[:, None] * V + values[None, :]
    return tl.load(pointer + place, mask=mask, other=0.0).to(tl.float32)


@triton.jit
def _store_square(pointer, numbers, V: tl.constexpr, VALUE: tl.constexpr):
    """Write the first V rows and columns of (VALUE, VALUE) numbers."""
    index = tl.arange(0, VALUE)
    mask = (index[:, None] < V) & (index[None, :] < V)
    tl.store(pointer + index[:, None] * V + index[None, :], numbers, mask=mask)


@triton.jit
def _store_row(pointer, numbers, count, SIZE: tl.constexpr):
    """Write the first `count` of SIZE numbers."""
    index = tl.arange(0, SIZE)
    tl.store(pointer + index, numbers.to(pointer.dtype.element_ty), mask=index < count)


@triton.jit
def forward_kernel(
    query_ptr, key_ptr, value_ptr, forget_ptr, transition_ptr, document_ptr, y_ptr, checkpoint_ptr,
    T: tl.constexpr, H: tl.constexpr, K: tl.constexpr, V: tl.constexpr, KEYS: tl.constexpr, KEY: tl.constexpr,
    VALUE: tl.constexpr, SEGMENTS: tl.constexpr, SEGMENT: tl.constexpr,
):  # fmt: skip
    """Compute the share of some keys in y of one row and head, and their rows of the state before each segment."""
    head, row, first_key = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.program_id(2) * KEY
    share = tl.program_id(2) * tl.num_programs(1) + row
    keys, values = first_key + tl.arange(0, KEY), tl.arange(0, VALUE)
    tile = keys[:, None] * VALUE + values[None, :]
    transition = _square(transition_ptr, head, V, VALUE)
    state = tl.zeros((KEY, VALUE), dtype=tl.float32)
    # A tensor: the interpreter's loop variables are plain integers, and a mask of them would be a plain bool.
    first = row * 0
    key, value, forget, is_same = _token(
        key_ptr, value_ptr, forget_ptr, document_ptr, row, head, first_key, first, T, H, K, V, KEY, VALUE
    )
    for segment in range(SEGMENTS):
        tl.store(checkpoint_ptr + ((row * SEGMENTS + segment) * H + head) * (KEYS * VALUE) + tile, state)
        for i in range(SEGMENT):
            t = first + segment * SEGMENT + i
            place = (row * T + t) * H + head
            query = tl.load(query_ptr + place * K + keys, mask=keys < tl.where(t < T, K, 0), other=0.0).to(tl.float32)
            next_key, next_value, next_forget, next_is_same = _token(
                key_ptr, value_ptr, forget_ptr, document_ptr, row, head, first_key, t + 1, T, H, K, V, KEY, VALUE
            )
            previous = tl.where(is_same, state, 0.0)
            mixed = tl.dot(previous, transition, input_precision="ieee", out_dtype=tl.float32)
            candidate = _tanh(mixed + key[:, None] * value[None, :])
            state = forget * previous + (1.0 - forget) * candidate
            y = tl.sum(query[:, None] * state, axis=0)
            tl.store(y_ptr + ((share * T + t) * H + head) * V + values, y, mask=values < tl.where(t < T, V, 0))
            key, value, forget, is_same = next_key, next_value, next_forget, next_is_same


@triton.jit
def _recompute(
    key_ptr, value_ptr, forget_ptr, document_ptr, row, head, first_key, first, state, transition, scratch,
    T: tl.constexpr, H: tl.constexpr, K: tl.constexpr, V: tl.constexpr, KEY: tl.constexpr, VALUE: tl.constexpr,
    SEGMENT: tl.constexpr,
):  # fmt: skip
    """Walk a segment from the state before it; write the state before each token, and its candidate, to the scratch."""
    key, value, forget, is_same = _token(
        key_ptr, value_ptr, forget_ptr, document_ptr, row, head, first_key, first, T, H, K, V, KEY, VALUE
    )
    for i in range(SEGMENT):
        next_key, next_value, next_forget, next_is_same = _token(
            key_ptr, value_ptr, forget_ptr, document_ptr, row, head, first_key, first + i + 1, T, H, K, V, KEY, VALUE
        )
        previous = tl.where(is_same, state, 0.0)
        mixed = tl.dot(previous, transition, input_precision="ieee", out_dtype=tl.float32)
        candidate = _tanh(mixed + key[:, None] * value[None, :])
        state = forget * previous + (1.0 - forget) * candidate
        tl.store(scratch + (2 * i) * (KEY * VALUE), previous)
        tl.store(scratch + (2 * i + 1) * (KEY * VALUE), candidate)
        key, value, forget, is_same = next_key, next_value, next_forget, next_is_same


@triton.jit
def _walked(
    query_ptr, key_ptr, value_ptr, forget_ptr, document_ptr, grad_ptr, scratch, row, head, first_key, start, i,
    T: tl.constexpr, H: tl.constexpr, K: tl.constexpr, V: tl.constexpr, KEY: tl.constexpr, VALUE: tl.constexpr,
):  # fmt: skip
    """Load what a token was computed of, its query and the gradient of its y, and what `_recompute` wrote of it."""
    t = start + i
    inside = (t >= 0) & (t < T)
    place = (row * T + t) * H + head
    keys, values = first_key + tl.arange(0, KEY), tl.arange(0, VALUE)
    key, value, forget, is_same = _token(
        key_ptr, value_ptr, forget_ptr, document_ptr, row, head, first_key, t, T, H, K, V, KEY, VALUE
    )
    query = tl.load(query_ptr + place * K + keys, mask=keys < tl.where(inside, K, 0), other=0.0).to(tl.float32)
    slope = tl.load(grad_ptr + place * V + values, mask=values < tl.where(inside, V, 0), other=0.0).to(tl.float32)
    kept = scratch + 2 * tl.maximum(i, 0) * (KEY * VALUE)
    return key, value, forget, is_same, query, slope, tl.load(kept), tl.load(kept + KEY * VALUE)


@triton.jit
def _gradients(key, value, forget, slope, previous, candidate, grad_state):
    """Compute the gradients of a token's query, key, value and forget, and of what its tanh is of."""
    state = forget * previous + (1.0 - forget) * candidate
    grad_query = tl.sum(state * slope[None, :], axis=1)
    grad_forget = tl.sum(tl.sum(grad_state * (previous - candidate), axis=1), axis=0)
    inner = (1.0 - forget) * grad_state * (1.0 - candidate * candidate)
    return grad_query, tl.sum(inner * value[None, :], axis=1), tl.sum(inner * key[:, None], axis=0), grad_forget, inner


@triton.jit
def backward_kernel(
    query_ptr, key_ptr, value_ptr, forget_ptr, transition_ptr, document_ptr, checkpoint_ptr, grad_ptr, scratch_ptr,
    grad_query_ptr, grad_key_ptr, grad_value_ptr, grad_forget_ptr, grad_transition_ptr,
    T: tl.constexpr, H: tl.constexpr, K: tl.constexpr, V: tl.constexpr, KEYS: tl.constexpr, KEY: tl.constexpr,
    VALUE: tl.constexpr, SEGMENTS: tl.constexpr, SEGMENT: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of some queries and keys of one row and head, and the shares of these keys in the other gradients."""
    head, row, first_key = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.program_id(2) * KEY
    share = tl.program_id(2) * tl.num_programs(1) + row
    rows_of_state, values = tl.arange(0, KEY), tl.arange(0, VALUE)
    tile = rows_of_state[:, None] * VALUE + values[None, :]
    transition = _square(transition_ptr, head, V, VALUE)
    # Two tiles for each token of a segment: the state before it, and its candidate z.
    scratch = scratch_ptr + (share * H + head) * (2 * SEGMENT * KEY * VALUE) + tile
    first = row * 0
    grad_transition = tl.zeros((VALUE, VALUE), dtype=tl.float32)
    grad_state = tl.zeros((KEY, VALUE), dtype=tl.float32)
    for step in range(SEGMENTS):
        segment = SEGMENTS - 1 - step
        start = first + segment * SEGMENT
        checkpoint = checkpoint_ptr + ((row * SEGMENTS + segment) * H + head) * (KEYS * VALUE) + first_key * VALUE
        _recompute(
            key_ptr, value_ptr, forget_ptr, document_ptr, row, head, first_key, start, tl.load(checkpoint + tile),
            transition, scratch, T, H, K, V, KEY, VALUE, SEGMENT,
        )  # fmt: skip
        tl.debug_barrier()
        # In one sum over the row each token would round all before it.
        of_segment = tl.zeros((VALUE, VALUE), dtype=tl.float32)
        key, value, forget, is_same, query, slope, previous, candidate = _walked(
            query_ptr, key_ptr, value_ptr, forget_ptr, document_ptr, grad_ptr, scratch, row, head, first_key, start,
            first + SEGMENT - 1, T, H, K, V, KEY, VALUE,
        )  # fmt: skip
        for j in range(SEGMENT):
            i = first + SEGMENT - 1 - j
            (
                next_key, next_value, next_forget, next_is_same, next_query, next_slope, next_previous, next_candidate,
            ) = _walked(
                query_ptr, key_ptr, value_ptr, forget_ptr, document_ptr, grad_ptr, scratch, row, head, first_key, start,
                i - 1, T, H, K, V, KEY, VALUE,
            )  # fmt: skip
            inside = start + i < T
            num_keys, num_values = tl.where(inside, K, 0), tl.where(inside, V, 0)
            place, place_of_share = (row * T + start + i) * H + head, (share * T + start + i) * H + head
            grad_state += query[:, None] * slope[None, :]
            grad_query, grad_key, grad_value, grad_forget, inner = _gradients(
                key, value, forget, slope, previous, candidate, grad_state
            )
            _store_row(grad_query_ptr + place * K + first_key, grad_query, num_keys - first_key, KEY)
            _store_row(grad_key_ptr + place * K + first_key, grad_key, num_keys - first_key, KEY)
            _store_row(grad_value_ptr + place_of_share * V, grad_value, num_values, VALUE)
            tl.store(grad_forget_ptr + place_of_share, grad_forget, mask=inside)
            of_segment += tl.dot(tl.trans(previous), inner, input_precision="ieee", out_dtype=tl.float32)
            back = tl.dot(inner, tl.trans(transition), input_precision="ieee", out_dtype=tl.float32)
            grad_state = tl.where(is_same, forget * grad_state + back, 0.0)
            key, value, forget, is_same = next_key, next_value, next_forget, next_is_same
            query, slope, previous, candidate = next_query, next_slope, next_previous, next_candidate
        grad_transition += of_segment
        tl.debug_barrier()
    _store_square(grad_transition_ptr + (share * H + head) * (V * V), grad_transition, V, VALUE)
