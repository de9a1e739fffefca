"""A Stack goes into Zarr and comes out equal; the same Stack is the same bytes; little is read to answer little."""

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from dask_uncert.errors import InputError
from dask_uncert.execution.evaluate import evaluate
from dask_uncert.io import stack_store
from dask_uncert.io.stack_store import has_cases, read_cases, write_cases
from dask_uncert.io.summary_store import load, save
from dask_uncert.summaries.stack import Case, Stack
from tests.support.readers import contents

CLASSES = ["no", "yes", "maybe"]


def drawn(seed, pixels=6):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet([0.3] * 3, pixels).astype("float32")
    return evaluate(p, rng.integers(0, 3, pixels), classes=CLASSES, measures=["gini"])


@pytest.fixture(scope="module")
def parts():
    return [drawn(seed) for seed in range(6)]


def write(stack, store):
    save(stack.total(), store)
    write_cases(str(store), stack.cases, stack.layout, (rows for _, rows in stack.sparse_cases()))


@pytest.mark.slow
@settings(max_examples=4)
@given(order=st.permutations(range(6)), piece=st.sampled_from([30, 1 << 18]))
def test_written_and_read_back(tmp_path_factory, parts, order, piece):
    folder = tmp_path_factory.mktemp("cases")
    cases = {Case(f"P{i % 4}", f"v{i}", (("site", "AB"[i % 2]),), f"fingerprint {i}"): parts[i] for i in order}
    stack = Stack.of(cases)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stack_store, "CHUNK_ENTRIES", piece)
        write(stack, folder / "one.zarr")
        write(Stack.of(dict(sorted(cases.items(), key=lambda one: one[0].visit))), folder / "two.zarr")
    assert contents(folder / "one.zarr") == contents(folder / "two.zarr")
    found = read_cases(str(folder / "one.zarr"))
    assert found == stack
    assert found.cases == stack.cases
    assert found.total() == load(folder / "one.zarr") == sum(parts)
    assert found.evaluation("P1/v5") == parts[5]
    assert found.by("site")["B"] == stack.by("site")["B"]
    write(found, folder / "three.zarr")
    assert read_cases(str(folder / "three.zarr")) == stack


def test_counts_that_are_not_asked_for_are_not_read(tmp_path, parts):
    stack = Stack.of({f"P{i}": part for i, part in enumerate(parts)})
    write(stack, tmp_path / "one.zarr")
    for path in (tmp_path / "one.zarr" / "cases").rglob("c/0"):
        if "ledger" not in str(path) and "starts" not in str(path):
            path.write_bytes(b"damaged")
    found = read_cases(str(tmp_path / "one.zarr"))
    assert found.array("ledger/counted").tolist() == [6] * 6
    with pytest.raises(Exception, match=r".+"):
        found.array("decisions/pairs")


def test_a_summary_without_cases_says_so(tmp_path, parts):
    save(parts[0], tmp_path / "one.zarr")
    assert not has_cases(str(tmp_path / "one.zarr"))
    with pytest.raises(InputError, match="there is no summary"):
        has_cases(str(tmp_path / "none.zarr"))
    with pytest.raises(InputError, match="holds one evaluation without cases"):
        read_cases(str(tmp_path / "one.zarr"))
    with pytest.raises(InputError, match="there is no summary at"):
        read_cases(str(tmp_path / "none.zarr"))
    write_cases(str(tmp_path / "one.zarr"), (), {"a": ((), ())}, ())
    assert len(read_cases(str(tmp_path / "one.zarr"))) == 0
    zarr.open_group(str(tmp_path / "one.zarr"), mode="r+")["cases"].attrs["fingerprints"] = ["odd"]
    with pytest.raises(InputError, match=r"one\.zarr/cases is not as dask-uncert wrote it"):
        read_cases(str(tmp_path / "one.zarr"))
