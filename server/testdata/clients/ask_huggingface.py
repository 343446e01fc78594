"""Prints what huggingface_hub's InferenceClient makes of the daemon's answers."""
import json
import os

from huggingface_hub import InferenceClient
from huggingface_hub.errors import HfHubHTTPError

url, key, texts = os.environ["URL"], os.environ["KEY"], json.loads(os.environ["TEXTS"])


def client(path):
    return InferenceClient(model=url + path, token=key)


def refused(text):
    try:
        client("/embed").feature_extraction(text)
    except HfHubHTTPError as e:
        return {"status": e.response.status_code, "body": e.response.json()}


print(json.dumps({
    "list": client("/embed").feature_extraction(texts).tolist(),
    "root": client("/").feature_extraction(texts[0]).tolist(),
    "raw": client("/embed").feature_extraction(texts, normalize=False).tolist(),
    "prompted": client("/embed").feature_extraction(texts, prompt_name="query").tolist(),
    "cut": client("/embed").feature_extraction(os.environ["LONG"], truncate=True, truncation_direction="left").tolist(),
    "similarity": client("/similarity").sentence_similarity(texts[0], other_sentences=texts),
    "too_long": refused(os.environ["LONG"]),
}))
