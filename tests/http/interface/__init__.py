"""The interface, in the order of its document, over TLS: one test for each of its rules."""
