"""Prints what cohere's client makes of the daemon's answers, as JSON."""
import json
import os

import cohere
from cohere.core.api_error import ApiError

client = cohere.ClientV2(api_key=os.environ["KEY"], base_url=os.environ["URL"])
query, passages = os.environ["QUERY"], json.loads(os.environ["PASSAGES"])
model = os.environ["RERANKER"]


def results(**options):
    answer = client.rerank(query=query, documents=passages, **options)
    return [[r.index, r.relevance_score] for r in answer.results]


def error(**options):
    try:
        client.rerank(query=query, documents=passages, **options)
    except ApiError as e:
        return {"class": type(e).__name__, "status": e.status_code, "message": e.body["message"]}


print(json.dumps({
    "all": results(model=model),
    "top": results(model=model, top_n=1),
    "cut": results(model=model, max_tokens_per_doc=2),
    "no_model": error(model="rerank-v3.5"),
}))
