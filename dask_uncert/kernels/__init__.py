"""One pass over one block: `reference` is the definition in plain numpy, `compiled` the same in machine code.

Both hold the same names with the same signatures; `tests/kernels` holds them against each other.

- `measure`: probability vectors to decisions and uncertainty measures, a value a pixel.
- `add_member`, `close_members`: samples of a prediction, one at a time, to their mean and what their spread says.
- `count_decisions`, `count_values`, `count_confidence`, `sum_soft_weights`: values to the integer counts of
  a Summary, added to the arrays given; and to a row a spatial tile, where tiles are kept apart.
- `filled_cells`: the rows of tiles, made sparse.
"""
