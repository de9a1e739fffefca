"""What numba does not vectorise by itself, written as vectors of eight; IEEE basic operations only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from dask_uncert.formulas.fixed_point import FIRST, SECOND

LANES = 8
ROWS = 6  # of `sum_lanes`
ROUNDS = 2.0**52 + 2.0**51
"""Added to it, a small double is rounded to a whole number, ties to even; the last bits hold it."""
UNITS = (1.0, FIRST, SECOND, FIRST, SECOND, SECOND, SECOND, SECOND)
FACTORS = ("1xxyyyyy", "11111x1y", "11x1xxyx")
"""1, x, x*x, y, y*x, (y*x)*x, y*y, (y*y)*x: the product of the three, lane by lane."""


@intrinsic
def add_powers(typing, flat, at, x, y):
    """Add the eight powers of y and x, in fixed point, to flat[at : at + 8]: one row of the cache, two additions.

    flat: (n,) int64; at: uint64, not checked; x, y: float64 in [-1, 1]. Order as in `formulas.soft_sweep.moment_powers`.
    """
    lane, real, whole = ir.IntType(32), ir.VectorType(ir.DoubleType(), LANES), ir.VectorType(ir.IntType(64), LANES)

    def reals(values: Sequence[float]) -> Any:
        return ir.Constant(real, [ir.DoubleType()(value) for value in values])

    def build(context, builder, signature, arguments):
        array, place, *values = arguments
        known = reals([1.0] * LANES)
        for number, value in enumerate(values, 1):
            known = builder.insert_element(known, value, lane(number))

        def factor(letters: str) -> Any:
            places = ir.Constant(ir.VectorType(lane, LANES), [lane("1xy".index(letter)) for letter in letters])
            return builder.shuffle_vector(known, known, places)

        product = reals(UNITS)
        one, two, three = (factor(letters) for letters in FACTORS)
        product = builder.fmul(builder.fmul(builder.fmul(one, two), three), product)
        bits = builder.bitcast(builder.fadd(product, reals([ROUNDS] * LANES)), whole)
        zero = ir.Constant(whole, [ir.IntType(64)(int(np.float64(ROUNDS).view(np.int64)))] * LANES)
        data = context.make_array(signature.args[0])(context, builder, array).data
        target = builder.bitcast(builder.gep(data, [place]), whole.as_pointer())
        builder.store(builder.add(builder.load(target, align=8), builder.sub(bits, zero)), target, align=8)
        return context.get_dummy_value()

    return types.void(flat, types.uint64, types.float64, types.float64), build


@intrinsic
def fetch(typing, flat, at):
    """Ask for the row of the cache with flat[at], which is going to be written. flat: (n,); at: uint64, not checked."""
    word = ir.IntType(32)

    def build(context, builder, signature, arguments):
        array, place = arguments
        data = context.make_array(signature.args[0])(context, builder, array).data
        pointer = builder.bitcast(builder.gep(data, [place]), ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, word, word, word])
        function = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], kind)
        builder.call(function, [pointer, word(1), word(3), word(1)])  # to write, to the nearest cache, data
        return context.get_dummy_value()

    return types.void(flat, types.uint64), build


PAIRS = (
    ((0, 8, 1, 9, 4, 12, 5, 13), (2, 10, 3, 11, 6, 14, 7, 15)),
    ((0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15)),
    ((0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15)),
)
COLUMNS = (0, 2, 1, 3, 4, 6, 5, 7)
"""Three rounds of exchanges between two vectors, 1, 2 and 4 rows apart, turn eight rows into columns, which lie in this order."""


@intrinsic
def turn_square(typing, address, step, target, at, row):
    """Copy eight times eight float32 to target[at + i * row + j], j by j from address + j * step + 4 * i.

    address, step: int64, in bytes; target: (n,) float32; at, row: int64, not checked.
    """
    lane, vector = ir.IntType(32), ir.VectorType(ir.FloatType(), LANES)

    def build(context, builder, signature, arguments):
        source, stride, array, place, width = arguments
        rows = []
        for _ in range(LANES):
            rows.append(builder.load(builder.inttoptr(source, vector.as_pointer()), align=4))
            source = builder.add(source, stride)
        for apart, masks in zip((1, 2, 4), PAIRS, strict=True):
            low, high = (ir.Constant(ir.VectorType(lane, LANES), [lane(i) for i in mask]) for mask in masks)
            for first in (i for i in range(LANES) if not i & apart):
                a, b = rows[first], rows[first + apart]
                rows[first], rows[first + apart] = builder.shuffle_vector(a, b, low), builder.shuffle_vector(a, b, high)
        data = context.make_array(signature.args[2])(context, builder, array).data
        for i in COLUMNS:
            builder.store(rows[i], builder.bitcast(builder.gep(data, [place]), vector.as_pointer()), align=4)
            place = builder.add(place, width)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, target, types.int64, types.int64), build


@intrinsic
def load_single(typing, address):
    """Return the float32 at an address, int64."""

    def build(context, builder, signature, arguments):
        return builder.load(builder.inttoptr(arguments[0], ir.FloatType().as_pointer()), align=4)

    return types.float32(types.int64), build


@intrinsic
def copy_eight(typing, address, target, at):
    """Copy eight float32 from an address to target[at : at + 8]. address, at: int64; target: (n,) float32, not checked."""
    vector = ir.VectorType(ir.FloatType(), LANES)

    def build(context, builder, signature, arguments):
        source, array, place = arguments
        data = context.make_array(signature.args[1])(context, builder, array).data
        values = builder.load(builder.inttoptr(source, vector.as_pointer()), align=4)
        builder.store(values, builder.bitcast(builder.gep(data, [place]), vector.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(types.int64, target, types.int64), build


@intrinsic
def copy_four(typing, source, start, target, at):
    """Copy four numbers, source[start : start + 4] to target[at : at + 4]; (n,) of one dtype, int64, not checked."""

    def build(context, builder, signature, arguments):
        kept, first, array, place = arguments
        data, goal = (
            context.make_array(signature.args[i])(context, builder, one).data for i, one in ((0, kept), (2, array))
        )
        vector = ir.VectorType(data.type.pointee, 4).as_pointer()
        size = context.get_abi_sizeof(data.type.pointee)
        values = builder.load(builder.bitcast(builder.gep(data, [first]), vector), align=size)
        builder.store(values, builder.bitcast(builder.gep(goal, [place]), vector), align=size)
        return context.get_dummy_value()

    return types.void(source, types.int64, target, types.int64), build


@intrinsic
def sum_lanes(typing, rows, pitch, first, last, sums, lanes):
    """Write the sums over m in first..last - 1 of rows[i, m * L : m * L + L] to sums[i * L : i * L + L], six rows.

    rows: (6, pitch) int64; first < last: int64, not checked; lanes: a tuple of as many items, L, as there are lanes.
    """
    word, count = ir.IntType(64), len(lanes)
    vector = ir.VectorType(word, count)

    def build(context, builder, signature, arguments):
        array, width, begin, end, target, _ = arguments
        data = context.make_array(signature.args[0])(context, builder, array).data
        starts = [builder.gep(data, [builder.mul(width, word(i))]) for i in range(ROWS)]
        before, loop, after = builder.block, builder.append_basic_block("lanes"), builder.append_basic_block("added")
        builder.branch(loop)
        builder.position_at_end(loop)
        m, found = builder.phi(word), [builder.phi(vector) for _ in range(ROWS)]
        place = builder.mul(m, word(count))
        places = (builder.bitcast(builder.gep(start, [place]), vector.as_pointer()) for start in starts)
        added = [builder.add(one, builder.load(at, align=8)) for one, at in zip(found, places, strict=True)]
        following = builder.add(m, word(1))
        for phi, start, again in zip(
            (m, *found), (begin, *[ir.Constant(vector, [0] * count)] * ROWS), (following, *added), strict=True
        ):
            phi.add_incoming(start, before)
            phi.add_incoming(again, loop)
        builder.cbranch(builder.icmp_signed("<", following, end), loop, after)
        builder.position_at_end(after)
        goal = context.make_array(signature.args[4])(context, builder, target).data
        for i, one in enumerate(added):
            builder.store(one, builder.bitcast(builder.gep(goal, [word(i * count)]), vector.as_pointer()), align=8)
        return context.get_dummy_value()

    return types.void(rows, types.int64, types.int64, types.int64, sums, lanes), build
