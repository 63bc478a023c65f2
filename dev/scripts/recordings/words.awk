# Counts words and rewrites lines.
{
    n = split(tolower($0), words, /[^a-z]+/)
    for (i = 1; i <= n; i++) if (words[i] != "") count[words[i]]++
    line = $0
    gsub(/e+/, "<&>", line)
    text = text substr(line, 1, 8)
    if (length(text) > 4000) text = ""
}
END { for (word in count) print count[word], word }
