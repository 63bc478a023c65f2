[
  (section)
  (record)
  (group)
  (comment)
] @fold
