# The live engine on a CPU: Whisper and Silero, no Django.
FROM python:3.11-slim-bookworm

ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 ASR_MODEL_DIR=/data/models
RUN useradd --create-home --uid 10001 transcription && install -d -o transcription /data
WORKDIR /app

COPY requirements/engine.txt requirements/
RUN pip install -r requirements/engine.txt

COPY asr_engine asr_engine

USER transcription
VOLUME /data
CMD ["python", "-m", "asr_engine.worker"]
