# The site, its recorder, its jobs and its chores: everything but the live engine.
FROM python:3.11-slim-bookworm

ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 TRANSCRIBE_DATA_DIR=/data
RUN useradd --create-home --uid 10001 transcription && install -d -o transcription /data
WORKDIR /app

COPY requirements/web.txt requirements/engine.txt requirements/
RUN pip install -r requirements/web.txt -r requirements/engine.txt

COPY manage.py ./
COPY asr_engine asr_engine
COPY transcription transcription
COPY webapp webapp
COPY templates templates
COPY static static

USER transcription
VOLUME /data
EXPOSE 8000
CMD ["python", "-m", "webapp.serve"]
