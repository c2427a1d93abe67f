"""Formats: the table, header parsers, decoders and encoders."""

from __future__ import annotations
