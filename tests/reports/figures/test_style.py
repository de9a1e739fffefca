"""Colours of classes: as many as are wanted, and told apart from each other and from what is behind them."""

from itertools import combinations

import pytest
from coloraide import Color

from dask_uncert.reports.figures.maps import UNDEFINED
from dask_uncert.reports.figures.style import class_colours
from dask_uncert.reports.page.formatting import shade

BACKGROUNDS = ("#ffffff", "#14181c", UNDEFINED)  # of the page in light and dark, and of pixels without a value


def distance(one: str, other: str) -> float:
    return Color(one).delta_e(other, method="2000")


@pytest.mark.parametrize(("number", "least"), [(7, 21), (20, 16), (60, 6)])  # CIEDE2000: about 1 is just seen
def test_classes_are_told_apart_from_each_other_and_from_what_is_behind_them(number, least):
    colours = class_colours(number)
    assert len(colours) == number
    assert min(distance(one, other) for one, other in combinations(colours, 2)) > least
    assert min(distance(colour, behind) for colour in colours[:20] for behind in BACKGROUNDS) > 18


def test_fewer_classes_have_the_first_colours_and_more_have_them_again():
    assert class_colours(5) == class_colours(7)[:5]
    assert class_colours(8) == class_colours(20)[:8]
    assert class_colours(61) == [*class_colours(60), class_colours(60)[0]]


def test_numbers_on_every_shade_can_be_read():
    for share in range(1001):
        behind, ink = (part.partition(":")[2] for part in shade(share / 1000).split(";"))
        assert Color(behind).contrast(ink) >= 4.5
