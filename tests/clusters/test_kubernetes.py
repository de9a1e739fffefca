"""What an operator deploys on Kubernetes: manifests valid by the dask operator's own schemas; an image that installs."""

from __future__ import annotations

import copy
import gzip
import re
from typing import Any

import jsonschema
import pytest
import yaml

from tests.support import ROOT

SCHEMAS = ROOT / "tests" / "data" / "dask_operator"
MANIFESTS = list(yaml.safe_load_all((ROOT / "cluster" / "kubernetes.yaml").read_text()))


def strict(schema: Any) -> Any:
    """A schema of Kubernetes as JSON Schema, in which unknown fields are errors as the API server has them."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: value if key in ("properties", "default", "enum") else strict(value) for key, value in schema.items()}
    if "properties" in found:
        found["properties"] = {key: strict(value) for key, value in found["properties"].items()}
        if not any(found.get(f"x-kubernetes-{word}") for word in ("preserve-unknown-fields", "embedded-resource")):
            found.setdefault("additionalProperties", False)
    if found.get("x-kubernetes-int-or-string"):
        found = {key: value for key, value in found.items() if key not in ("type", "anyOf")}
        found["type"] = ["integer", "string"]
    return found


@pytest.fixture(scope="module")
def schemas():
    found = {}
    for path in SCHEMAS.glob("*.yaml.gz"):
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        definition = yaml.load(gzip.decompress(path.read_bytes()), Loader=loader)
        for version in definition["spec"]["versions"]:
            schema = copy.deepcopy(version["schema"]["openAPIV3Schema"])
            schema.setdefault("properties", {}).update(
                apiVersion={"type": "string"},
                kind={"type": "string"},
                metadata={
                    "type": "object",
                    "required": ["name"],
                    "x-kubernetes-preserve-unknown-fields": True,
                },
            )
            names = definition["spec"]
            found[f"{names['group']}/{version['name']}", names["names"]["kind"]] = strict(schema)
    return found


def faults(schemas, manifest):
    schema = schemas[manifest["apiVersion"], manifest["kind"]]
    return [error.message for error in jsonschema.Draft202012Validator(schema).iter_errors(manifest)]


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda one: one["kind"])
def test_manifests_are_valid_by_the_operators_schemas(schemas, manifest):
    assert faults(schemas, manifest) == []


def test_the_check_finds_faults(schemas):
    cluster = copy.deepcopy(MANIFESTS[0])
    cluster["spec"]["worker"]["replicas"] = "two"
    assert faults(schemas, cluster)
    cluster = copy.deepcopy(MANIFESTS[0])
    cluster["spec"]["worker"]["spec"]["containers"][0]["imagePulPolicy"] = "Never"
    assert faults(schemas, cluster)
    cluster = copy.deepcopy(MANIFESTS[0])
    del cluster["spec"]["scheduler"]
    assert faults(schemas, cluster)


def test_the_service_is_reached_from_inside_only_and_names_fit():
    (scaled,) = (one for one in MANIFESTS if one["kind"] == "DaskAutoscaler")
    assert scaled["spec"]["cluster"] == MANIFESTS[0]["metadata"]["name"]
    assert 1 <= scaled["spec"]["minimum"] < scaled["spec"]["maximum"]
    for manifest in (one for one in MANIFESTS if one is not scaled):
        spec = manifest["spec"] if manifest["kind"] == "DaskCluster" else manifest["spec"]["cluster"]["spec"]
        service = spec["scheduler"]["service"]
        assert service["type"] == "ClusterIP"
        assert service["selector"]["dask.org/cluster-name"] == manifest["metadata"]["name"]


def test_the_image_installs_as_the_readme_says():
    lines = (ROOT / "cluster" / "Containerfile").read_text()
    (install,) = re.findall(r"^RUN (python -m pip install) --no-cache-dir '\.\[(.*)\]'$", lines, re.MULTILINE)
    assert f"{install[0]} ." in (ROOT / "README.md").read_text()
    extras = re.findall(
        r"^(\w+) = \[",
        (ROOT / "pyproject.toml").read_text().split("[project.optional-dependencies]")[1],
        re.MULTILINE,
    )
    assert set(install[1].split(",")) <= set(extras)
    copied = [word for line in re.findall(r"^COPY (.*)$", lines, re.MULTILINE) for word in line.split()[:-1]]
    assert all((ROOT / name).exists() for name in copied)
    assert re.search(r"^USER dask$", lines, re.MULTILINE)
