"""What a manifest may look like, and what is said of one that is wrong."""

import csv
import sys
import unicodedata

import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dask_uncert.errors import InputError
from dask_uncert.jobs.cohort.manifest import read_manifest, resolve_path
from dask_uncert.summaries.stack import Case


def written(folder, text, name="cases.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_rows_become_cases_sorted_by_name(tmp_path):
    place = written(
        tmp_path,
        "\ufeffsite, patient ,p,y,note\n"
        'Bern, P2 ,two.zarr,"a, b.zarr",\n\n'
        "Oslo,P1,../up/one.zarr,s3://bucket/y.zarr,x\n"
        "Bern,P0,/abs/p.zarr,sub/y.zarr\n",
    )
    lines = read_manifest(place, ["p", "y"], groups=["site"])
    assert [line.case for line in lines] == [
        Case("P0", groups=(("site", "Bern"),)),
        Case("P1", groups=(("site", "Oslo"),)),
        Case("P2", groups=(("site", "Bern"),)),
    ]
    assert lines[2].paths == {"p": str(tmp_path / "two.zarr"), "y": str(tmp_path / "a, b.zarr")}
    assert lines[1].paths == {"p": str(tmp_path.parent / "up" / "one.zarr"), "y": "s3://bucket/y.zarr"}
    assert lines[0].paths == {"p": "/abs/p.zarr", "y": str(tmp_path / "sub" / "y.zarr")}


def test_places_beside_a_manifest_at_a_url():
    assert resolve_path("s3://bucket/set/m.csv", "a/p.zarr") == "s3://bucket/set/a/p.zarr"
    assert resolve_path("s3://bucket/set/m.csv", "gs://other/p.zarr") == "gs://other/p.zarr"


def test_the_same_patient_twice(tmp_path):
    """C4: refused, naming the patient and both paths; unless they are visits."""
    text = "patient,when,p\nP1,a,one.zarr\nP1,b,two.zarr\nP2,a,three.zarr\n"
    place = written(tmp_path, text)
    with pytest.raises(InputError, match=r"patient P1 twice: .*one\.zarr in row 2 and .*two\.zarr in row 3"):
        read_manifest(place, ["p"])
    lines = read_manifest(place, ["p"], visits="when")
    assert [(one.case.name, one.case.patient) for one in lines] == [
        ("P1/a", "P1"), ("P1/b", "P1"), ("P2/a", "P2"),
    ]  # fmt: skip
    again = written(tmp_path, text + "P2,a,four.zarr\n")
    with pytest.raises(InputError, match=r"visit a of patient P2 twice: .*three\.zarr .*four\.zarr in row 5"):
        read_manifest(again, ["p"], visits="when")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no column patient, p, site; it has none"),
        ("patient,p\nP1,a\n", "no column site; it has patient, p"),
        ("patient;p;site\nP1;a;b\n", "it has patient;p;site"),
        ("patient,p,site\n", "no row below its header"),
        ("patient,p,site\nP1,a,b\n\nP2, ,b\n", "row 4, column p is empty"),
        ("patient,p,site\nP1,a\n", "row 2, column site is empty"),
        ("patient,p,site\n,a,b\n", "row 2, column patient is empty"),
        ("patient,p,site\nP1,a,b,c\n", "4 cells in row 2, but 3 columns"),
        ("patient,p,site,p\nP1,a,b,c\n", "the column p more than once"),
        ("patient,p,site\na/b,a,b\n", "'a/b' in row 2, column patient"),
        ("patient,p,site\n..,a,b\n", r"'\.\.' in row 2"),
        (
            "patient,p,site\na\\b,a,b\n",
            "in row 2, column patient; a name must not contain a slash, a backslash",
        ),
        (f"patient,p,site\n{'é' * 150},a,b\n", "or be longer than 200 bytes"),
        ("patient,p,site\nzarr.json,a,b\n", "start with __ or zarr.json"),
        (
            "patient,p,site\na1,a,b\nA1,c,b\n",
            "'a1' in row 2 and 'A1' in row 3, column patient, which differ by case",
        ),
        ("patient,p,site\nJosé,a,b\nJose\u0301,c,b\n", "patient José twice: .* in row 2 and .* in row 3"),
        ('patient,p,site\nP1,"a,b\n', "cannot be read: unexpected end of data"),
    ],
)
def test_a_wrong_manifest_is_one_paragraph(tmp_path, text, message):
    with pytest.raises(InputError, match=message) as caught:
        read_manifest(written(tmp_path, text), ["p"], groups=["site"])
    assert "\n" not in str(caught.value)
    assert "cases.csv" in str(caught.value)


