"""The steps of a plan as functions on pixels, with libvips."""
