# The live engine on a GPU: the same code, with NeMo and a CUDA build of torch.
FROM python:3.11-slim-bookworm AS python

FROM nvidia/cuda:12.8.1-cudnn-runtime-ubuntu24.04

# The pins want Python 3.11; this Ubuntu has 3.12 and the CUDA libraries that CTranslate2 wants.
COPY --from=python /usr/local/ /usr/local/
ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 ASR_MODEL_DIR=/data/models
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
       ca-certificates libbz2-1.0 libexpat1 libffi8 liblzma5 libreadline8t64 libsqlite3-0 libssl3t64 \
    && rm -rf /var/lib/apt/lists/* \
    && ldconfig \
    && useradd --create-home --uid 10001 transcription && install -d -o transcription /data
WORKDIR /app

COPY requirements/engine.txt requirements/nemo.txt requirements/
RUN pip install -r requirements/engine.txt -r requirements/nemo.txt

COPY asr_engine asr_engine

USER transcription
VOLUME /data
CMD ["python3.11", "-m", "asr_engine.worker"]
