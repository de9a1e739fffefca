"""The pass over one block: `reference` is the definition in plain numpy, `compiled` the same in machine code.

Both hold the same names with the same signatures; `tests/blocks/kernels` tests one against the other.

- `measure`: probability vectors to decisions and uncertainty measures, a value a pixel; on the way, where asked for, their
  stated probabilities to the counts of calibration.
- `add_member`, `close_members`: samples of a prediction, one at a time, to their mean and their measures.
- `group_decisions` (which pixels are counted alike), `count_decisions`, `count_values`,
  `count_confidence`, `count_with_confidence`, `count_probabilities`,
  `find_cells`, `certainties`, `damping_factors`, `sum_soft_weights`, `find_rows`, `count_joint`: values to the integer counts of a Summary, added to its
  arrays; all that count decisions, values and probabilities also to a row of each spatial tile.
- `count_binary`, `count_binary_jointly`, `count_binary_softly`, `count_cells`: the same counts of a binary prediction whose values need no repair; `count_codes`: its pixels by their codes.
- `filled_cells`: the rows of tiles and zones as sparse rows; `sort_by_zone`: the pixels of each zone.
"""
