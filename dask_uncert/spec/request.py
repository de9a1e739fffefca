"""What every block of a pass is asked, complete and compared field by field."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from dask_uncert.formulas.measure_values import measure_maximum
from dask_uncert.formulas.measures import Measure
from dask_uncert.formulas.own_measures import Functions
from dask_uncert.formulas.soft_confusion import CELLS
from dask_uncert.formulas.typing import Floats
from dask_uncert.io.maps import MAPS, RGB, Layer
from dask_uncert.metrics.tile_bootstrap import tile_layout
from dask_uncert.spec.map_names import in_set_map, set_size_map, soft_picture, soft_weight_map
from dask_uncert.summaries.calibration import Calibration
from dask_uncert.summaries.confidence_joint import ConfidenceJoint
from dask_uncert.summaries.decisions import Decisions
from dask_uncert.summaries.distribution import Distribution
from dask_uncert.summaries.evaluation import Class, Evaluation
from dask_uncert.summaries.joint_histogram import JointHistogram, JointSettings
from dask_uncert.summaries.ledger import Ledger
from dask_uncert.summaries.report_options import NOTHING_MORE, ReportOptions
from dask_uncert.summaries.soft_confusion import SoftConfusion, SoftSettings
from dask_uncert.summaries.tiles import Tiles, TileSettings
from dask_uncert.summaries.weighted_decisions import WeightedDecisions
from dask_uncert.summaries.zones import Zone, Zones

ReferenceKind = Literal["codes", "share", "shares"]
"""A reference holds class codes, the share of the second of two classes, or a share for each class."""


class SoftMaps(NamedTuple):
    """A soft confusion to be drawn at its first threshold, sigma and damping; `label` ends its maps' names."""

    settings: SoftSettings
    label: str


class SetMaps(NamedTuple):
    """Prediction sets to be drawn: the threshold, and the labels that end the names of their members' maps, if wanted."""

    threshold: float
    labels: tuple[str, ...]


def map_layers(
    maps: Iterable[str], soft_maps: Iterable[SoftMaps], set_maps: Iterable[SetMaps] = ()
) -> dict[str, Layer]:
    """Return every map by its name."""
    number: tuple[str, float] = ("float32", float("nan"))
    layers = {}
    for name in maps:
        dtype, fill = MAPS.get(name, number)
        layers[name] = Layer(dtype, fill, {})
    for _, label in soft_maps:
        for cell in CELLS:
            layers[soft_weight_map(cell, label)] = Layer(*number, {})
        layers[soft_picture(label)] = Layer("uint8", 0, RGB)
    for threshold, labels in set_maps:
        layers[set_size_map(threshold)] = Layer("uint16", 65535, {})
        for label in labels:  # a layer each, which every format and program can show
            layers[in_set_map(threshold, label)] = Layer("uint8", 255, {})
    return layers


@dataclass(frozen=True)
class Request:
    """What every block is asked: complete, and compared field by field.

    `maxima` and `thresholds` have an entry a measure: the maximum of H∘H over the simplex for homophily (else
    unused), and the values that must be edges. `joint`: the bins of joint histograms, for sweeps. `raters`: the shares of a
    fuzzy reference are multiples of one over it. `leave_out_off`: pixels beyond the tolerance are left out, not refused.
    `share_tolerance`: how far the shares of a fuzzy reference and their sum may be off; `complete`: they must sum to 1.
    `decisions_only`: the prediction is class codes, without probabilities. `functions`: of own measures that were given in Python. `weight_unit`: of pixels' weights, None where they have none. `tiles`: kept apart for intervals. `class_metric`: of
    homophily, whose distances are unknown until `with_distances` if a metric measures them. `zones`: their names, none
    where they are called by their codes; None without zones. `joint_distributions`: measures counted together with the
    confidence. `maps_of_counted`: maps are blank where pixels do not count.
    """

    classes: tuple[Class, ...]
    ignore: tuple[int, ...] = ()
    measures: tuple[Measure, ...] = ()
    maxima: tuple[float, ...] = ()
    thresholds: tuple[tuple[float, ...], ...] = ()
    calibration_bins: int = 15
    soft: tuple[SoftSettings, ...] = ()
    maps: tuple[str, ...] = ()
    class_metric: str | None = None
    reference: ReferenceKind = "codes"
    soft_maps: tuple[SoftMaps, ...] = ()
    raters: int | None = None
    joint: tuple[JointSettings, ...] = ()
    tiles: TileSettings | None = None
    leave_out_off: bool = False
    weight_unit: str | None = None
    share_tolerance: float = 0.0
    complete: bool = False
    decisions_only: bool = False
    functions: Functions | None = None
    zones: tuple[Zone, ...] | None = None
    maps_of_counted: bool = False
    report_options: ReportOptions = NOTHING_MORE
    joint_distributions: tuple[str, ...] = ()
    set_maps: tuple[SetMaps, ...] = ()

    @property
    def layers(self) -> dict[str, Layer]:
        """Every map asked for, by its name."""
        return map_layers(self.maps, self.soft_maps, self.set_maps)

    @property
    def codes(self) -> tuple[int, ...]:
        """The code of each class, in the order of the class axis."""
        return tuple(code for code, _ in self.classes)

    def with_distances(self, table: Floats) -> Request:
        """Return the request with the class-distance table H of homophily and the certified maximum of H∘H."""
        rows = tuple(tuple(row) for row in table.tolist())
        measures = tuple(
            replace(measure, distances=rows) if measure.kind == "homophily" else measure for measure in self.measures
        )
        return replace(self, measures=measures, maxima=tuple(measure_maximum(measure) or 1.0 for measure in measures))

    def zero(self, dimensions: int = 1) -> Evaluation:
        """Return the Evaluation of no pixels, in new arrays; dimensions: their number in the grid."""
        classes = len(self.classes)
        pairs = zip(self.measures, self.thresholds, strict=True)
        distributions = tuple(Distribution.zero(*pair, classes) for pair in pairs)
        zero = Evaluation(
            classes=self.classes,
            class_metric=self.class_metric,
            ledger=Ledger.zero(classes),
            decisions=Decisions.zero(classes),
            distributions=distributions,
            calibration=None if self.decisions_only else Calibration.zero(self.calibration_bins, classes),
            soft_confusion=tuple(SoftConfusion.zero(settings) for settings in self.soft),
            joint=tuple(JointHistogram.zero(settings) for settings in self.joint),
            weighted=() if self.weight_unit is None else (WeightedDecisions.zero(classes, self.weight_unit),),
            report_options=self.report_options,
            confidence_joint=tuple(
                ConfidenceJoint.zero(d) for d in distributions if d.measure.name in self.joint_distributions
            ),
        )
        tiles, zones = None, None
        if self.tiles is not None:
            tiles = Tiles.zero(*self.tiles, tile_layout(zero).width, dimensions)
        if self.zones is not None:
            width = sum(array.size for _, _, array in zero.arrays())
            by_zone = None if tiles is None else Tiles.zero(tiles.size, tiles.confidence, tiles.width, dimensions + 1)
            zones = Zones.of(self.zones, width, {}, by_zone)
        return replace(zero, tiles=tiles, zones=zones)
