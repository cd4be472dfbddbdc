"""The build lane: what a compiler sees in the units of a compile database, laid over the bytes of the documents."""
