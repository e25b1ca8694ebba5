"""What REST v1 shows of each thing, and what it takes: typed, and described by itself."""
