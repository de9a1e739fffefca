"""A finished evaluation for people: results.json, tables, figures and the page, all read off its counts."""
