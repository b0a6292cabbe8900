# Listing 1 of document 001, one item at a time.
def number: if . == null then null else (tonumber? // null) end;

(.price | number) as $price
| (.stock | number) as $stock
| select((.price // "") != "" and ($price == null or $price > 0))
| .availability = if $stock != null and $stock > 0 then "in stock" else "out of stock" end
| if (.color // "") != "" then
    .color |= (.[0:1] | ascii_upcase) + .[1:]
    | .title = (.title // "") + " " + .color
  else . end
