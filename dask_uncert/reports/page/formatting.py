"""Text of numbers on the page, and the colours and bars of cells."""

from __future__ import annotations

from markupsafe import Markup, escape

UNDEFINED = "–"


def count(value: float | None) -> str:
    """Return a whole number with thousands separators.

    >>> count(1234567), count(None)
    ('1,234,567', '–')
    """
    return UNDEFINED if value is None else f"{value:,}"


def number(value: float | None, digits: int = 4) -> str:
    """Return a number with `digits` decimals; very small and very large ones in scientific notation.

    >>> number(0.25), number(0), number(2.6e-10), number(None)
    ('0.2500', '0.0000', '2.6e-10', '–')
    """
    if value is None:
        return UNDEFINED
    plain = value == 0 or 10.0**-digits <= abs(value) < 1e6
    return f"{value:,.{digits}f}" if plain else f"{value:.{digits}g}"


def signed(value: float | None, digits: int = 4) -> str:
    """Return a difference with its sign; very small ones in scientific notation.

    >>> signed(0.25), signed(-0.25), signed(0.0), signed(-5.197e-5), signed(None)
    ('+0.2500', '−0.2500', '0.0000', '−5.2e-05', '–')
    """
    if value is None:
        return UNDEFINED
    plain = value == 0 or abs(value) >= 10.0**-digits
    text = f"{abs(value):,.{digits}f}" if plain else f"{abs(value):.2g}"
    return text if value == 0 else ("+" if value > 0 else "−") + text


def percent(part: float | None, of: float) -> str:
    """Return a part as a percentage.

    >>> percent(1, 8), percent(1, 0)
    ('12.5 %', '–')
    """
    return UNDEFINED if part is None or of == 0 else f"{100 * part / of:.1f} %"


def shade(share: float) -> str:
    """Return the style of a table cell for a share in [0, 1], from white to dark blue, with text of contrast 4.5 or more.

    >>> shade(0), shade(1)
    ('background:#ffffff;color:#000000', 'background:#08467f;color:#ffffff')
    """
    low, high = (255, 255, 255), (8, 70, 127)
    mixed = (round(a + (b - a) * share) for a, b in zip(low, high, strict=True))
    ink = "#ffffff" if share > 0.725 else "#000000"
    return "background:#" + "".join(f"{part:02x}" for part in mixed) + f";color:{ink}"


def bar(value: float | None) -> str:
    """Return the style of a cell with a bar for a number in [0, 1].

    >>> bar(0.5), bar(None)
    ('--part:50.0%', '--part:0%')
    """
    return "--part:0%" if value is None else f"--part:{100 * value:.1f}%"


def breakable(name: str) -> Markup:
    """Return a name that may break after its slashes in a narrow column.

    >>> breakable("P1/<b>")
    Markup('P1/<wbr>&lt;b&gt;')
    """
    return Markup("/<wbr>").join(escape(part) for part in name.split("/"))
