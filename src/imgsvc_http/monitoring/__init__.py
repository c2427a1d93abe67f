"""What the service measures of itself: the metrics in one table, and the phases of a request."""
