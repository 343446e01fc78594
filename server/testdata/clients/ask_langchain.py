"""Prints what LangChain's integrations make of the daemon's answers, as JSON."""
import json
import os

from huggingface_hub import InferenceClient
from langchain_huggingface import HuggingFaceEndpointEmbeddings
from langchain_openai import OpenAIEmbeddings

url, key, texts = os.environ["URL"], os.environ["KEY"], json.loads(os.environ["TEXTS"])
hugging_face = HuggingFaceEndpointEmbeddings(model="tiny/bert", huggingfacehub_api_token=key)
hugging_face.client = InferenceClient(model=url + "/embed", token=key)  # it takes no URL itself
open_ai = OpenAIEmbeddings(model=os.environ["MODEL"], base_url=url + "/v1", api_key=key, check_embedding_ctx_length=False)
print(json.dumps({
    "huggingface": hugging_face.embed_documents(texts),
    "huggingface_query": hugging_face.embed_query(texts[0]),
    "openai": open_ai.embed_documents(texts),
    "openai_query": open_ai.embed_query(texts[0]),
}))
