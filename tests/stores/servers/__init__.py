"""Servers that stores are tested with: on loopback, at free ports, each in a folder of its own."""
