# Serves the model in /model at port 8000: docker run -p 127.0.0.1:8000:8000 -v $PWD/runs/mine:/model:ro foveate
FROM python:3.12-slim

# For example --extra-index-url with an index of CPU builds of torch, which are much smaller.
ARG PIP_OPTIONS=""

WORKDIR /foveate
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip install --no-cache-dir $PIP_OPTIONS ".[hf,audio]" && useradd --create-home foveate

USER foveate
EXPOSE 8000
HEALTHCHECK --start-period=60s CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://localhost:8000/health')"]
ENTRYPOINT ["foveate"]
CMD ["serve", "/model", "--host", "0.0.0.0"]
