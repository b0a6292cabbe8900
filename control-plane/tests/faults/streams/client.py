# SPDX-License-Identifier: Apache-2.0
"""What a program does that has OpenAI's client and an address: streams to their end, and one that it leaves."""

import json
import sys

from openai import OpenAI

MESSAGES = [{"role": "user", "content": "Tell me all that there is to be told about weirs, in many words."}]

client = OpenAI(base_url=sys.argv[1], api_key="none")
told = {"models": [model.id for model in client.models.list()]}

usage = {"include_usage": True}
chunks = client.chat.completions.create(
    model="m", messages=MESSAGES, max_tokens=4, stream=True, stream_options=usage
)
chunks = list(chunks)
told["chat"] = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
told["ended"] = [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1]
told["tokens"] = chunks[-1].usage.completion_tokens

whole = client.chat.completions.create(model="m", messages=MESSAGES, max_tokens=4)
told["whole"] = whole.choices[0].message.content

chunks = client.completions.create(model="m", prompt="Weirs", max_tokens=4, stream=True)
told["completion"] = "".join(chunk.choices[0].text for chunk in chunks)

with client.chat.completions.create(
    model="m", messages=MESSAGES, max_tokens=640, stream=True
) as chunks:
    told["left"] = next(iter(chunks)).choices[0].delta.role

print(json.dumps(told))
