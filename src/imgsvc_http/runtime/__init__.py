"""Tools of a process: its event loop, its threads, and what it shares with other processes."""
