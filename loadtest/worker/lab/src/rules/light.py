"""Listing 1 of document 001, one item at a time."""

import json
import sys


def main(path):
    encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
    decode = json.JSONDecoder().decode
    write = open(sys.stdout.fileno(), "w", encoding="utf-8", newline="\n").write
    for line in open(path, encoding="utf-8"):
        item = decode(line)

        price = number(item.get("price"))
        if not item.get("price") or (price is not None and price <= 0):
            continue

        stock = number(item.get("stock"))
        in_stock = stock is not None and stock > 0
        item["availability"] = "in stock" if in_stock else "out of stock"

        color = item.get("color")
        if color:
            color = item["color"] = color[:1].upper() + color[1:]
            item["title"] = item.get("title", "") + " " + color

        write(encode(item) + "\n")


main(sys.argv[1])
