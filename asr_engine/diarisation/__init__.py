"""Who spoke when: what a diariser is asked, how voices become speakers, and how well. No models."""
