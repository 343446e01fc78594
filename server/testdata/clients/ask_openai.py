"""Prints what openai's client makes of the daemon's answers, as JSON."""
import json
import os

import openai

client = openai.OpenAI(base_url=os.environ["URL"] + "/v1", api_key=os.environ["KEY"], max_retries=0)
texts = json.loads(os.environ["TEXTS"])
ids = json.loads(os.environ["IDS"])
model = os.environ["MODEL"]


def vectors(**options):
    answer = client.embeddings.create(model=model, **options)
    assert [d.index for d in answer.data] == list(range(len(answer.data)))
    return [d.embedding for d in answer.data]


def error(**options):
    try:
        client.embeddings.create(**options)
    except openai.APIStatusError as e:
        return {"class": type(e).__name__, "status": e.status_code, "code": e.code, "type": e.type}


print(json.dumps({
    "list": vectors(input=texts),  # base64 on the wire
    "string": vectors(input=texts[0]),
    "float": vectors(input=texts, encoding_format="float"),
    "ids": vectors(input=ids),
    "one_ids": vectors(input=ids[0]),
    "dimensions": vectors(input=texts, dimensions=8),
    "tokens": client.embeddings.create(model=model, input=texts).usage.total_tokens,
    "no_model": error(model="other", input="a"),
    "empty": error(model=model, input=[]),
    "unauthorized": error(model=model, input="a", extra_headers={"Authorization": "Bearer wrong"}),
}))
