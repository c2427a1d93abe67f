"""The HTTPS face of the library."""
