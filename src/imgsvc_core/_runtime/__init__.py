"""What the library needs of the process that it runs in: threads, limits, libvips and workers."""
