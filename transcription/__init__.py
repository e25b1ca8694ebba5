"""The product: recordings, live sessions, transcripts and the jobs that make them."""
