"""Draws that belong to names: against Philox and the rank rule written out, and the promised invariances."""

import hashlib
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dask_uncert.formulas import resampling as rs

NAMES = st.lists(st.text(max_size=6), min_size=1, max_size=12, unique=True)
MASK = 2**64 - 1


def philox(counter, key):
    """Ten rounds of Philox4x64 on Python's integers: four words a block (Salmon et al. 2011, table 2 names)."""
    x = [(counter >> 64 * i) & MASK for i in range(4)]
    k = [key & MASK, key >> 64]
    for _ in range(10):
        a, b = x[0] * 0xD2E7470EE14C6C93, x[2] * 0xCA5A826395121157
        x = [(b >> 64) ^ x[1] ^ k[0], b & MASK, (a >> 64) ^ x[3] ^ k[1], a & MASK]
        k = [(k[0] + 0x9E3779B97F4A7C15) & MASK, (k[1] + 0xBB67AE8584CAA73B) & MASK]
    return x


def words(purpose, names, seed, number, count):
    digest = hashlib.blake2b(digest_size=16)
    for text in (purpose, str(seed), *sorted(names)):
        octets = text.encode("utf-8", "surrogatepass")
        digest.update(len(octets).to_bytes(8, "little") + octets)
    key = int.from_bytes(digest.digest(), "little")
    blocks = -(-count // 4)
    first = number * blocks + 1  # a generator steps before it draws
    return [word for block in range(blocks) for word in philox(first + block, key)][:count]


@settings(max_examples=8)
@given(NAMES, st.integers(0, 2**70), st.integers(0, 2**40))
def test_weights_follow_their_definition(names, seed, number):
    n = len(names)
    drawn = [sorted(names)[(n * r) >> 64] for r in words("bootstrap", names, seed, number, n)]
    found = rs.bootstrap_weights(names, range(number, number + 1), seed)
    assert found.tolist() == [[drawn.count(name) for name in names]]
    assert found.dtype == np.int64


@given(st.lists(st.text(max_size=4), min_size=1, max_size=140, unique=True), st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_swaps_follow_their_definition(names, number):
    stream = words("swaps", names, 3, number, -(-len(names) // 64))
    bits = {name: stream[i // 64] >> (i % 64) & 1 for i, name in enumerate(sorted(names))}
    assert rs.swaps(names, range(number, number + 1), 3).tolist() == [[bool(bits[name]) for name in names]]


@given(NAMES, st.randoms(use_true_random=False), st.integers(0, 5))
def test_order_and_company_of_units_and_replicates_do_not_matter(names, random, start):
    shuffled = random.sample(names, len(names))
    columns = [names.index(name) for name in shuffled]
    for draw in (rs.bootstrap_weights, rs.swaps):
        whole = draw(names, range(8), 1)
        assert np.array_equal(draw(shuffled, range(8), 1), whole[:, columns])
        assert np.array_equal(draw(names, range(start, 8), 1), whole[start:])
    assert np.array_equal(rs.all_swaps(shuffled), rs.all_swaps(names)[:, columns])


def test_other_processes_draw_the_same():
    code = (
        "from dask_uncert.formulas.resampling import bootstrap_weights as w;"
        "print(w([f'p{i}' for i in range(50)], range(20), 7).tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    mine = rs.bootstrap_weights([f"p{i}" for i in range(50)], range(20), 7)
    assert done.stdout.strip() == str(mine.tolist())


def test_weights_are_multinomial():
    n, b = 40, 20_000
    w = rs.bootstrap_weights([f"p{i}" for i in range(n)], range(b))
    assert (w.sum(axis=1) == n).all()
    # Marginals are binomial(n, 1/n); pairs have covariance -1/n. Five standard errors each.
    assert np.abs(w.mean(axis=0) - 1).max() < 5 * np.sqrt((1 - 1 / n) / b)
    assert abs((w == 0).mean() - (1 - 1 / n) ** n) < 5 * np.sqrt(0.25 / (n * b)) * 2
    covariance = np.cov(w.T, bias=True)
    apart = covariance[~np.eye(n, dtype=bool)]
    assert abs(apart.mean() + 1 / n) < 0.001
    assert np.abs(apart + 1 / n).max() < 6 / np.sqrt(b)
    assert np.abs(np.diag(covariance) - (1 - 1 / n)).max() < 6 * np.sqrt(3 / b)


def test_other_seeds_names_and_replicates_draw_independently():
    one = [f"a{i}" for i in range(500)]
    other = [f"b{i}" for i in range(500)]
    base = rs.bootstrap_weights(one, range(1))[0]
    for weights in (
        rs.bootstrap_weights(one, range(1, 2))[0],
        rs.bootstrap_weights(one, range(1), 1)[0],
        rs.bootstrap_weights(other, range(1))[0],
        rs.bootstrap_weights([*one[:-1], "new"], range(1))[0],
    ):
        assert abs(np.corrcoef(base, weights)[0, 1]) < 5 / np.sqrt(500)
    half = rs.swaps(one, range(200))
    assert abs(half.mean() - 0.5) < 5 * 0.5 / np.sqrt(half.size)


@pytest.mark.parametrize("draw", [rs.bootstrap_weights, rs.swaps])
def test_a_name_twice_or_a_negative_seed_is_refused(draw):
    with pytest.raises(ValueError, match="'P1' occurs twice"):
        draw(["P1", "P2", "P1"], range(3))
    with pytest.raises(ValueError, match="seed"):
        draw(["P1"], range(3), -1)
    for gaps in (range(0, 4, 2), range(3, -1, -1), range(-1, 3)):
        with pytest.raises(ValueError, match="without gaps"):
            draw(["P1"], gaps)


def test_all_swaps_are_all_up_to_the_sign():
    found = rs.all_swaps(["c", "a", "b", "d"])
    assert found.shape == (8, 4)
    assert not found[0].any()
    both = {tuple(row) for row in found.tolist()} | {tuple(row) for row in (~found).tolist()}
    assert len(both) == 16
    with pytest.raises(ValueError, match="1 to 20"):
        rs.all_swaps([str(i) for i in range(21)])


COUNTS = hnp.arrays(np.int64, st.tuples(st.integers(1, 5), st.integers(1, 3), st.integers(1, 3)),
                    elements=st.one_of(st.integers(0, 50), st.integers(0, 2**57), st.integers(-(2**50), 2**57)))  # fmt: skip


@given(COUNTS, st.integers(0, 3), st.data())
def test_weighted_sums_are_exact(counts, seed, data):
    n = len(counts)
    weights = data.draw(hnp.arrays(np.int64, (3, n), elements=st.integers(-2, 3)))
    found = rs.weighted_sums(weights, counts)
    expected = [
        [[sum(int(w) * int(c) for w, c in zip(row, column, strict=True)) for column in plane.T]
         for plane in counts.transpose(1, 0, 2)]
        for row in weights
    ]  # fmt: skip
    assert found.tolist() == expected


def test_sums_beyond_64_bits_are_an_error():
    with pytest.raises(OverflowError, match="64 bits"):
        rs.weighted_sums([[3]], np.array([2**62]))
    assert rs.weighted_sums([[1]], np.array([2**62])).tolist() == [2**62]


@given(hnp.arrays(np.int64, st.tuples(st.integers(2, 6), st.integers(1, 3)), elements=st.integers(0, 2**55)))
def test_leaving_one_out(counts):
    n = len(counts)
    assert np.array_equal(rs.left_out(counts), rs.weighted_sums(1 - np.eye(n, dtype=int), counts))


VALUES = st.one_of(st.floats(-2, 2), st.sampled_from([np.nan, np.inf, -np.inf, 0.0]))


@given(hnp.arrays(np.float64, st.tuples(st.integers(2, 6), st.integers(1, 3)), elements=VALUES))
@pytest.mark.filterwarnings("ignore:invalid value")
def test_means_are_of_the_defined(values):
    names = [str(i) for i in range(len(values))]
    weights = rs.bootstrap_weights(names, range(6))
    found = rs.weighted_means(weights, values)
    assert found.shape == (6, values.shape[1])
    for b, i in np.ndindex(found.shape):
        drawn = np.repeat(values[:, i], weights[b])
        drawn = drawn[~np.isnan(drawn)]
        np.testing.assert_allclose(found[b, i], drawn.mean() if len(drawn) else np.nan, rtol=1e-12, atol=1e-15)
    kept = 1 - np.eye(len(values), dtype=int)
    np.testing.assert_allclose(rs.left_out_means(values), rs.weighted_means(kept, values), rtol=1e-12, atol=1e-15)
