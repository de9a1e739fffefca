"""Reports of a finished evaluation: results.json, tables, figures and the page, all made from its counts."""
