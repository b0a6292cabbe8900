# The rules of heavy.json, one item at a time. Items that later rules remove are removed at once:
# nothing that happens to them before could be seen.
def number: if . == null then null else (tonumber? // null) end;

# Two decimals, a half away from zero, of a number that is not negative. jq prints the shortest
# digits, and those are what is rounded.
def money:
  (tostring | split(".")) as $parts
  | (($parts[1] // "") + "000") as $fraction
  | (($parts[0] + $fraction[0:2]) | tonumber)
    + (if $fraction[2:3] >= "5" then 1 else 0 end)
  | "00" + tostring
  | (.[0:-2] | ltrimstr("0") | ltrimstr("0") | if . == "" then "0" else . end) + "." + .[-2:];

{
  "black": "schwarz", "white": "weiß", "blue": "blau", "grey": "grau", "red": "rot",
  "green": "grün", "brown": "braun", "yellow": "gelb"
} as $colors
| (.stock | number) as $stock
| select($stock == null or $stock > 0)
| select(.condition != "used" and .condition != "refurbished")
| select(.price != null and (.price | test("^\\s*[0-9]+(\\.[0-9]+)?\\s*$")))
| .title |= (gsub("\\s+"; " ") | ltrimstr(" ") | rtrimstr(" "))
| if (.category // "") != "" then .main_category = (.category | split(" > ")[0]) else . end
| .availability = if $stock != null and $stock > 0 then "in stock" else "out of stock" end
| if (.color // "") != "" then .color = ($colors[.color] // "bunt") else . end
| if (.title | ascii_downcase | contains("classic"))
    or ((.description // "") | contains("sustainable"))
  then .custom_label_0 = "classic" else . end
| if (.image_link // "" | test("\\.jpe?g$"))
  then .image_link |= sub("^https?://(?<host>[^/]+)/"; "https://images.\(.host)/") else . end
| if .category then .category |= (split(" > ") | join("/")) else . end
| (.price | number) as $price
| if $price > 0 then .price = ($price * 1.21 | money) else . end
| (.price | number) as $price
| (.sale_price | number) as $sale
| if $sale != null and $sale < $price then .discount = ($price - $sale | money) else . end
| if (.description // "") != "" then .description |= split(". ")[0] else . end
| del(.shipping_weight)
