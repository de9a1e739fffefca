"""What numba does not vectorise by itself, written as vectors of eight doubles; IEEE basic operations only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from dask_uncert.formulas.fixed_point import FIRST, SECOND

LANES = 8
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
