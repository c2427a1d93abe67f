"""Formats: the table of them, what works on this machine, and the ways in and out of pixels."""

from __future__ import annotations
