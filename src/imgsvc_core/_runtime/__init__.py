"""The process that the library runs in: threads, limits, libvips and workers."""
