"""The rules of heavy.json, one item at a time.

Items that later rules remove are removed at once: nothing that happens to them before could be seen.
"""

import json
import re
import sys
from decimal import ROUND_HALF_UP, Decimal

COLORS = {
    "black": "schwarz", "white": "weiß", "blue": "blau", "grey": "grau", "red": "rot",
    "green": "grün", "brown": "braun", "yellow": "gelb",
}
CENT = Decimal("0.01")


def money(value):
    """Two decimals, a half away from zero; the shortest digits are what is rounded."""
    return str(Decimal(repr(value)).quantize(CENT, ROUND_HALF_UP))


def main(path):
    encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
    decode = json.JSONDecoder().decode
    write = open(sys.stdout.fileno(), "w", encoding="utf-8", newline="\n").write
    is_price = re.compile(r"^\s*[0-9]+(\.[0-9]+)?\s*$").search
    spaces = re.compile(r"\s+").sub
    is_photo = re.compile(r"\.jpe?g$").search
    host = re.compile(r"^https?://([^/]+)/").sub
    for line in open(path, encoding="utf-8"):
        item = decode(line)

        stock = number(item.get("stock"))
        if stock is not None and stock <= 0:
            continue
        if item.get("condition") in ("used", "refurbished"):
            continue
        if "price" not in item or not is_price(item["price"]):
            continue

        if "title" in item:
            item["title"] = spaces(" ", item["title"]).strip()
        category = item.get("category")
        if category:
            item["main_category"] = category.split(" > ")[0]
            item["category"] = category.replace(" > ", "/")
        item["availability"] = "in stock" if stock is not None else "out of stock"
        if item.get("color"):
            item["color"] = COLORS.get(item["color"], "bunt")
        description = item.get("description")
        if "classic" in item.get("title", "").lower() or (
            description and "sustainable" in description
        ):
            item["custom_label_0"] = "classic"
        image = item.get("image_link")
        if image and is_photo(image):
            item["image_link"] = host(r"https://images.\1/", image)

        price = number(item["price"])
        if price > 0:
            item["price"] = money(price * 1.21)
        sale, price = number(item.get("sale_price")), number(item["price"])
        if sale is not None and sale < price:
            item["discount"] = money(price - sale)

        if description:
            item["description"] = description.split(". ")[0]
        item.pop("shipping_weight", None)
        write(encode(item) + "\n")


main(sys.argv[1])