def test_a_manifest_that_is_not_there_or_no_text(tmp_path):
    with pytest.raises(InputError, match="there is no manifest at"):
        read_manifest(str(tmp_path / "none.csv"), ["p"])
    (tmp_path / "odd.csv").write_bytes(b"patient,p\n\xff\xfe,a\n")
    with pytest.raises(InputError, match=r"odd\.csv cannot be read: .*utf-8"):
        read_manifest(str(tmp_path / "odd.csv"), ["p"])
    with pytest.raises(InputError, match="column p is used for two things"):
        read_manifest(str(tmp_path / "odd.csv"), ["p"], groups=["p"])


def test_names_are_compared_in_their_composed_form(tmp_path):
    text = "patient,when,p,site\nJosé,a,one/é.zarr,é\nJose\u0301,b,one/e\u0301.zarr,e\u0301\n"
    rows = read_manifest(written(tmp_path, text), ["p"], visits="when", groups=["site"])
    assert {(row.case.patient, row.case.groups) for row in rows} == {("José", (("site", "é"),))}
    assert [row.paths["p"] for row in rows] == [
        str(tmp_path / "one/é.zarr"),
        str(tmp_path / "one/e\u0301.zarr"),
    ]
    columns = written(tmp_path, "patient,Ku\u0308che,e\u0301\nP,a.zarr,x\n")
    assert read_manifest(columns, ["Küche"], groups=["é"])[0].paths == {"Küche": str(tmp_path / "a.zarr")}
    again = written(tmp_path, "patient,when,p\nP,a,x\nQ,A,x\nQ,a,x\n")
    with pytest.raises(InputError, match="'A' in row 3 and 'a' in row 4, column when"):
        read_manifest(again, ["p"], visits="when")


NAMES = st.text(st.characters(exclude_categories=("C", "Z"), exclude_characters="/\\"), min_size=1, max_size=6)


@given(
    names=st.lists(
        NAMES.map(lambda n: unicodedata.normalize("NFC", n)).filter(lambda n: n.strip(".") and n[:2] != "__"),
        min_size=1,
        unique_by=str.casefold,
    )
)
def test_any_printable_name_passes(tmp_path_factory, names):
    place = tmp_path_factory.mktemp("names") / "cases.csv"
    with place.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["patient", "p"], *([name, "x.zarr"] for name in names)])
    assert [line.case.patient for line in read_manifest(str(place), ["p"])] == sorted(names)


def test_a_parquet_manifest(tmp_path):
    place = tmp_path / "cases.parquet"
    table = pandas.DataFrame({"patient": [7, 5], "p": ["a.zarr", "b.zarr"], "site": ["x", None]})
    table.to_parquet(place)
    lines = read_manifest(str(place), ["p"])
    assert [one.case.patient for one in lines] == ["5", "7"]
    assert lines[1].paths == {"p": str(tmp_path / "a.zarr")}
    with pytest.raises(InputError, match="row 3, column site is empty"):
        read_manifest(str(place), ["p"], groups=["site"])
    place.write_bytes(b"no parquet")
    with pytest.raises(InputError, match="is not a Parquet file"):
        read_manifest(str(place), ["p"])
    with pytest.raises(InputError, match="there is no manifest at"):
        read_manifest(str(tmp_path / "none.parquet"), ["p"])


def test_a_parquet_manifest_without_its_package_says_what_to_install(tmp_path, monkeypatch):
    for name in ("pyarrow", "fastparquet"):
        monkeypatch.setitem(sys.modules, name, None)
    (tmp_path / "cases.parquet").touch()
    with pytest.raises(InputError, match=r"needs the package pyarrow: `python -m pip install pyarrow`"):
        read_manifest(str(tmp_path / "cases.parquet"), ["p"])
