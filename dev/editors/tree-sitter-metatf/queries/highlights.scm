; Later patterns win over earlier ones of the same node.
(name) @variable
(comment) @comment
(string) @string
(int) @number
(bit_number) @number

"section" @keyword
["none" "default" "delta" "stride" "baseOffset" "sectionOffset" "sectionStride" "predicted"] @keyword
["lastValue" "fcm" "dfcm" "heap" "allocated" "freed" "used" "by"] @keyword
["bytes" "until" "rest"] @keyword

(section name: (name) @module)
(record name: (name) @type)
(field (name) @variable.member)
(repetition name: (name) @variable.member)
(repetition count: (name) @variable.member)
(target property: (name) @property)
(word (name) @constant)
((word (name) @keyword) (#eq? @keyword "rest"))

["=" "+" "-" "*" "/" "%" "==" "!=" "<=" "<" ">=" ">"] @operator
["(" ")" "{" "}"] @punctuation.bracket
["," ";" ":" "."] @punctuation.delimiter
