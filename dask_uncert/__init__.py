"""Evaluate predictions with their uncertainty, at any scale.

The public names are listed in ``__init__.pyi`` and are loaded when first used (scientific-python SPEC 1), so
``import dask_uncert`` costs nothing.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
