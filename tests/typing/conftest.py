collect_ignore = ["user_script.py"]  # type checkers read it; nothing runs it
