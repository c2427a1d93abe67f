"""Fetching sources from their URLs, from public addresses only."""
