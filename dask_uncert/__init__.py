"""Evaluate predictions with their uncertainty, at any scale."""
