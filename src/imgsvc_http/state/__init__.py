"""What the service remembers: accounts, keys, quotas, keyfiles, watermarks and answers, in a database."""
