"""The audio part of OpenAI's API, for clients that speak it already: `/v1/audio/transcriptions` and
`/v1/models`.

A recording that comes this way takes the road of all others, while its client waits. Which fields
count is in `forms`, what is answered in `answers`; `docs/openai.md` says both to people.
"""
